package readmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
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
	once, often := job.Trigger{OneShot: &job.OneShot{}}, job.Trigger{Recurring: &job.Recurring{}}
	begun := time.Now().Add(-time.Minute)
	run := func(id string, status client.RunStatus) client.Run {
		return client.Run{RunRef: client.RunRef{WorkflowID: "job/" + id, RunID: id}, Status: status, Started: begun}
	}
	open := []client.Run{run("a", client.RunCompleted), run("b", client.RunRunning), run("c", client.RunRunning)}
	for name, tc := range map[string]struct {
		typeName string
		trigger  job.Trigger
		bind     map[string]string
		look     *client.Look
		runs     []client.Run
		status   jobsv1.JobStatus
		outcomes string
		why      string
	}{
		"a worker can":                     {"CountThings", once, nil, nil, open[:2], running, "CR", ""},
		"nobody can":                       {"OtherThings", once, nil, nil, open, waiting, "CWW", "no live worker serves OtherThings"},
		"nobody has the tags":              {"CountThings", often, map[string]string{"zone": "north"}, nil, open[1:2], waiting, "W", "no live worker that serves CountThings has the tags zone=north"},
		"nobody can, and none has to":      {"OtherThings", once, nil, nil, open[:1], jobsv1.JobStatus_JOB_STATUS_COMPLETED, "C", ""},
		"a worker can, and none has":       {"CountThings", often, nil, &client.Look{WaitReason: "no worker"}, open, waiting, "CRW", "no worker"},
		"nobody can any more, and one has": {"OtherThings", often, nil, &client.Look{Taken: true}, open, running, "CRR", ""},
	} {
		j := job.Job{ID: "it", Type: tc.typeName, Trigger: tc.trigger, Options: job.Options{Bind: tc.bind}}
		m := readmodel.ShowWaiting(services, j, tc.look, tc.runs...)
		require.Equal(t, []any{tc.status, tc.outcomes, tc.why}, []any{m.GetStatus(), m.GetOutcomes(), m.GetWaitReason()}, name)
	}
}
