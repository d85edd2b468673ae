package job_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
)

func TestMisfireValidate(t *testing.T) {
	t.Parallel()
	hourly := func(overlap job.Overlap, misfire job.Misfire) job.Recurring {
		return job.Recurring{RecurEvery: job.Duration(time.Hour), Overlap: overlap, Misfire: misfire}
	}
	with := func(r job.Recurring, change func(*job.Recurring)) job.Recurring {
		change(&r)
		return r
	}
	refused := map[job.Misfire][]job.Overlap{
		job.MisfireOnce: {job.OverlapBufferOne, job.OverlapCancelOther, job.OverlapTerminateOther},
		job.MisfireAll:  {job.OverlapSkip, job.OverlapBufferOne, job.OverlapCancelOther, job.OverlapTerminateOther},
	}
	for _, misfire := range append(job.Misfires(), "") {
		for _, overlap := range append(job.Overlaps(), "") {
			problems := validate(hourly(overlap, misfire))
			want := 0
			for _, o := range refused[misfire] {
				if o == overlap {
					want = 1
				}
			}
			require.Len(t, problems, want, "%s %s", misfire, overlap)
		}
	}
	for want, r := range map[string]job.Recurring{
		`recurring.misfire: "never" is not one of skip, once, all`:                                                                              hourly("", "never"),
		`recurring.misfire: all goes with overlap buffer_all or allow_all: with skip missed starts are dropped`:                                 hourly(job.OverlapSkip, job.MisfireAll),
		`recurring.misfire: once goes with overlap skip, buffer_all or allow_all: with buffer_one it cannot be told how many missed starts run`: hourly(job.OverlapBufferOne, job.MisfireOnce),
		`recurring.max_missed: max_missed goes with misfire all`:                                                                                with(hourly("", ""), func(r *job.Recurring) { r.MaxMissed = 3 }),
		`recurring.max_missed: 1001 is more than 1000`:                                                                                          with(hourly("", job.MisfireAll), func(r *job.Recurring) { r.MaxMissed = 1001 }),
		`recurring.max_missed: -1 is less than 1`:                                                                                               with(hourly("", job.MisfireAll), func(r *job.Recurring) { r.MaxMissed = -1 }),
		`recurring.catchup_window: catchup_window does not go with misfire skip, which makes up for nothing`: with(hourly("", job.MisfireSkip), func(r *job.Recurring) {
			r.CatchupWindow = job.Duration(time.Minute)
		}),
		`recurring.jitter: jitter does not go with misfire once and overlap allow_all, where a start gives way to a later one that is due`: with(hourly(job.OverlapAllowAll, job.MisfireOnce), func(r *job.Recurring) {
			r.Jitter = 1
		}),
		`recurring.misfire: 3 is fewer than the starts that PT10S may hold, the least catch-up window that is possible: raise max_missed`: {
			RecurEvery: 3e9, Misfire: job.MisfireAll, MaxMissed: 3,
		},
	} {
		require.Equal(t, []string{want}, validate(r), want)
	}
	require.Empty(t, validate(job.Recurring{RecurEvery: 3e9, Misfire: job.MisfireAll, MaxMissed: 4}))
}

func TestCatchupOfMisfire(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	all := func(r job.Recurring, most int) job.Recurring {
		r.Misfire, r.MaxMissed, r.Overlap = job.MisfireAll, most, job.OverlapAllowAll
		return r
	}
	cron := func(text, zone string) job.Recurring { return job.Recurring{Cron: text, TimeZone: zone} }
	for _, c := range []struct {
		name      string
		recurring job.Recurring
		want      time.Duration
	}{
		{"skip", job.Recurring{RecurEvery: job.Duration(day), Misfire: job.MisfireSkip}, 10 * time.Second},
		{"once", job.Recurring{RecurEvery: job.Duration(day), Misfire: job.MisfireOnce}, 2 * day},
		{"once, shorter", job.Recurring{RecurEvery: job.Duration(day), Misfire: job.MisfireOnce, CatchupWindow: 1e10}, 10 * time.Second},
		{"all", all(every(3*time.Second), 12), 36*time.Second - time.Millisecond},
		{"all, waiting", job.Recurring{RecurEvery: 3e9, Misfire: job.MisfireAll, MaxMissed: 12}, 96*time.Second - time.Millisecond},
		{"all, waiting long", job.Recurring{RecurEvery: job.Duration(day), Misfire: job.MisfireAll, MaxMissed: 2}, 4*day - 2*time.Millisecond},
		{"all, waiting for a year at most", job.Recurring{RecurEvery: job.Duration(day), Misfire: job.MisfireAll, MaxMissed: 200}, 365 * day},
		{"all by default", all(every(time.Hour), 0), 100*time.Hour - time.Millisecond},
		{"all, a year at most", all(every(7*day), 1000), 365*day - time.Millisecond},
		{"all with jitter", all(job.Recurring{RecurEvery: job.Duration(time.Hour), Jitter: job.Duration(time.Minute)}, 2), 119*time.Minute - time.Millisecond},
		{"all, shorter", all(job.Recurring{RecurEvery: job.Duration(time.Hour), CatchupWindow: job.Duration(time.Hour)}, 2), time.Hour},
		{"all, longer", all(job.Recurring{RecurEvery: job.Duration(time.Hour), CatchupWindow: job.Duration(day)}, 2), 2*time.Hour - time.Millisecond},
		{"office hours", all(cron("0 9-17 * * 1-5", ""), 3), 3*time.Hour - time.Millisecond},
		{"office days", all(cron("0 9-17 * * 1-5", ""), 9), day - time.Millisecond},
		{"months", all(cron("0 0 1 * *", ""), 1), 28*day - time.Millisecond},
		{"years", all(cron("0 0 1 1 *", ""), 1), 365*day - time.Millisecond},
		{"clocks that go forward", all(cron("0 12 * * *", "Europe/Prague"), 1), 23*time.Hour - time.Millisecond},
		{"a start that is not doubled", all(cron("0 1 * * *", "Europe/Prague"), 1), 23*time.Hour - time.Millisecond},
		{"starts that are moved", all(cron("30 1,4 * * *", "America/New_York"), 1), 2*time.Hour - time.Millisecond},
		{"a start that is moved back", all(cron("0 20,23 * * *", "America/Santiago"), 1), 2*time.Hour - time.Millisecond},
		{"once, moved", cron("30 1 * * sun", "America/New_York"), 7*day + 2*time.Hour},
		{"once, not moved", cron("30 4 * * sun", "America/New_York"), 7*day + time.Hour},
		{"minutes", all(cron("* * * * *", "Europe/Prague"), 1000), 1000*time.Minute - time.Millisecond},
		{"in no month of the reference", all(cron("0 0 29 2 *", ""), 1), 365*day - time.Millisecond},
	} {
		require.Equal(t, c.want, c.recurring.Catchup().Std(), c.name)
	}
}

