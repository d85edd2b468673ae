package schedules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

func TestWarningsOfClocks(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 500, time.UTC)
	zoned := func(key, cron, zone string) job.Job {
		return declare(key, job.Trigger{Recurring: &job.Recurring{Cron: cron, TimeZone: zone}})
	}
	paused := zoned("paused", "30 2 * * *", "Europe/Prague")
	paused.Options.Paused = true
	var texts []string
	for _, w := range schedules.Warnings([]job.Job{
		zoned("west", "0,30 0,1 * * *", "America/New_York"), zoned("east", "30 2,3 * * *", "Europe/Prague"), paused,
		zoned("once", "30 1 * * *", "America/New_York"), zoned("fast", "30 2 * * *", "Africa/Casablanca"),
		zoned("utc", "30 2 * * *", "UTC"), zoned("hourly", "*/5 * * * *", "Europe/Prague"),
		declare("interval", recurring(time.Hour)), declare("loop", continuous(time.Second)), declare("once", oneShot()),
	}, now) {
		texts = append(texts, w.JobID+": "+w.Text)
	}
	require.Equal(t, []string{
		"do_nothing.fast: job do_nothing.fast: daylight saving makes starts irregular in the next 12 months: 1 skipped, first at 2027-03-14 02:30 in Africa/Casablanca",
		"do_nothing.east: job do_nothing.east: daylight saving makes starts irregular in the next 12 months: 1 skipped, first at 2027-03-28 02:30 in Europe/Prague",
		"do_nothing.west: job do_nothing.west: daylight saving makes starts irregular in the next 12 months: 2 doubled, first at 2027-11-07 01:00 in America/New_York",
	}, texts)
}
