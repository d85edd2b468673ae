package schedules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// These hashes are on what stands, and in the records of what was applied. A
// release that computes others shows every job as changed: a new field of a job has
// to be left out of its JSON while it is not set, and a new setting of a schedule
// needs another form of versions.
func TestHashesOfWhatStandsStayTheSame(t *testing.T) {
	t.Parallel()
	every := declare("every", recurring(time.Hour))
	cron := declare("cron", job.Schedule{Recurring: &job.Recurring{
		Cron: "30 4 * * mon-fri", TimeZone: "Europe/Prague", Jitter: job.Duration(time.Minute), Overlap: job.OverlapBufferOne,
	}}, func(j *job.Job) { j.Options.Owner = job.Owner{User: "ada"} })
	clocks := func(key, text, zone string) job.Job {
		return declare(key, job.Schedule{Recurring: &job.Recurring{Cron: text, TimeZone: zone}})
	}
	for _, c := range []struct {
		job           job.Job
		hash, version string
	}{
		{every, "47bc65d20711a286", "2-db47f21c63acac90"},
		{cron, "a49031636b93d467", "2-670be0ef1e501b39"},
		{clocks("hourly", "*/15 * * * *", losAngeles), "ba1c50b25625ace7", "2-263bcb906c48a654"},
		{clocks("noon", "0 12 * * *", losAngeles), "43651ec61e47dc20", "2-176d178c7cf55dc1"},
		{clocks("fasting", "30 2 * * *", "Africa/Casablanca"), "53572056ea90ee44", "2-c89b9b7737c3b8ba"},
		{clocks("skipped", "30 2 * * *", losAngeles), "3b782c3c742e4e00", "2-98fac104c857ad6a"},
		{clocks("repeated", "30 1 * * *", losAngeles), "6dac6532010b353f", "2-3e6a3c2b7b495c1b"},
		{declare("loop", continuous(time.Minute)), "245ea7b5a5950758", ""},
		{declare("once", oneShot()), "a93f4236f0bb4a5a", ""},
		{declare("turn", queued("tables")), "a93f4236f0bb4a5a", ""},
	} {
		hash, err := c.job.SpecHash()
		require.NoError(t, err)
		version := ""
		if c.job.Recurring != nil {
			version, err = schedules.WantedVersion(c.job)
			require.NoError(t, err)
		}
		require.Equal(t, c.hash, hash, c.job.ID)
		require.Equal(t, c.version, version, c.job.ID)
	}
}
