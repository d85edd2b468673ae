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
		overlap job.Overlap
		catchup time.Duration
		window  int64 // starts outside of it, as the server counts since the schedule was made
	}{
		"the run ended half a second before the start": {
			runs:    []client.Run{run(at(0), time.Minute-500*time.Millisecond), run(at(2), time.Second)},
			reasons: map[time.Time]client.MissedReason{at(1): client.MissedOverlap},
		},
		"the run before was held back, and waited for a worker meanwhile": {
			runs: []client.Run{heldBack(at(0), 130*time.Second, at(60)), heldBack(at(3), time.Second, at(60))},
			reasons: map[time.Time]client.MissedReason{
				at(0): client.MissedFailing, at(1): client.MissedFailing, at(2): client.MissedFailing, at(3): client.MissedFailing,
			},
		},
		"the run before was held back, and ended shortly before": {
			runs: []client.Run{heldBack(at(0), time.Minute-500*time.Millisecond, at(60)), heldBack(at(2), time.Second, at(60)), heldBack(at(3), time.Second, at(60))},
			reasons: map[time.Time]client.MissedReason{
				at(0): client.MissedFailing, at(1): client.MissedFailing, at(2): client.MissedFailing, at(3): client.MissedFailing,
			},
		},
		"the job has recovered since": {
			runs:    []client.Run{heldBack(at(0), time.Second, at(2)), heldBack(at(1), time.Second, at(2)), run(at(2), time.Second), run(at(3), time.Second)},
			reasons: map[time.Time]client.MissedReason{at(0): client.MissedFailing, at(1): client.MissedFailing},
		},
		"a run was made late, whatever the server did meanwhile": {
			runs:    []client.Run{run(at(0), time.Second), late(at(1), time.Minute+2*time.Second), run(at(3), time.Second)},
			reasons: map[time.Time]client.MissedReason{at(2): client.MissedServerLate},
		},
		"each run ends the one before, and the server was away, at first for longer than the catch-up window": {
			overlap: job.OverlapCancelOther,
			runs:    []client.Run{run(at(0), time.Second), late(at(3), 20*time.Second)},
			reasons: map[time.Time]client.MissedReason{at(1): client.MissedWindow, at(2): client.MissedServerLate},
		},
		"a run had ended twelve seconds before, and the next was made late": {
			runs:    []client.Run{run(at(0), time.Minute-12*time.Second), late(at(2), 2*time.Second)},
			reasons: map[time.Time]client.MissedReason{at(1): client.MissedOverlap},
		},
		"a run had ended twelve seconds before, and the next was made in time": {
			runs:    []client.Run{run(at(0), time.Minute-12*time.Second), late(at(2), 200*time.Millisecond)},
			reasons: map[time.Time]client.MissedReason{at(1): client.MissedUnknown},
		},
		"a run had ended seventeen seconds before, and the next was made late": {
			runs:    []client.Run{run(at(0), time.Minute-17*time.Second), late(at(2), 2*time.Second)},
			reasons: map[time.Time]client.MissedReason{at(1): client.MissedUnknown},
		},
		"each run ends the one before, and the next was made in time": {
			overlap: job.OverlapCancelOther,
			runs:    []client.Run{run(at(0), time.Second), late(at(3), 200*time.Millisecond)},
			reasons: map[time.Time]client.MissedReason{at(1): client.MissedUnknown, at(2): client.MissedUnknown},
		},
		"the next was made late, and the others would have had runs of their own": {
			overlap: job.OverlapAllowAll, catchup: 150 * time.Second,
			runs:    []client.Run{run(at(0), time.Second), late(at(3), 20*time.Second)},
			reasons: map[time.Time]client.MissedReason{at(1): client.MissedUnknown, at(2): client.MissedUnknown},
		},
		"the next was made late, when the catch-up window was over, and the server counts one start too few": {
			catchup: 30 * time.Second, window: 1,
			runs:    []client.Run{run(at(0), time.Second), late(at(3), 20*time.Second)},
			reasons: map[time.Time]client.MissedReason{at(1): client.MissedWindow, at(2): client.MissedWindow},
		},
		"the next was made when the catch-up window was over, and hardly late": {
			catchup: 30 * time.Second, window: 1,
			runs:    []client.Run{run(at(0), time.Second), late(at(3), 2*time.Second)},
			reasons: map[time.Time]client.MissedReason{at(1): client.MissedUnknown, at(2): client.MissedUnknown},
		},
		"the server counts the start before a run that was made late, and no other": {
			overlap: job.OverlapAllowAll, catchup: 30 * time.Second, window: 1,
			runs:    []client.Run{run(at(0), time.Second), late(at(2), 20*time.Second)},
			reasons: map[time.Time]client.MissedReason{at(1): client.MissedWindow},
		},
		"the server was away for longer than the catch-up window": {
			overlap: job.OverlapAllowAll, catchup: 30 * time.Second, window: 2,
			runs:    []client.Run{run(at(0), time.Second), run(at(2), time.Second)},
			reasons: map[time.Time]client.MissedReason{at(1): client.MissedWindow, at(3): client.MissedWindow},
		},
		"the server counts starts of another time, and made a run within the catch-up window": {
			overlap: job.OverlapAllowAll, catchup: 90 * time.Second, window: 7,
			runs:    []client.Run{run(at(0), time.Second), run(at(2), time.Second), run(at(3), time.Second)},
			reasons: map[time.Time]client.MissedReason{at(1): client.MissedUnknown},
		},
		"it is the run of a start that was not held back that is in the way": {
			runs:    []client.Run{heldBack(at(0), 3*time.Minute, at(1))},
			reasons: map[time.Time]client.MissedReason{at(0): client.MissedFailing, at(1): client.MissedOverlap, at(2): client.MissedOverlap, at(3): client.MissedOverlap},
		},
	} {
		j.Recurring.Overlap, j.Recurring.CatchupWindow = test.overlap, job.Duration(test.catchup)
		missed, err := client.Missed(j, test.runs, noon, at(3), test.window)
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