func TestGivesWayTo(t *testing.T) {
	t.Parallel()
	due := time.Unix(3600, 0).UTC()
	r := job.Recurring{RecurEvery: 3e9, Offset: pointer(0), Misfire: job.MisfireOnce, Overlap: job.OverlapAllowAll}
	require.Zero(t, r.GivesWayTo("", due, due.Add(3*time.Second-1)))
	require.Equal(t, due.Add(3*time.Second), r.GivesWayTo("", due, due.Add(3*time.Second)))
	require.Equal(t, due.Add(3*time.Second), r.GivesWayTo("", due, due.Add(time.Hour)))
	r.EndAt = due
	require.Zero(t, r.GivesWayTo("", due, due.Add(time.Hour)), "there is no later start")

	skip := job.Recurring{RecurEvery: 3e9, Offset: pointer(0), Misfire: job.MisfireSkip, Jitter: 1e9}
	require.Zero(t, skip.GivesWayTo("", due, due.Add(4*time.Second-1)))
	require.Equal(t, due.Add(3*time.Second), skip.GivesWayTo("", due, due.Add(4*time.Second)))
	require.Zero(t, skip.GivesWayTo("", due, due.Add(2*time.Minute)), "asked for by hand")

	all := job.Recurring{RecurEvery: 3e9, Offset: pointer(0), Misfire: job.MisfireAll, MaxMissed: 12}
	require.Zero(t, all.GivesWayTo("", due, due.Add(36*time.Second-1)))
	require.Equal(t, due.Add(36*time.Second), all.GivesWayTo("", due, due.Add(40*time.Second)))
	require.Zero(t, all.GivesWayTo("", due, due.Add(time.Hour)), "asked for by hand")

	for _, misfire := range append(job.Misfires(), "") {
		for _, overlap := range append(job.Overlaps(), "") {
			r := job.Recurring{RecurEvery: 3e9, Misfire: misfire, Overlap: overlap}
			want := map[job.Misfire][]job.Overlap{
				job.MisfireSkip: {"", job.OverlapSkip, job.OverlapAllowAll},
				job.MisfireOnce: {job.OverlapBufferAll, job.OverlapAllowAll},
				job.MisfireAll:  {"", job.OverlapBufferAll},
			}[misfire]
			require.Equal(t, len(want) > 0 && contains(want, overlap), r.GivesWay(), "%s %s", misfire, overlap)
		}
	}
}

func contains(list []job.Overlap, overlap job.Overlap) bool {
	for _, o := range list {
		if o == overlap {
			return true
		}
	}
	return false
}

// FuzzCatchup checks that the window of misfire all never holds more starts than
// its limit, and nearly holds one more.
func FuzzCatchup(f *testing.F) {
	zones := []string{
		"UTC", "Europe/Prague", "America/New_York", "America/Havana", "Asia/Beirut", "America/Santiago",
		"Pacific/Auckland", "Asia/Kolkata", "America/St_Johns", "Antarctica/Troll",
	}
	f.Add("0 9-17 * * mon-fri", byte(1), uint16(9), uint16(300))
	f.Add("*/7 * 13 * fri", byte(3), uint16(40), uint16(60))
	f.Add("0 1 * * *", byte(1), uint16(2), uint16(301))
	f.Add("0 12 1 * *", byte(1), uint16(6), uint16(301))
	f.Fuzz(func(t *testing.T, text string, zone byte, most, day uint16) {
		r := job.Recurring{Cron: text, TimeZone: zones[int(zone)%len(zones)], Misfire: job.MisfireAll, MaxMissed: 1 + int(most)%1000, Overlap: job.OverlapAllowAll}
		if len(validate(r)) > 0 {
			return
		}
		window := r.Catchup().Std()
		require.GreaterOrEqual(t, window, 10*time.Second)
		require.LessOrEqual(t, window, 365*24*time.Hour)
		from := time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(day)%360)
		times, err := r.Times("")
		require.NoError(t, err)
		first := times.Next(from)
		if first.IsZero() || first.Year() != 2028 {
			return // Beyond the reference year.
		}
		count := 0
		for at := range times.After(first.Add(-1)) {
			if at.After(first.Add(window)) {
				break
			}
			count++
			require.LessOrEqual(t, count, r.MaxMissed)
		}
	})
}
