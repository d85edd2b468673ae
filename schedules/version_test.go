package schedules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// These hashes are in the live state and in the records of what was applied. A program
// that computes others shows every job as changed or drifted. So a new field of a job
// has to be left out of its JSON while it is not set.
func TestHashesOfLiveStateStayTheSame(t *testing.T) {
	t.Parallel()
	every := declare("every", recurring(time.Hour))
	cron := declare("cron", job.Trigger{Recurring: &job.Recurring{
		Cron: "30 4 * * mon-fri", TimeZone: "Europe/Prague", Jitter: job.Duration(time.Minute), Overlap: job.OverlapBufferOne,
	}}, func(j *job.Job) { j.Options.Owner = job.Owner{User: "ada"} })
	clocks := func(key, text, zone string) job.Job {
		return declare(key, job.Trigger{Recurring: &job.Recurring{Cron: text, TimeZone: zone}})
	}
	for _, c := range []struct {
		job           job.Job
		hash, version string
	}{
		{every, "47bc65d20711a286", "41d9737075893134"},
		{cron, "a49031636b93d467", "340aa4c55c07dc94"},
		{clocks("hourly", "*/15 * * * *", losAngeles), "ba1c50b25625ace7", "bb49bd4ef511a641"},
		{clocks("noon", "0 12 * * *", losAngeles), "43651ec61e47dc20", "7e46403f8b228383"},
		{clocks("fasting", "30 2 * * *", "Africa/Casablanca"), "53572056ea90ee44", "3e267ea0279a322a"},
		{clocks("skipped", "30 2 * * *", losAngeles), "3b782c3c742e4e00", "e4802605472eeec4"},
		{clocks("repeated", "30 1 * * *", losAngeles), "6dac6532010b353f", "530252861e8bde55"},
		{declare("loop", continuous(time.Minute)), "245ea7b5a5950758", ""},
		{declare("once", oneShot()), "a93f4236f0bb4a5a", ""},
		{declare("turn", queued("tables")), "a93f4236f0bb4a5a", ""},
	} {
		hash, err := c.job.DefinitionHash()
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
