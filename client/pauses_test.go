package client_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	schedulepb "go.temporal.io/api/schedule/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

func scheduleOf(t *testing.T) *schedulepb.Schedule {
	t.Helper()
	of, err := temporalclient.JobMetadata(job.Job{
		ID: "count_things.a", Type: "CountThings", Spec: []byte(`{}`),
		Trigger: job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(time.Hour)}},
	})
	require.NoError(t, err)
	return &schedulepb.Schedule{
		Action: &schedulepb.ScheduleAction{Action: &schedulepb.ScheduleAction_StartWorkflow{
			StartWorkflow: &workflowpb.NewWorkflowExecutionInfo{Memo: of.Memo},
		}},
		State: &schedulepb.ScheduleState{},
	}
}

func TestAScheduleKeepsItsLatestPauses(t *testing.T) {
	t.Parallel()
	s := scheduleOf(t)
	require.Empty(t, client.PausesOf(s))
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for n := range client.MaxPauseSpans + 2 {
		at := noon.Add(time.Duration(n) * time.Hour)
		require.NoError(t, client.SetPaused(s, true, "vendor", at))
		require.NoError(t, client.SetPaused(s, true, "disk", at.Add(time.Minute))) // For another reason.
		require.True(t, s.GetState().GetPaused())
		require.Equal(t, "disk", s.GetState().GetNotes())
		require.Equal(t, client.PauseSpan{From: at}, client.PausesOf(s)[0])
		require.NoError(t, client.SetPaused(s, false, "done", at.Add(2*time.Minute)))
		require.Equal(t, client.PauseSpan{From: at, To: at.Add(2 * time.Minute)}, client.PausesOf(s)[0])
	}
	require.Len(t, client.PausesOf(s), client.MaxPauseSpans)
	_, ok := temporalclient.MemoDefinition(s.GetAction().GetStartWorkflow().GetMemo())
	require.True(t, ok, "the definition is kept too")
}

func TestAPauseWhoseEndNobodyKnowsIsNotKept(t *testing.T) {
	t.Parallel()
	s := scheduleOf(t)
	now := time.Now()
	require.NoError(t, client.SetPaused(s, true, "vendor", now))
	s.State.Paused = false // In the Web UI.
	require.Empty(t, client.PausesOf(s))
	require.NoError(t, client.SetPaused(s, true, "vendor", now.Add(time.Hour)))
	require.Len(t, client.PausesOf(s), 1)
	require.NoError(t, client.SetPaused(s, false, "", now.Add(time.Hour)))
	require.Empty(t, client.PausesOf(s), "it was too short to have a time")
}

func TestReasonsOfSeveralPausesAreBounded(t *testing.T) {
	t.Parallel()
	require.Equal(t, "disk", contract.AddReason("", "disk"))
	require.Equal(t, "vendor; also: disk", contract.AddReason("vendor", "disk"))
	require.Equal(t, "vendor; also: disk", contract.AddReason("vendor; also: disk", "vendor"))
	long := "vendor"
	for range 5 {
		long = contract.AddReason(long, string(make([]byte, 300))+long[:1])
	}
	require.LessOrEqual(t, len(long), contract.MaxPauseReason)
}
