package job_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
)

func TestPauseAfterFailuresValidate(t *testing.T) {
	t.Parallel()
	hourly := func(change func(*job.Recurring)) job.Recurring {
		r := every(time.Hour)
		change(&r)
		return r
	}
	require.Empty(t, validate(hourly(func(r *job.Recurring) { r.PauseAfterFailures = 1 })))
	require.Empty(t, validate(hourly(func(r *job.Recurring) {
		r.PauseAfterFailures, r.RetryEvery, r.Overlap = 5, job.Duration(time.Second), job.OverlapBufferAll
	})))
	for want, change := range map[string]func(*job.Recurring){
		"recurring.pause_after_failures: -1 is less than 0": func(r *job.Recurring) { r.PauseAfterFailures = -1 },
		"recurring.pause_after_failures: runs that overlap have no order, so that none fail in a row: it does not go with overlap allow_all": func(r *job.Recurring) {
			r.PauseAfterFailures, r.Overlap = 2, job.OverlapAllowAll
		},
		"recurring.pause_after_failures: a trigger of a job that starts every second cannot be told from a start: recur_every is at least PT2S": func(r *job.Recurring) {
			r.PauseAfterFailures, r.RecurEvery = 2, job.MinRecurEvery
		},
		"recurring.retry_every: retry_every goes with pause_after_failures": func(r *job.Recurring) { r.RetryEvery = 1e9 },
		"recurring.retry_every: PT0.5S is shorter than PT1S": func(r *job.Recurring) {
			r.PauseAfterFailures, r.RetryEvery = 2, 5e8
		},
	} {
		require.Equal(t, []string{want}, validate(hourly(change)))
	}
}

func TestFailureBackoff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		every, retryEvery time.Duration
		waits             []time.Duration
	}{
		{time.Second, 0, []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute}},
		{20 * time.Minute, 0, []time.Duration{20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour}},
		{24 * time.Hour, 0, []time.Duration{24 * time.Hour, 24 * time.Hour}},
		{24 * time.Hour, 30 * time.Minute, []time.Duration{30 * time.Minute, time.Hour, time.Hour}},
		{time.Minute, 2 * time.Hour, []time.Duration{2 * time.Hour, 2 * time.Hour}},
	} {
		r := every(c.every)
		r.RetryEvery = job.Duration(c.retryEvery)
		for n, want := range c.waits {
			require.Equal(t, want, r.FailureBackoff().Wait(n+1), "%v, try %d", c, n+1)
		}
	}
}

// A job every five minutes whose run has failed for the second time and the following
// ones, right after its start.
func TestNextRun(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	r := every(5 * time.Minute)
	r.Offset = new(job.Duration)
	require.Zero(t, r.NextRun("a", 9, noon), "without the option")
	r.PauseAfterFailures = 2
	for failures, want := range map[int]time.Duration{1: 0, 2: 5, 3: 10, 4: 20, 5: 40, 6: 60, 7: 60, 1000: 60} {
		next := r.NextRun("a", failures, noon.Add(3*time.Second))
		if want == 0 {
			require.Zero(t, next)
			continue
		}
		require.Equal(t, noon.Add(want*time.Minute), next, "%d failures", failures)
	}
	require.Equal(t, noon.Add(55*time.Minute), r.NextRun("a", 2, noon.Add(50*time.Minute)), "a run that took long")
	r.RetryEvery = job.Duration(7*time.Minute + time.Millisecond)
	require.Equal(t, noon.Add(10*time.Minute), r.NextRun("a", 2, noon.Add(3*time.Second)), "a try is at a start")
	r.EndAt = noon.Add(6 * time.Minute)
	require.Zero(t, r.NextRun("a", 2, noon), "there is no start left")

	daily := job.Recurring{Cron: "0 12 * * *", PauseAfterFailures: 1}
	require.Equal(t, noon.Add(24*time.Hour), daily.NextRun("a", 5, noon.Add(time.Minute)), "no start of a daily job is held back")
	require.True(t, daily.IsStart("a", noon))
	require.False(t, daily.IsStart("a", noon.Add(time.Second)))
}
