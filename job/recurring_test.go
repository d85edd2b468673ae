package job_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
)

func pointer(d time.Duration) *job.Duration { return new(job.Duration(d)) }

func every(d time.Duration) job.Recurring { return job.Recurring{RecurEvery: job.Duration(d)} }

func TestRecurringValidate(t *testing.T) {
	t.Parallel()
	may := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for name, r := range map[string]job.Recurring{
		"interval": every(time.Second),
		"everything of an interval": {
			RecurEvery: job.Duration(time.Hour), Offset: pointer(59 * time.Minute), Jitter: job.Duration(time.Minute),
			Overlap: job.OverlapBufferAll, CatchupWindow: job.Duration(10 * time.Second),
			StartAt: may, EndAt: may.Add(time.Nanosecond),
		},
		"no offset":          {RecurEvery: job.Duration(time.Second), Offset: pointer(0)},
		"cron":               {Cron: "0 3 * * *"},
		"cron with a zone":   {Cron: "*/15 9-17 * * mon-fri", TimeZone: "America/Los_Angeles", Jitter: job.Duration(14 * time.Minute)},
		"only a start":       {Cron: "0 3 * * *", StartAt: may},
		"an end in the past": {Cron: "0 3 * * *", EndAt: time.Unix(0, 0)},
	} {
		require.Empty(t, validate(r), name)
	}
	for want, r := range map[string]job.Recurring{
		`recurring: no time is set: give it exactly one of recur_every, at least PT1S, and cron`:                  {TimeZone: "UTC"},
		`recurring.cron: recur_every and cron are both set: a recurring job has exactly one`:                      {RecurEvery: 1e9, Cron: "* * * * *"},
		`recurring.recur_every: PT0.5S is shorter than PT1S`:                                                      every(time.Second / 2),
		`recurring.recur_every: PT1.5S is not a whole number of seconds, the resolution of schedules`:             every(1500 * time.Millisecond),
		`recurring.offset: PT1H is not shorter than recur_every, PT1H`:                                            {RecurEvery: job.Duration(time.Hour), Offset: pointer(time.Hour)},
		`recurring.offset: -PT1S is shorter than PT0S`:                                                            {RecurEvery: job.Duration(time.Hour), Offset: pointer(-time.Second)},
		`recurring.offset: PT0.5S is not a whole number of seconds, the resolution of schedules`:                  {RecurEvery: job.Duration(time.Hour), Offset: pointer(time.Second / 2)},
		`recurring.offset: offset goes with recur_every: cron names its times itself`:                             {Cron: "* * * * *", Offset: pointer(0)},
		`recurring.time_zone: time_zone goes with cron: an interval is the same in every zone`:                    {RecurEvery: 1e9, TimeZone: "UTC"},
		`recurring.time_zone: "Europe/Pragu" is not the name of a time zone, such as Europe/Prague or UTC`:        {Cron: "* * * * *", TimeZone: "Europe/Pragu"},
		`recurring.time_zone: "../../etc/localtime" is not the name of a time zone, such as Europe/Prague or UTC`: {Cron: "* * * * *", TimeZone: "../../etc/localtime"},
		`recurring.time_zone: "Local" is not the name of a time zone: machines differ in it`:                      {Cron: "* * * * *", TimeZone: "Local"},
		`recurring.cron: "61 * * * *": minute "61": 61 is not from 0 to 59`:                                       {Cron: "61 * * * *"},
		`recurring.jitter: PT15M is not shorter than the time between two starts, PT15M`:                          {Cron: "*/15 * * * *", Jitter: job.Duration(15 * time.Minute)},
		`recurring.jitter: PT1H is not shorter than the time between two starts, PT1H`:                            {RecurEvery: job.Duration(time.Hour), Jitter: job.Duration(time.Hour)},
		`recurring.jitter: -PT1S is shorter than PT0S`:                                                            {RecurEvery: job.Duration(time.Hour), Jitter: -1e9},
		`recurring.overlap: "queue" is not one of skip, buffer_one, buffer_all, cancel_other, terminate_other, allow_all`: {
			RecurEvery: 1e9, Overlap: "queue",
		},
		`recurring.catchup_window: PT9S is shorter than PT10S`: {RecurEvery: 1e9, CatchupWindow: 9e9},
		`recurring.end_at: 2026-05-01T00:00:00Z is not later than start_at, 2026-05-01T02:00:00+02:00`: {
			RecurEvery: 1e9, EndAt: may, StartAt: may.In(time.FixedZone("", 7200)),
		},
	} {
		require.Equal(t, []string{want}, validate(r), want)
	}
}

