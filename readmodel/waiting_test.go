package readmodel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// TestRunsThatNobodyCanTakeWait has a worker that serves one type, and ends its runs.
func TestRunsThatNobodyCanTakeWait(t *testing.T) {
	t.Parallel()
	const running, waiting = jobsv1.JobStatus_JOB_STATUS_RUNNING, jobsv1.JobStatus_JOB_STATUS_WAITING
	services := []client.LiveService{{
		State: client.ServiceDraining,
		Service: contract.Service{
			Worker: "counting", Name: "a", Types: []contract.ServedType{{Name: "CountThings"}}, Tags: map[string]string{"zone": "south"},
		},
	}}
	north := map[string]string{"zone": "north"}
	before := []*jobsv1.JobOverview{
		{Id: "a", Type: "CountThings", Status: running, Outcomes: "CR"},
		{Id: "b", Type: "OtherThings", Status: running, Outcomes: "CRR"},
		{Id: "c", Type: "CountThings", Bind: north, Status: jobsv1.JobStatus_JOB_STATUS_SCHEDULED, Outcomes: "R"},
		{Id: "d", Type: "OtherThings", Status: jobsv1.JobStatus_JOB_STATUS_COMPLETED, Outcomes: "C"},
	}
	shared := before[1]
	after := readmodel.ShowWaiting(services, before...)
	told := func(j *jobsv1.JobOverview) []any { return []any{j.GetStatus(), j.GetOutcomes(), j.GetWaitReason()} }
	require.Equal(t, []any{running, "CR", ""}, told(after[0]))
	require.Equal(t, []any{waiting, "CWW", "no live worker serves OtherThings"}, told(after[1]))
	require.Equal(t, []any{
		jobsv1.JobStatus_JOB_STATUS_SCHEDULED, "W", "no live worker that serves CountThings has the tags zone=north",
	}, told(after[2]))
	require.Equal(t, []any{jobsv1.JobStatus_JOB_STATUS_COMPLETED, "C", ""}, told(after[3]))
	require.Equal(t, running, shared.GetStatus(), "messages are shared")
}
