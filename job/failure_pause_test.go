package job_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
)

func TestPauseAfterFailuresValidate(t *testing.T) {
	hourly := func(change func(*job.Recurring)) job.Recurring {
		r := every(time.Hour)
		change(&r)
		return r
	}
	require.Empty(t, validate(hourly(func(r *job.Recurring) { r.PauseAfterFailures = 1 })))
	require.Empty(t, validate(hourly(func(r *job.Recurring) {
		r.PauseAfterFailures, r.ProbeEvery, r.Overlap = 5, job.MinProbeEvery, job.OverlapBufferAll
	})))
	for want, change := range map[string]func(*job.Recurring){
		"recurring.pause_after_failures: -1 is negative; 0 means never": func(r *job.Recurring) { r.PauseAfterFailures = -1 },
		"recurring.pause_after_failures: runs that overlap have no order, so that none fail in a row: it does not go with overlap allow_all": func(r *job.Recurring) {
			r.PauseAfterFailures, r.Overlap = 2, job.OverlapAllowAll
		},
		"recurring.probe_every: probe_every goes with pause_after_failures": func(r *job.Recurring) { r.ProbeEvery = 1e9 },
		"recurring.probe_every: PT0.5S is shorter than PT1S, the least that is possible": func(r *job.Recurring) {
			r.PauseAfterFailures, r.ProbeEvery = 2, 5e8
		},
	} {
		require.Equal(t, []string{want}, validate(hourly(change)))
	}
}

func TestProbeBackoff(t *testing.T) {
	for _, c := range []struct {
		every, probeEvery time.Duration
		waits             []time.Duration
	}{
		{time.Second, 0, []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute}},
		{20 * time.Minute, 0, []time.Duration{20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour}},
		{24 * time.Hour, 0, []time.Duration{24 * time.Hour, 24 * time.Hour}},
		{24 * time.Hour, 30 * time.Minute, []time.Duration{30 * time.Minute, time.Hour, time.Hour}},
		{time.Minute, 2 * time.Hour, []time.Duration{2 * time.Hour, 2 * time.Hour}},
	} {
		r := every(c.every)
		r.ProbeEvery = job.Duration(c.probeEvery)
		for n, want := range c.waits {
			require.Equal(t, want, r.ProbeBackoff().Wait(n+1), "%v, try %d", c, n+1)
		}
	}
}
