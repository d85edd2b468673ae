package recurrence_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job/recurrence"
)

func times(t testing.TB, r recurrence.Rule) recurrence.Times {
	t.Helper()
	found, err := recurrence.New(r)
	require.NoError(t, err)
	return found
}

// starts are the starts after from and up to to, as clocks in the zone show them.
func starts(t testing.TB, r recurrence.Rule, from, to time.Time) []string {
	t.Helper()
	zone, err := time.LoadLocation(r.TimeZone)
	require.NoError(t, err)
	var texts []string
	for at := range times(t, r).After(from) {
		if at.After(to) {
			break
		}
		texts = append(texts, at.In(zone).Format("01-02 15:04:05 -0700"))
	}
	return texts
}

func every(d time.Duration) recurrence.Rule { return recurrence.Rule{Every: d} }

func TestTimes(t *testing.T) {
	t.Parallel()
	march := time.Date(2027, 3, 27, 12, 0, 0, 0, time.UTC) // The day before clocks go forward in Europe.
	october := time.Date(2027, 10, 30, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	prague := func(cron string) recurrence.Rule { return recurrence.Rule{Cron: cron, TimeZone: "Europe/Prague"} }
	for name, c := range map[string]struct {
		recurring recurrence.Rule
		from      time.Time
		within    time.Duration
		want      []string
	}{
		"interval": {every(8 * time.Hour), march, day, []string{
			"03-27 16:00:00 +0000", "03-28 00:00:00 +0000", "03-28 08:00:00 +0000",
		}},
		"offset": {recurrence.Rule{Every: day, Offset: time.Hour}, march, 2 * day, []string{
			"03-28 01:00:00 +0000", "03-29 01:00:00 +0000",
		}},
		"both limits are starts": {recurrence.Rule{
			Every: time.Hour, Offset: 0, StartAt: march.Add(2 * time.Hour), EndAt: march.Add(3 * time.Hour),
		}, march, day, []string{"03-27 14:00:00 +0000", "03-27 15:00:00 +0000"}},
		"a time that is skipped": {prague("30 2 * * *"), march, 2 * day, []string{"03-28 03:30:00 +0200", "03-29 02:30:00 +0200"}},
		"times that are skipped": {prague("0,30 2 * * *"), march, day, []string{"03-28 03:00:00 +0200", "03-28 03:30:00 +0200"}},
		"hours that follow each other": {prague("30 1,2 * * *"), march, 2 * day, []string{
			"03-28 01:30:00 +0100", "03-29 01:30:00 +0200", "03-29 02:30:00 +0200",
		}},
		"every hour where one is skipped": {prague("0 * * * *"), march.Add(11 * time.Hour), 3 * time.Hour, []string{
			"03-28 01:00:00 +0100", "03-28 03:00:00 +0200", "03-28 04:00:00 +0200",
		}},
		"a time that comes twice": {prague("30 2 * * *"), october, 2 * day, []string{
			"10-31 02:30:00 +0100", "11-01 02:30:00 +0100",
		}},
		"every hour where one comes twice": {prague("0 * * * *"), october.Add(11 * time.Hour), 3 * time.Hour, []string{
			"10-31 02:00:00 +0200", "10-31 03:00:00 +0100",
		}},
		"the hour before the one that comes twice": {prague("0 1 * * *"), october.Add(8 * time.Hour), day, []string{
			"10-31 01:00:00 +0200",
		}},
		"west of Greenwich": {recurrence.Rule{Cron: "30 1 * * *", TimeZone: "America/New_York"}, october.Add(7 * day), day, []string{
			"11-07 02:30:00 -0500",
		}},
		"a day without midnight": {recurrence.Rule{Cron: "0 0,12 * * sun", TimeZone: "America/Havana"}, march.Add(-14 * day), 2 * day, []string{
			"03-14 01:00:00 -0400", "03-14 12:00:00 -0400",
		}},
		"an hour before midnight that comes twice": {
			recurrence.Rule{Cron: "30 23 * * *", TimeZone: "America/Santiago"}, time.Date(2027, 4, 3, 12, 0, 0, 0, time.UTC), 2 * day,
			[]string{"04-03 22:30:00 -0300", "04-04 23:30:00 -0400"},
		},
		"either day":     {recurrence.Rule{Cron: "0 0 13 * fri"}, march, 17 * day, []string{"04-02 00:00:00 +0000", "04-09 00:00:00 +0000", "04-13 00:00:00 +0000"}},
		"29 February":    {recurrence.Rule{Cron: "0 0 29 2 *"}, march, 400 * day, []string{"02-29 00:00:00 +0000"}},
		"over midnight":  {recurrence.Rule{Cron: "59 23 31 12 *"}, march, 365 * day, []string{"12-31 23:59:00 +0000"}},
		"after the end":  {recurrence.Rule{Cron: "* * * * *", EndAt: march}, march, day, nil},
		"before seconds": {recurrence.Rule{Cron: "* * * * *"}, march.Add(time.Nanosecond), time.Minute, []string{"03-27 12:01:00 +0000"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, starts(t, c.recurring, c.from, c.from.Add(c.within)))
		})
	}
}

