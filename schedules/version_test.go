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
		{every, "47bc65d20711a286", "564f56d1c35190bd"},
		{cron, "a49031636b93d467", "56c62e5247d4d35e"},
		{clocks("hourly", "*/15 * * * *", losAngeles), "ba1c50b25625ace7", "337bdae19a20d2d9"},
		{clocks("noon", "0 12 * * *", losAngeles), "43651ec61e47dc20", "2252d5880e27027f"},
		{clocks("fasting", "30 2 * * *", "Africa/Casablanca"), "53572056ea90ee44", "6ff3750f85498171"},
		{clocks("skipped", "30 2 * * *", losAngeles), "3b782c3c742e4e00", "1663e19e113008e8"},
		{clocks("repeated", "30 1 * * *", losAngeles), "6dac6532010b353f", "1ed807fd5834a374"},
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
