package schedules_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

var november = time.Date(2026, 11, 21, 12, 0, 0, 500, time.UTC)

func several(count int, key string, r job.Recurring) []job.Job {
	var jobs []job.Job
	for n := range count {
		jobs = append(jobs, declare(fmt.Sprintf("%s-%d", key, n), job.Schedule{Recurring: &r}))
	}
	return jobs
}

func warningTexts(jobs ...job.Job) []string {
	var texts []string
	for _, w := range schedules.Warnings(jobs, november) {
		texts = append(texts, string(w.Kind)+": "+w.Text)
	}
	return texts
}

func TestWarningsOfClocks(t *testing.T) {
	t.Parallel()
	zoned := func(key, cron, zone string) job.Job {
		return declare(key, job.Schedule{Recurring: &job.Recurring{Cron: cron, TimeZone: zone}})
	}
	paused := zoned("paused", "30 2 * * *", "Europe/Prague")
	paused.Options.Paused = true
	require.Equal(t, []string{
		"clocks: job do_nothing.fast: daylight saving makes starts irregular in the next 12 months: 1 skipped, first at 2027-03-14 02:30 in Africa/Casablanca",
		"clocks: job do_nothing.east: daylight saving makes starts irregular in the next 12 months: 1 skipped, first at 2027-03-28 02:30 in Europe/Prague",
		"clocks: job do_nothing.west: daylight saving makes starts irregular in the next 12 months: 2 doubled, first at 2027-11-07 01:00 in America/New_York",
	}, warningTexts(zoned("west", "0,30 0,1 * * *", "America/New_York"), zoned("east", "30 2,3 * * *", "Europe/Prague"), paused,
		zoned("once", "30 1 * * *", "America/New_York"), zoned("fast", "30 2 * * *", "Africa/Casablanca"),
		zoned("utc", "30 2 * * *", "UTC"), zoned("hourly", "*/5 * * * *", "Europe/Prague"),
		declare("interval", recurring(time.Hour)), declare("loop", continuous(time.Second)), declare("once", oneShot())))
}

func TestWarningsOfPileUps(t *testing.T) {
	t.Parallel()
	hourly := several(300, "hourly", job.Recurring{Cron: "0 * * * *"})
	require.Equal(t, []string{
		"pile_up: 300 runs of 300 jobs are due at 2026-11-21T13:00:00Z (do_nothing.hourly-0 1, do_nothing.hourly-1 1, do_nothing.hourly-10 1, 297 more), " +
			"and a server starts 30 per second by default: there the last one starts 9s late; so it is 23 more times in the next 24 hours",
	}, warningTexts(hourly...))
	require.Empty(t, warningTexts(several(59, "hourly", job.Recurring{Cron: "0 * * * *"})...))
	require.Empty(t, warningTexts(several(1000, "spread", job.Recurring{RecurEvery: job.Duration(15 * time.Minute)})...))
	require.Empty(t, warningTexts(several(300, "jitter", job.Recurring{Cron: "0 * * * *", Jitter: job.Duration(time.Minute)})...))

	t.Run("two causes", func(t *testing.T) {
		nightly := several(900, "nightly", job.Recurring{Cron: "30 2 * * *"})
		midnight := several(20, "midnight", job.Recurring{Cron: "0 0 * * *"})
		warnings := schedules.Warnings(append(append(nightly, hourly...), midnight...), november)
		require.Len(t, warnings, 2)
		require.Equal(t, time.Date(2026, 11, 22, 2, 30, 0, 0, time.UTC), warnings[0].At)
		require.Len(t, warnings[0].Jobs, 900)
		require.Equal(t, time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), warnings[1].At)
		require.Contains(t, warnings[1].Text, "320 runs of 320 jobs")
		require.Contains(t, warnings[1].Text, "23 more times")
	})
	t.Run("all the time", func(t *testing.T) {
		require.Equal(t, []string{
			"pile_up: 3456000 runs of 40 jobs are due within 24h0m0s up to 2026-11-22T12:00:00Z (do_nothing.second-0 86400, " +
				"do_nothing.second-1 86400, do_nothing.second-10 86400, 37 more), and a server starts 30 per second by default: there the last one starts 8h0m0s late",
		}, warningTexts(several(40, "second", job.Recurring{RecurEvery: 1e9})...))
	})
}

func TestWarningsOfCatchUps(t *testing.T) {
	t.Parallel()
	all := func(key string, every time.Duration, most int) job.Job {
		return declare(key, job.Schedule{Recurring: &job.Recurring{RecurEvery: job.Duration(every), Misfire: job.MisfireAll, MaxMissed: most}})
	}
	require.Equal(t, []string{
		"catch_up: an outage may be followed by 152 runs of 3 jobs with misfire all (do_nothing.b 100, do_nothing.a 40, do_nothing.c 12), all at once, or within 5s where a server starts 30 per second",
	}, warningTexts(all("a", time.Minute, 40), all("b", time.Hour, 0), all("c", 31*24*time.Hour, 12), declare("d", recurring(time.Hour))))
}

func TestWarningsOfManyJobs(t *testing.T) {
	t.Parallel()
	var jobs []job.Job
	jobs = append(jobs, several(200, "second", job.Recurring{RecurEvery: 1e9, Misfire: job.MisfireAll, MaxMissed: 1000})...)
	jobs = append(jobs, several(400, "ten", job.Recurring{RecurEvery: 1e10})...)
	for n := range 500 {
		jobs = append(jobs, several(1, fmt.Sprintf("cron-%d", n), job.Recurring{
			Cron: fmt.Sprintf("%d-59 %d-23 * * *", n%50, n%20), TimeZone: "Europe/Prague", Misfire: job.MisfireAll,
		})...)
	}
	require.NotEmpty(t, schedules.Warnings(jobs, november))
}

func BenchmarkWarnings(b *testing.B) {
	var jobs []job.Job
	for n := range 1100 {
		jobs = append(jobs, several(1, fmt.Sprintf("cron-%d", n), job.Recurring{
			Cron: fmt.Sprintf("%d * * * *", n%60), TimeZone: "Europe/Prague", StartAt: time.Unix(int64(n), 0),
		})...)
	}
	for b.Loop() {
		schedules.Warnings(jobs, november)
	}
}
