package client_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
)

// TestReasonsOfStartsBesideOtherRuns has a schedule that takes note of the end of a run only
// when the next start has passed.
func TestReasonsOfStartsBesideOtherRuns(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	zero := job.Duration(0)
	j := job.Job{
		ID: "count_things.a", Type: "CountThings",
		Trigger: job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(time.Minute), Offset: &zero}},
	}
	run := func(due time.Time, took time.Duration) client.Run {
		return client.Run{
			RunRef: client.RunRef{WorkflowID: "job/count_things.a-" + due.Format(time.RFC3339)}, JobID: j.ID,
			Scheduled: due, Started: due, Ended: due.Add(took), Status: client.RunCompleted,
		}
	}
	heldBack := func(due time.Time, took time.Duration, until time.Time) client.Run {
		held := run(due, took)
		held.Status, held.HeldUntil = client.RunHeldBack, until
		return held
	}
	late := func(due time.Time, by time.Duration) client.Run {
		late := run(due, by+time.Second)
		late.Started = due.Add(by)
		return late
	}
	at := func(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }
	for name, test := range map[string]struct {
		runs    []client.Run
		reasons map[time.Time]client.MissedReason
	}{
		"the run ended half a second before the start": {
			[]client.Run{run(at(0), time.Minute-500*time.Millisecond), run(at(2), time.Second)},
			map[time.Time]client.MissedReason{at(1): client.MissedOverlap},
		},
		"the run before was held back, and waited for a worker meanwhile": {
			[]client.Run{heldBack(at(0), 130*time.Second, at(60)), heldBack(at(3), time.Second, at(60))},
			map[time.Time]client.MissedReason{
				at(0): client.MissedFailing, at(1): client.MissedFailing, at(2): client.MissedFailing, at(3): client.MissedFailing,
			},
		},
		"the run before was held back, and ended shortly before": {
			[]client.Run{heldBack(at(0), time.Minute-500*time.Millisecond, at(60)), heldBack(at(2), time.Second, at(60)), heldBack(at(3), time.Second, at(60))},
			map[time.Time]client.MissedReason{
				at(0): client.MissedFailing, at(1): client.MissedFailing, at(2): client.MissedFailing, at(3): client.MissedFailing,
			},
		},
		"the job has recovered since": {
			[]client.Run{heldBack(at(0), time.Second, at(2)), heldBack(at(1), time.Second, at(2)), run(at(2), time.Second), run(at(3), time.Second)},
			map[time.Time]client.MissedReason{at(0): client.MissedFailing, at(1): client.MissedFailing},
		},
		"a run was made late, whatever the server did meanwhile": {
			[]client.Run{run(at(0), time.Second), late(at(1), time.Minute+2*time.Second), run(at(3), time.Second)},
			map[time.Time]client.MissedReason{at(2): client.MissedServerLate},
		},
		"it is the run of a start that was not held back that is in the way": {
			[]client.Run{heldBack(at(0), 3*time.Minute, at(1))},
			map[time.Time]client.MissedReason{at(0): client.MissedFailing, at(1): client.MissedOverlap, at(2): client.MissedOverlap, at(3): client.MissedOverlap},
		},
	} {
		missed, err := client.Missed(j, test.runs, noon, at(3))
		require.NoError(t, err, name)
		reasons := map[time.Time]client.MissedReason{}
		for _, start := range missed {
			if start.Reason != client.MissedUnknown || !start.Scheduled.Equal(at(3)) { // That it has no run yet is of the test.
				reasons[start.Scheduled.UTC()] = start.Reason
			}
		}
		require.Equal(t, test.reasons, reasons, name)
	}
}
