package schedules_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	schedulepb "go.temporal.io/api/schedule/v1"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

func (f *fixture) next(key string, count int) []time.Time {
	f.Helper()
	next, err := f.client.Jobs.NextStarts(f.Context(), "do_nothing."+key, count)
	require.NoError(f, err)
	return next.Starts
}

// skipNext skips the first start for which it is not too late.
func (f *fixture) skipNext(key string) time.Time {
	f.Helper()
	var result *client.SkipResult
	stacktest.WaitFor(f, "a start to be skipped in time", func() (skipped bool, err error) {
		result, err = f.client.Jobs.SkipNext(f.Context(), "do_nothing."+key, "a test")
		return err == nil, err
	})
	return result.Skipped
}

func TestSkippedStartsDoNotTakePlaceAndSurviveApply(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	jobs := []job.Job{
		declare("interval", recurring(time.Hour)),
		declare("zone", job.Trigger{Recurring: &job.Recurring{Cron: "30 4 * * *", TimeZone: "Europe/Prague"}}),
		declare("jitter", job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(time.Hour), Jitter: job.Duration(59 * time.Minute)}}),
	}
	f.apply(f.plan(false, jobs...))
	for n, key := range []string{"interval", "zone", "jitter"} {
		before := f.next(key, 6)
		times, err := jobs[n].Recurring.Times(jobs[n].ID)
		require.NoError(t, err)
		first, second := f.skipNext(key), f.skipNext(key)
		require.Equal(t, times.Next(first), second, key)
		require.Equal(t, before[2:], f.next(key, 4), key)
		if key != "jitter" {
			require.Equal(t, before[:2], []time.Time{first, second}, key)
		}
		live, err := f.client.Jobs.LiveSchedule(t.Context(), jobs[n].ID)
		require.NoError(t, err)
		require.Equal(t, "skip-next "+first.Format(time.RFC3339)+" by a test",
			live.Schedule.GetSchedule().GetSpec().GetExcludeStructuredCalendar()[0].GetComment())
	}
	f.inSync(false, jobs...)

	// Another definition, of which the skipped start of the second is one as well.
	skipped, err := f.client.Jobs.NextStarts(t.Context(), jobs[1].ID, 1)
	require.NoError(t, err)
	require.Len(t, skipped.Skipped, 2)
	for n := range jobs {
		jobs[n].Options.Description = "changed"
	}
	jobs[1].Recurring = &job.Recurring{Cron: "*/30 * * * *"}
	f.apply(f.plan(false, jobs...))
	f.inSync(false, jobs...)
	after, err := f.client.Jobs.NextStarts(t.Context(), jobs[1].ID, 1000)
	require.NoError(t, err)
	require.Equal(t, skipped.Skipped, after.Skipped)
	require.NotContains(t, after.Starts, skipped.Skipped[0].At)
	require.Contains(t, after.Starts, skipped.Skipped[0].At.Add(time.Hour))

	// A calendar that only looks like a skipped start is an edit.
	f.editLive("interval", func(s *schedulepb.Schedule) { s.Spec.ExcludeStructuredCalendar[0].Minute = nil })
	stacktest.WaitFor(t, "the edit to show", func() (bool, error) {
		return f.plan(false, jobs...).Count(schedules.ActionUpdate) == 1, nil
	})
}

func TestTwoWhoSkipTheSameStartSkipOne(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	j := declare("both", recurring(time.Hour))
	f.apply(f.plan(false, j))
	before := f.next("both", 8)
	var wait sync.WaitGroup
	results := make([]*client.SkipResult, 2)
	errs := make([]error, 2)
	for n := range results {
		wait.Go(func() { results[n], errs[n] = f.client.Jobs.SkipNext(t.Context(), j.ID, fmt.Sprint(n)) })
	}
	wait.Wait()
	skipped := map[time.Time]bool{}
	for n := range results {
		require.NoError(t, errs[n])
		skipped[results[n].Skipped] = true
	}
	require.True(t, skipped[before[0]])
	require.Equal(t, before[len(skipped):], f.next("both", 8-len(skipped)))
}

func TestASkippedStartDoesNotRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	j := declare("ticks", job.Trigger{Recurring: &job.Recurring{RecurEvery: 4e9, Offset: new(job.Duration)}})
	f.apply(f.plan(false, j))
	skipped := f.skipNext("ticks")
	var due []time.Time
	stacktest.WaitFor(t, "later runs", func() (bool, error) {
		runs, err := f.client.Runs.List(t.Context(), client.RunFilter{JobID: j.ID, Status: client.RunCompleted})
		due = nil
		later := 0
		for _, run := range runs {
			due = append(due, run.Scheduled.UTC())
			if run.Scheduled.After(skipped) {
				later++
			}
		}
		// The list may have a run before those that came before it.
		return later >= 2 && slices.Contains(due, skipped.Add(4*time.Second)), err
	})
	require.NotContains(t, due, skipped)
}