func TestTimesEnd(t *testing.T) {
	t.Parallel()
	last := time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, r := range []recurrence.Rule{{Cron: "0 0 1 1 *"}, every(time.Hour), {Cron: "0 0 1 1 *", TimeZone: "Pacific/Kiritimati"}} {
		require.Zero(t, times(t, r).Next(last), r)
		require.NotZero(t, times(t, r).Next(last.AddDate(-2, 0, 0)), r)
	}
}

func TestTimesOfWhatIsWrong(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]recurrence.Rule{
		"needs an interval":    {},
		"has 1 fields":         {Cron: "never"},
		"time zone: unknown":   {Cron: "* * * * *", TimeZone: "Europe/Pragu"},
		"at least a second":    {Every: 1},
		"an interval of at le": {Every: time.Hour, Offset: -time.Second},
	} {
		_, err := recurrence.New(r)
		require.ErrorContains(t, err, want)
	}
}

func TestIrregular(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return parsed
	}
	spring, autumn := at("2027-03-28T01:00:00Z"), at("2027-10-31T01:00:00Z")
	for _, c := range []struct {
		cron, zone string
		want       []recurrence.Irregular
	}{
		{"30 2 * * *", "UTC", nil},
		{"30 2 * * *", "Europe/Prague", []recurrence.Irregular{{recurrence.Moved, spring.Add(30 * time.Minute), "2027-03-28 02:30"}}},
		{"0 2,3 * * *", "Europe/Prague", []recurrence.Irregular{{recurrence.Skipped, spring, "2027-03-28 02:00"}}},
		{"0 1,3 * * *", "Europe/Prague", nil},
		// East of Greenwich the server doubles the hour before the one that comes twice.
		{"0 0,1,3 * * *", "Europe/Prague", []recurrence.Irregular{{recurrence.Doubled, autumn.Add(-time.Hour), "2027-10-31 02:00"}}},
		{"30 1 * * *", "America/New_York", []recurrence.Irregular{{recurrence.Moved, at("2027-11-07T07:30:00Z"), "2027-11-07 01:30"}}},
		{"30 0,1 * * *", "America/New_York", []recurrence.Irregular{{recurrence.Doubled, at("2027-11-07T06:30:00Z"), "2027-11-07 01:30"}}},
		{"30 2 * * *", "America/New_York", []recurrence.Irregular{{recurrence.Moved, at("2027-03-14T07:30:00Z"), "2027-03-14 02:30"}}},
		{"30 2 * * *", "Africa/Casablanca", []recurrence.Irregular{
			{recurrence.Skipped, at("2027-03-14T02:00:00Z"), "2027-03-14 02:30"},
		}},
		{"*/15 * * * *", "Europe/Prague", nil},
		{"30 2 * * mon-fri", "Europe/Prague", nil},
		{"*/30 0-12 * * *", "America/Havana", []recurrence.Irregular{
			{recurrence.Skipped, at("2027-03-14T05:00:00Z"), "2027-03-14 00:00"}, {recurrence.Skipped, at("2027-03-14T05:00:00Z"), "2027-03-14 00:30"},
			{recurrence.Doubled, at("2027-11-07T05:00:00Z"), "2027-11-07 00:00"}, {recurrence.Doubled, at("2027-11-07T05:30:00Z"), "2027-11-07 00:30"},
		}},
	} {
		r := recurrence.Rule{Cron: c.cron, TimeZone: c.zone}
		t.Run(c.cron+" "+c.zone, func(t *testing.T) {
			require.Equal(t, c.want, times(t, r).Irregular(from, from.AddDate(1, 0, 0)))
		})
	}
	require.Empty(t, times(t, every(time.Hour)).Irregular(from, from.AddDate(1, 0, 0)))
	santiago := recurrence.Rule{Cron: "0 */6 * * sun", TimeZone: "America/Santiago"}
	require.Equal(t, []recurrence.Irregular{{recurrence.Moved, at("2027-09-05T04:00:00Z"), "2027-09-05 00:00"}},
		times(t, santiago).Irregular(from, at("2027-09-30T00:00:00Z")))
	lost := times(t, recurrence.Rule{Cron: "0 */6,1 * * sun", TimeZone: "America/Santiago"}).Irregular(from, at("2027-09-30T00:00:00Z"))
	require.Equal(t, []recurrence.Irregular{ // The server takes the day that starts at one o'clock for a Saturday.
		{recurrence.Skipped, at("2027-09-05T04:00:00Z"), "2027-09-05 00:00"}, {recurrence.Skipped, at("2027-09-05T04:00:00Z"), "2027-09-05 01:00"},
		{recurrence.Skipped, at("2027-09-05T09:00:00Z"), "2027-09-05 06:00"}, {recurrence.Skipped, at("2027-09-05T15:00:00Z"), "2027-09-05 12:00"},
		{recurrence.Skipped, at("2027-09-05T21:00:00Z"), "2027-09-05 18:00"},
	}, lost)
	limited := recurrence.Rule{Cron: "30 2 * * *", TimeZone: "Europe/Prague", StartAt: spring.Add(time.Hour), EndAt: autumn}
	require.Empty(t, times(t, limited).Irregular(from, from.AddDate(1, 0, 0)))
	half := times(t, recurrence.Rule{Cron: "15 2 * * *", TimeZone: "Australia/Lord_Howe"}).Irregular(from, from.AddDate(1, 0, 0))
	require.Len(t, half, 1)
	require.Equal(t, recurrence.Moved, half[0].Kind)
}

