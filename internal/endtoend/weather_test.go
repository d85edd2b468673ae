package endtoend_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// TestTwoDaysOfWeather declares jobs as the sync of a running system does, with
// the syncer itself; the other tests do it with bin/starter.
func TestTwoDaysOfWeather(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t))
	l := newLocation(b, "twodays", stacktest.Random(t).Uint64())
	extract, load := b.worker("extract", l.secret()), b.worker("load")

	file, problems := jobsfile.Read("jobs.toml", []byte(l.jobs("P2D", "PT12H", 5000)), activities.Types())
	require.Empty(t, problems)
	syncer := schedules.New(b.client)
	options := schedules.PlanOptions{Provider: job.ProviderTOML}
	plan, err := syncer.Plan(t.Context(), file.Jobs, options)
	require.NoError(t, err)
	require.Equal(t, 2, plan.Count(schedules.ActionCreate))
	require.NoError(t, syncer.Apply(t.Context(), plan, func(schedules.Report) {}))
	plan, err = syncer.Plan(t.Context(), file.Jobs, options)
	require.NoError(t, err)
	require.True(t, plan.Empty())

	first := b.trigger(l.extractJob())
	require.InDelta(t, 48*time.Hour, l.now.Sub(l.firstStart(t)), float64(time.Hour))
	require.GreaterOrEqual(t, first.Output.Counts["windows"], int64(2*4))
	total := l.total()
	require.Equal(t, total, first.Output.Counts["prepared"])
	require.Equal(t, 11*total, first.Output.Counts["observations"])
	stacktest.WaitFor(t, "two days in InfluxDB", func() (bool, error) {
		n, err := l.allPoints()
		return n == total, err
	})
	l.requireStored()

	// Once more: the vendor is read again, and there is nothing new in it.
	requests := l.vendor.RequestCount()
	second := b.trigger(l.extractJob())
	require.Greater(t, l.vendor.RequestCount(), requests)
	require.Equal(t, first.Output.Counts["observations"], second.Output.Counts["observations"])
	require.Zero(t, second.Output.Counts["prepared"])
	_, all := l.progress()
	require.True(t, all)
	l.requireStored()

	// A value that is corrected late: its hour is published again as a whole, raw and
	// prepared, and the database has the new value.
	corrected := l.vendor.Observations(l.vendor.Options().Loggers[1], l.now.Add(-30*time.Hour), l.now)[0]
	l.vendor.Correct(corrected, corrected.Value+0.25)
	third := b.trigger(l.extractJob())
	const hour = 12 // readings
	require.EqualValues(t, hour, third.Output.Counts["raw"])
	require.EqualValues(t, hour, third.Output.Counts["prepared"])
	require.Zero(t, third.Output.Counts["duplicates"])
	stacktest.WaitFor(t, "the correction to be loaded", func() (bool, error) {
		_, all := l.progress()
		return all, nil
	})
	l.requireStored()

	// A deployment: the workers end in the middle of what they do, and lose nothing.
	stacktest.WaitFor(t, "a lap under way", func() (bool, error) {
		loop, err := b.loop(l.loadJob())
		return loop != nil && loop.Phase == contract.PhaseRunning, err
	})
	b.drain(extract, load)
	b.worker("load")
	loop, err := b.loop(l.loadJob())
	require.NoError(t, err)
	require.NotNil(t, loop)
	require.Zero(t, loop.Failed, loop.LastError)
	require.Equal(t, total+hour, loop.Totals["points"], "the lap that was cut off has told what it did")
}

// TestNothingIsLostWhenEverythingDies kills all servers, and then the workers as
// well, while a month is extracted and loaded.
func TestNothingIsLostWhenEverythingDies(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	b := newBench(t, stacktest.StartOwn(t))
	l := newLocation(b, "month", random.Uint64())
	extract, load := b.worker("extract", l.secret()), b.worker("load")
	declare(b, l.jobs("P30D", "P1D", 200))

	const expected = 2 * 30 * 24 * 12 // points, give or take an hour
	loaded := func(least int) {
		t.Helper()
		var n int64
		stacktest.WaitFor(t, "points in InfluxDB", func() (bool, error) {
			var err error
			n, err = l.allPoints()
			return n >= int64(least), err
		})
		t.Logf("killed at %d of about %d points, after %d requests", n, expected, l.vendor.RequestCount())
		require.Less(t, n, int64(expected), "the load was to be cut off")
	}
	triggered, err := b.client.Jobs.Trigger(t.Context(), l.extractJob())
	require.NoError(t, err)

	loaded(1 + random.IntN(expected/3))
	b.st.Kill()
	b.st.Restart(t)
	loaded(expected/2 + random.IntN(expected/4))
	extract.Kill()
	b.st.Kill()
	load.Kill()
	b.st.Restart(t)
	b.worker("extract", l.secret())
	b.worker("load")

	stacktest.WaitWithin(t, 3*time.Minute, "the end of the extraction", func() (bool, error) {
		run, err := b.client.Runs.Get(t.Context(), triggered.Run)
		if err != nil || run.Ended.IsZero() {
			return false, err
		}
		require.Empty(t, run.Error)
		return true, nil
	})
	total := l.total()
	require.InDelta(t, expected, total, 2*12+2)
	stacktest.WaitWithin(t, 3*time.Minute, "a month in InfluxDB", func() (bool, error) {
		n, err := l.allPoints()
		return n >= total, err
	})
	l.requireStored()
}