func TestUpcoming(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	daily := job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(24 * time.Hour), StartAt: time.Now().Add(48 * time.Hour)}}
	owned := func(j *job.Job) { j.Options.Owner = job.Owner{User: "me"} }
	jobs := []job.Job{
		declare("often", recurring(time.Second), owned), declare("minutes", recurring(time.Minute)), declare("later", daily),
		declare("paused", recurring(time.Minute), func(j *job.Job) { j.Options.Paused = true }), declare("once", oneShot()),
	}
	f.apply(f.plan(false, jobs...))
	var all *client.Upcoming
	var asked time.Time
	stacktest.WaitFor(t, "the list to have all schedules", func() (bool, error) {
		var err error
		asked = time.Now()
		all, err = f.client.Jobs.Upcoming(t.Context(), asked.Add(40*time.Minute), client.JobFilter{})
		return err == nil && all.Jobs == 2, err
	})
	took := int(time.Since(asked)/time.Second) + 1 // They are counted from some time in it.
	require.LessOrEqual(t, all.Count, 2442)
	require.GreaterOrEqual(t, all.Count, 2438-took)
	require.Len(t, all.Starts, all.Count)
	require.Equal(t, 2, all.PeakCount)
	for n := 1; n < len(all.Starts); n++ {
		require.False(t, all.Starts[n].At.Before(all.Starts[n-1].At))
		require.NotEqual(t, all.Starts[n-1], all.Starts[n])
	}
	asked = time.Now()
	mine, err := f.client.Jobs.Upcoming(t.Context(), asked.Add(time.Minute), client.JobFilter{Owner: "user:me", Type: "DoNothing"})
	require.NoError(t, err)
	took = int(time.Since(asked)/time.Second) + 1
	require.LessOrEqual(t, mine.Count, 61)
	require.GreaterOrEqual(t, mine.Count, 59-took)
	require.Equal(t, "user:me", mine.Starts[0].Owner)
}

func TestBackfill(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	hourly := job.Recurring{RecurEvery: job.Duration(time.Hour), Offset: new(job.Duration)}
	once, skip := hourly, hourly
	once.Misfire, once.Overlap = job.MisfireOnce, job.OverlapBufferAll
	skip.Misfire = job.MisfireSkip
	jobs := []job.Job{
		declare("hourly", job.Trigger{Recurring: &hourly}, paused), declare("gives-way", job.Trigger{Recurring: &once}, paused),
		declare("skip", job.Trigger{Recurring: &skip}, paused), declare("loop", continuous(time.Hour)),
	}
	f.apply(f.plan(false, jobs...))
	for want, call := range map[string]struct {
		key      string
		from, to time.Time
	}{
		"not found": {"nothing", from, from},
		"job do_nothing.loop: continuous jobs do not support backfill": {"loop", from, from},
		"is after the time up to which":                                {"hourly", from, from.Add(-1)},
		"is not past":                                                  {"hourly", from, time.Now().Add(time.Hour)},
		"more than 1000 starts":                                        {"hourly", from, from.Add(1000 * time.Hour)},
		"with misfire once and overlap buffer_all it gives way to later ones":  {"gives-way", from, from},
		"with misfire skip, a start of the last 2 min gives way to later ones": {"skip", from, time.Now()},
	} {
		_, err := f.client.Jobs.Backfill(t.Context(), "do_nothing."+call.key, call.from, call.to)
		require.ErrorContains(t, err, want)
	}
	for _, key := range []string{"hourly", "skip"} {
		starts, err := f.client.Jobs.Backfill(t.Context(), "do_nothing."+key, from, from.Add(3*time.Hour))
		require.NoError(t, err)
		require.Len(t, starts, 4)
	}
	none, err := f.client.Jobs.Backfill(t.Context(), jobs[0].ID, from.Add(time.Second), from.Add(time.Minute))
	require.NoError(t, err)
	require.Empty(t, none)
	for _, key := range []string{"hourly", "skip"} {
		var runs []client.Run
		stacktest.WaitFor(t, "the runs of "+key, func() (bool, error) {
			var err error
			runs, err = f.client.Runs.List(t.Context(), client.RunFilter{JobID: "do_nothing." + key, Status: client.RunCompleted})
			return len(runs) == 4, err
		})
		for n, run := range runs { // The latest first.
			require.Equal(t, from.Add(time.Duration(3-n)*time.Hour), run.Scheduled.UTC(), key)
			detail, err := f.client.Runs.Get(t.Context(), run.RunRef)
			require.NoError(t, err)
			require.Zero(t, detail.Output.SupersededBy)
		}
	}
	f.inSync(false, jobs...)
}

func TestNextStartsOfWhatHasNone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	over := declare("over", recurring(time.Hour))
	f.apply(f.plan(false, over, declare("once", oneShot())))
	over.Recurring.EndAt = time.Now().Add(-time.Minute)
	f.apply(f.plan(false, over))
	require.Empty(t, f.next("over", 10))
	_, err := f.client.Jobs.SkipNext(t.Context(), over.ID, "")
	require.EqualError(t, err, "job do_nothing.over has no start to skip: its schedule has ended")
	_, err = f.client.Jobs.NextStarts(t.Context(), "do_nothing.once", 1)
	require.EqualError(t, err, "job do_nothing.once: one-shot jobs do not support listing starts")
	_, err = f.client.Jobs.NextStarts(t.Context(), "do_nothing.none", 1)
	require.ErrorIs(t, err, client.ErrNotFound)
}