// wholeHourZones change their clocks by whole hours, at midnight too.
var wholeHourZones = []string{
	"UTC", "Europe/Prague", "America/New_York", "America/Havana", "Asia/Beirut", "Africa/Cairo", "America/Santiago",
	"Pacific/Auckland", "Asia/Kolkata", "America/St_Johns", "Africa/Casablanca", "Antarctica/Troll",
}

// FuzzTimes compares the starts of cron texts with what clocks show minute by
// minute, near changes of the clocks.
func FuzzTimes(f *testing.F) {
	for n, cron := range []string{"* * * * *", "30 2 * * *", "*/20 0-3 * * *", "0 0 13 * fri", "59 23 1 * *", "0 1,23 * 3,10,11 *"} {
		f.Add(cron, byte(n), uint16(n*100))
	}
	f.Fuzz(func(t *testing.T, text string, zone byte, day uint16) {
		cron, err := recurrence.ParseCron(text)
		if err != nil {
			return
		}
		r := recurrence.Rule{Cron: text, TimeZone: wholeHourZones[int(zone)%len(wholeHourZones)]}
		location, err := time.LoadLocation(r.TimeZone)
		require.NoError(t, err)
		from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(day)%1500)
		if _, change := from.In(location).ZoneBounds(); !change.IsZero() && change.Year() < 2050 {
			from = change.UTC().Truncate(time.Minute).Add(-26 * time.Hour)
		}
		to := from.Add(60 * time.Hour)
		want, got := map[time.Time]bool{}, map[time.Time]bool{}
		for at := from.Add(time.Minute); !at.After(to); at = at.Add(time.Minute) {
			if shows(cron, at.In(location)) && !nearChange(at, location) {
				want[at] = true
			}
		}
		last := from
		for at := range times(t, r).After(from) {
			require.True(t, at.After(last))
			if last = at; at.After(to) {
				break
			}
			if !nearChange(at, location) {
				got[at] = true
			}
		}
		require.Equal(t, want, got)
	})
}

// nearChange reports whether clocks change within some hours, or changed within a day:
// what the server makes of the times there, the tests on the server tell.
func nearChange(at time.Time, zone *time.Location) bool {
	_, before := at.Add(-26 * time.Hour).In(zone).Zone()
	_, after := at.Add(3 * time.Hour).In(zone).Zone()
	return before != after
}

func shows(c recurrence.Cron, at time.Time) bool {
	in := func(values []int, value int) bool {
		for _, v := range values {
			if v == value {
				return true
			}
		}
		return false
	}
	byDate, byWeekday := in(c.DaysOfMonth, at.Day()), in(c.Weekdays, int(at.Weekday()))
	day := byDate && byWeekday || c.EitherDay && (byDate || byWeekday)
	return day && in(c.Months, int(at.Month())) && in(c.Hours, at.Hour()) && in(c.Minutes, at.Minute())
}