func validate(r job.Recurring) []string {
	j := recurring()
	j.Recurring = &r
	var texts []string
	for _, problem := range j.Validate() {
		texts = append(texts, problem.String())
	}
	return texts
}

func TestRecurringReportsAllItsProblems(t *testing.T) {
	t.Parallel()
	require.Len(t, validate(job.Recurring{
		Cron: "61 * * * *", TimeZone: "Nowhere", Offset: pointer(0), Jitter: -1, Overlap: "x", CatchupWindow: 1,
		StartAt: time.Unix(2, 0), EndAt: time.Unix(1, 0),
	}), 7)
}

func TestPeriodAndCatchup(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, c := range []struct {
		recurring       job.Recurring
		period, catchup time.Duration
	}{
		{every(time.Second), time.Second, time.Minute},
		{every(time.Hour), time.Hour, 2 * time.Hour},
		{job.Recurring{RecurEvery: job.Duration(time.Hour), CatchupWindow: 1e10}, time.Hour, 10 * time.Second},
		{job.Recurring{Cron: "* * * * *"}, time.Minute, 2 * time.Minute},
		{job.Recurring{Cron: "0,20 * * * *"}, 20 * time.Minute, 40 * time.Minute},
		{job.Recurring{Cron: "0,50 * * * *"}, 10 * time.Minute, 50 * time.Minute},
		{job.Recurring{Cron: "0 9-17 * * 1-5"}, time.Hour, 64 * time.Hour},
		{job.Recurring{Cron: "0 9-17 * * 1-5", TimeZone: "Europe/Prague"}, time.Hour, 65 * time.Hour},
		{job.Recurring{Cron: "0 9-17 * * 1-5", Overlap: job.OverlapBufferAll}, time.Hour, 2 * time.Hour},
		{job.Recurring{Cron: "30 4 1 * *"}, day, 31 * day},
		{job.Recurring{Cron: "30 4 1 1 *"}, day, 31 * day},
		{job.Recurring{Cron: "30 4 29 2 *"}, day, 31 * day},
		{job.Recurring{Cron: "0 1,23 * * *"}, 2 * time.Hour, 22 * time.Hour},
	} {
		require.Equal(t, c.period, c.recurring.Period().Std(), c.recurring.Cron)
		require.Equal(t, c.catchup, c.recurring.Catchup().Std(), c.recurring.Cron)
	}
	require.Zero(t, job.Recurring{Cron: "never"}.Period())
}

func TestWhatIsNotSetIsNotWritten(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(every(time.Hour))
	require.NoError(t, err)
	require.Equal(t, `{"recur_every":"PT1H"}`, string(text))

	for _, r := range []job.Recurring{
		{Cron: "0 3 * * *", TimeZone: "UTC", Overlap: job.OverlapAllowAll},
		{RecurEvery: 1e9, Offset: pointer(0), StartAt: time.Unix(1, 0).UTC(), EndAt: time.Unix(2, 0).UTC(), CatchupWindow: 1e10, Jitter: 1},
	} {
		text, err := json.Marshal(r)
		require.NoError(t, err)
		var back job.Recurring
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, r, back)
	}
}

// TestHashesOfRecurringJobsStand keeps jobs that are out there as they are: a
// new option changes the hash only of jobs that set it.
func TestHashesOfRecurringJobsStand(t *testing.T) {
	t.Parallel()
	require.Equal(t, "d7cc1d7c56e61772", hash(t, recurring()))
	j := recurring()
	j.Recurring.Offset = pointer(0)
	require.NotEqual(t, hash(t, recurring()), hash(t, j))
}

func TestPhase(t *testing.T) {
	t.Parallel()
	require.Zero(t, every(time.Second).Phase("do_nothing.a"))
	require.Zero(t, job.Recurring{Cron: "* * * * *"}.Phase("do_nothing.a"))
	require.Equal(t, 9*time.Second, job.Recurring{RecurEvery: 1e10, Offset: pointer(9 * time.Second)}.Phase("do_nothing.a").Std())
	require.NotEqual(t, every(time.Hour).Phase("do_nothing.a"), every(time.Hour).Phase("do_nothing.b"))
	times, err := every(8 * time.Hour).Times("do_nothing.a")
	require.NoError(t, err)
	start := time.Date(2027, 3, 27, 12, 18, 35, 0, time.UTC)
	require.Equal(t, start, times.Next(start.Add(-1)))
}
