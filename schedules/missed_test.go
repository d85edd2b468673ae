package schedules_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// TestMissedStarts has a job miss starts since a run goes on, since one is left
// out by hand and since the job is paused, and accounts for every start.
func TestMissedStarts(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	gate := make(chan struct{})
	f := startHandler(t, st, func(ctx context.Context, run job.Run, _ anySpec) (job.Result, error) {
		return job.Result{}, workertest.Wait(ctx, run, gate)
	})
	const interval = 2 * time.Second // The server is late by less on a busy machine.
	every := job.Recurring{RecurEvery: job.Duration(interval)}
	j := declare("missing", job.Trigger{Recurring: &every})
	f.apply(f.plan(false, j))

	f.waitSchedule(j, "overlaps", func(live *client.Live) bool { return live.Schedule.GetInfo().GetOverlapSkipped() >= 2 })
	close(gate)
	f.waitMore(2)

	require.NoError(t, f.client.Jobs.Pause(t.Context(), j.ID, "for the test"))
	paused := time.Now()
	stacktest.WaitFor(t, "three starts to pass", func() (bool, error) { return time.Since(paused) > 3*interval, nil })
	require.NoError(t, f.client.Jobs.Resume(t.Context(), j.ID, "done"))
	f.waitMore(2)
	live, err := f.client.Jobs.LiveSchedule(t.Context(), j.ID)
	require.NoError(t, err)
	require.Equal(t, "done", live.PauseReason)

	skipped := []time.Time{f.skipNext("missing")}
	f.waitMore(2)
	skipped = append(skipped, f.skipNext("missing")) // The one before stays known.
	f.waitMore(3)

	var account *client.StartsReport
	until := skipped[1].Add(interval)
	reasons := map[client.MissedReason]int{}
	stacktest.WaitFor(t, "all runs in the list", func() (bool, error) {
		account, err = f.client.Jobs.Missed(t.Context(), client.MissedFilter{Since: time.Now().Add(-time.Hour), Until: until})
		if err != nil {
			return false, err
		}
		clear(reasons)
		for _, start := range slices.Concat(account.Missed, account.LeftOut) {
			reasons[start.Reason]++
		}
		if reasons[client.MissedSkipped] < 2 || reasons[client.MissedUnknown] > 1 {
			return false, fmt.Errorf("skipped were %s, of %v", skipped, reasons)
		}
		return true, nil
	})
	sum := account.Jobs[0]
	t.Logf("%+v %v", sum, reasons)
	require.Equal(t, sum.Scheduled, sum.Runs+sum.Missed+sum.LeftOut)
	require.Len(t, account.LeftOut, reasons[client.MissedSkipped]+reasons[client.MissedPaused])
	for _, at := range skipped {
		require.True(t, slices.ContainsFunc(account.LeftOut, func(start client.MissedStart) bool {
			return start.Scheduled.Equal(at) && start.Reason == client.MissedSkipped
		}), "%s in %v", at, account.LeftOut)
	}
	require.GreaterOrEqual(t, reasons[client.MissedOverlap], 2)
	require.GreaterOrEqual(t, reasons[client.MissedPaused], 2)
	runs, err := f.client.Runs.List(t.Context(), client.RunFilter{JobID: j.ID})
	require.NoError(t, err)
	for _, start := range account.Missed {
		require.Equal(t, start.Reason == client.MissedServerLate, slices.ContainsFunc(runs, func(run client.Run) bool {
			return start.Reason == client.MissedServerLate && run.Scheduled.Before(start.Scheduled) && !run.Started.Before(start.Scheduled)
		}), "the run that was made late for the start of %s", start.Scheduled)
	}
	require.LessOrEqual(t, reasons[client.MissedUnknown], 1, "one at the edge of the pause")

	_, err = f.client.Jobs.Missed(t.Context(), client.MissedFilter{JobID: j.ID, Since: sum.From, Until: sum.From.Add(24 * time.Hour)})
	require.ErrorContains(t, err, "more than 10000")
}

// waitMore waits for further runs of any job.
func (f *fixture) waitMore(runs int) {
	f.Helper()
	f.ledger.WaitRuns(f, "", len(f.ledger.Runs(""))+runs)
}

func (f *fixture) waitSchedule(j job.Job, what string, reached func(*client.Live) bool) {
	f.Helper()
	stacktest.WaitFor(f, what+" of "+j.ID, func() (bool, error) {
		live, err := f.client.Jobs.LiveSchedule(f.Context(), j.ID)
		return err == nil && reached(live), err
	})
}
