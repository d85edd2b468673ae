package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	schedulepb "go.temporal.io/api/schedule/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

func scheduleOf(t *testing.T) *schedulepb.Schedule {
	t.Helper()
	action, err := ScheduleAction(job.Job{
		ID: "count_things.a", Type: "CountThings", Spec: []byte(`{}`),
		Trigger: job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(time.Hour)}},
	})
	require.NoError(t, err)
	return &schedulepb.Schedule{Action: action, State: &schedulepb.ScheduleState{}}
}

func TestAScheduleKeepsItsLatestPauses(t *testing.T) {
	t.Parallel()
	s := scheduleOf(t)
	require.Empty(t, pausesOf(s))
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for n := range maxPauseSpans + 2 {
		at := noon.Add(time.Duration(n) * time.Hour)
		require.NoError(t, setPaused(s, true, "vendor", at))
		require.NoError(t, setPaused(s, true, "disk", at.Add(time.Minute))) // For another reason.
		require.True(t, s.GetState().GetPaused())
		require.Equal(t, "disk", s.GetState().GetNotes())
		require.Equal(t, pauseSpan{From: at}, pausesOf(s)[0])
		require.NoError(t, setPaused(s, false, "done", at.Add(2*time.Minute)))
		require.Equal(t, pauseSpan{From: at, To: at.Add(2 * time.Minute)}, pausesOf(s)[0])
	}
	require.Len(t, pausesOf(s), maxPauseSpans)
	_, ok := Definition(s.GetAction().GetStartWorkflow().GetMemo())
	require.True(t, ok, "the definition is kept too")
}

func TestAPauseWhoseEndNobodyKnowsIsNotKept(t *testing.T) {
	t.Parallel()
	s := scheduleOf(t)
	now := time.Now()
	require.NoError(t, setPaused(s, true, "vendor", now))
	s.State.Paused = false // In the Web UI.
	require.Empty(t, pausesOf(s))
	require.NoError(t, setPaused(s, true, "vendor", now.Add(time.Hour)))
	require.Len(t, pausesOf(s), 1)
	require.NoError(t, setPaused(s, false, "", now.Add(time.Hour)))
	require.Empty(t, pausesOf(s), "it was too short to tell")
}

func TestReasonsOfSeveralPausesAreBounded(t *testing.T) {
	t.Parallel()
	require.Equal(t, "disk", addReason("", "disk"))
	require.Equal(t, "vendor; also: disk", addReason("vendor", "disk"))
	require.Equal(t, "vendor; also: disk", addReason("vendor; also: disk", "vendor"))
	long := "vendor"
	for range 5 {
		long = addReason(long, string(make([]byte, 300))+long[:1])
	}
	require.LessOrEqual(t, len(long), contract.MaxPauseReason)
}
