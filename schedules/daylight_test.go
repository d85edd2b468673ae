package schedules_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
)

const losAngeles = "America/Los_Angeles"

// TestDailyJobsRunOnceWhereClocksChange runs jobs for the days around both changes of
// the clocks of a year: daily ones at times that clocks skip and repeat, and an
// interval.
func TestDailyJobsRunOnceWhereClocksChange(t *testing.T) {
	zone, err := time.LoadLocation(losAngeles)
	require.NoError(t, err)
	const days = 4
	changes := []time.Time{time.Date(2025, 3, 9, 12, 0, 0, 0, zone), time.Date(2025, 11, 2, 12, 0, 0, 0, zone)}
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	daily := func(key, cron string) job.Job {
		return declare(key, job.Trigger{Recurring: &job.Recurring{Cron: cron, TimeZone: losAngeles}}, paused)
	}
	jobs := []job.Job{daily("skipped", "30 2 * * *"), daily("repeated", "30 1 * * *"), declare("interval", recurring(8*time.Hour), paused)}
	f.apply(f.plan(false, jobs...))
	f.inSync(false, jobs...)
	want := 0
	for _, j := range jobs {
		count := 0
		for _, change := range changes {
			starts, err := f.client.Jobs.Backfill(t.Context(), j.ID, change.AddDate(0, 0, -days/2), change.AddDate(0, 0, days/2))
			require.NoError(t, err)
			count += len(starts)
		}
		want += count
		var runs []client.Run
		stacktest.WaitFor(t, "the runs of "+j.ID, func() (bool, error) {
			var err error
			runs, err = f.client.Runs.List(t.Context(), client.RunFilter{JobID: j.ID, Status: client.RunCompleted})
			return len(runs) == count, err
		})
		if j.Recurring.Cron == "" {
			slices.SortFunc(runs, func(a, b client.Run) int { return a.Scheduled.Compare(b.Scheduled) })
			for n, run := range runs[1:] {
				if apart := run.Scheduled.Sub(runs[n].Scheduled); apart < 7*24*time.Hour {
					require.Equal(t, 8*time.Hour, apart)
				}
			}
			require.InDelta(t, 2*days*3, count, 2)
			continue
		}
		perDay := map[string]int{}
		for _, run := range runs {
			perDay[run.Scheduled.In(zone).Format("01-02")]++
		}
		require.Equal(t, map[string]int{
			"03-08": 1, "03-09": 1, "03-10": 1, "03-11": 1, "11-01": 1, "11-02": 1, "11-03": 1, "11-04": 1,
		}, perDay, j.ID)
	}
	require.Len(t, f.ledger.Runs(""), want)

	// And so they go on: as many days as the server lists starts.
	for _, key := range []string{"skipped", "repeated"} {
		starts := f.next(key, client.MaxStarts)
		require.Len(t, starts, client.MaxStarts)
		for n, at := range starts[1:] {
			require.Equal(t, starts[n].In(zone).AddDate(0, 0, 1).Format(time.DateOnly), at.In(zone).Format(time.DateOnly))
		}
	}
}

func paused(j *job.Job) { j.Options.Paused = true }

func TestAMovedStartIsSkipped(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	spring := time.Date(2090, 3, 12, 10, 30, 0, 0, time.UTC) // 03:30 for 02:30.
	j := declare("nightly", job.Trigger{Recurring: &job.Recurring{
		Cron: "30 2 * * *", TimeZone: losAngeles, StartAt: spring.Add(-2 * time.Hour),
	}})
	f.apply(f.plan(false, j))
	require.Equal(t, spring, f.skipNext("nightly"))
	require.Equal(t, []time.Time{spring.Add(23 * time.Hour)}, f.next("nightly", 1))
	f.inSync(false, j)
}
