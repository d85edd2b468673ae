package recurrence_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job/recurrence"
)

// ruledZones change their clocks by a rule: by an hour east and west of Greenwich,
// at and before midnight, in the southern summer, by half an hour, by two hours,
// with a winter time that is called the exception.
var ruledZones = []string{
	"America/Los_Angeles", "America/New_York", "America/St_Johns", "America/Havana", "America/Santiago", "America/Nuuk",
	"Europe/London", "Europe/Dublin", "Europe/Prague", "Europe/Chisinau", "Asia/Beirut", "Asia/Jerusalem", "Africa/Cairo",
	"Atlantic/Azores", "Australia/Sydney", "Australia/Lord_Howe", "Pacific/Auckland", "Pacific/Chatham", "Pacific/Easter",
	"Antarctica/Troll",
}

// transitionsOf are the times at which clocks change in some years.
func transitionsOf(zone *time.Location, from, years int) []time.Time {
	var list []time.Time
	at := time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC)
	for last := at.AddDate(years, 0, 0); ; {
		_, at = at.In(zone).ZoneBounds()
		if at.IsZero() || at.After(last) {
			return list
		}
		list = append(list, at)
	}
}

// TestDailyJobsStartOnceADay goes through all times of the day around all changes of
// the clocks.
func TestDailyJobsStartOnceADay(t *testing.T) {
	t.Parallel()
	const date = "2006-01-02"
	for _, name := range ruledZones {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		transitions := transitionsOf(zone, 2026, 10)
		require.Len(t, transitions, 20, name)
		for minute := 0; minute < 24*60; minute += 30 {
			r := recurrence.Rule{Cron: fmt.Sprintf("%d %d * * *", minute%60, minute/60), TimeZone: name}
			starts := times(t, r)
			for _, transition := range transitions {
				counts := map[string]int{}
				for at := range starts.After(transition.Add(-5 * 24 * time.Hour)) {
					if at.After(transition.Add(5 * 24 * time.Hour)) {
						break
					}
					counts[at.In(zone).Format(date)]++
				}
				for n := -3; n <= 3; n++ {
					on := transition.In(zone).AddDate(0, 0, n).Format(date)
					require.Equal(t, 1, counts[on], "%s in %s on %s", r.Cron, name, on)
				}
			}
		}
	}
}

// TestEveryNamedTimeHasOneStart goes through whole years of random jobs at fixed
// times: there are as many starts as times that the cron text names, and those that
// clocks neither skip nor repeat are at them.
func TestEveryNamedTimeHasOneStart(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // Any number will do.
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // Not a secret.
	pick := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	for range 300 {
		r := recurrence.Rule{TimeZone: ruledZones[random.IntN(len(ruledZones)-1)]} // Of Troll, two times may come to one.
		r.Cron = strings.Join([]string{
			pick("0", "30", "59", "45"),
			pick("0", "1", "2", "3", "22", "23", "0,12", "1,3", "*/2", "1-23/2", "1,4,23", "2,22"),
			pick("*", "*", "1-15", "*/5", "8,25-31", "13"), pick("*", "*", "3,10", "4,9-11"), pick("*", "*", "sun", "0,6", "mon-fri", "*/3", "thu,sat"),
		}, " ")
		if r.TimeZone == "Australia/Lord_Howe" && strings.Contains(r.Cron, ",") {
			continue // Nor where clocks change by half an hour.
		}
		cron, err := recurrence.ParseCron(r.Cron)
		require.NoError(t, err)
		zone, err := time.LoadLocation(r.TimeZone)
		require.NoError(t, err)
		first := time.Date(2026+random.IntN(40), 1, 10, 0, 0, 0, 0, time.UTC)
		last := first.AddDate(1, 0, 0)
		named := map[time.Time]bool{}
		for date := first; date.Before(last); date = date.AddDate(0, 0, 1) {
			for _, hour := range cron.Hours {
				for _, minute := range cron.Minutes {
					if at := date.Add(time.Duration(hour*60+minute) * time.Minute); shows(cron, at) {
						named[at] = true
					}
				}
			}
		}
		count := len(named)
		others := 0
		for at := range times(t, r).After(first.Add(-24 * time.Hour)) {
			_, offset := at.In(zone).Zone()
			local := at.Add(time.Duration(offset) * time.Second)
			if !local.Before(last) {
				break
			}
			if local.Before(first) {
				continue
			}
			count--
			if !named[local] {
				others++
				require.True(t, nearChange(at.Add(12*time.Hour), zone), "%s in %s at %s", r.Cron, r.TimeZone, at.In(zone))
			}
			delete(named, local)
		}
		require.Zero(t, count, "%s in %s from %s", r.Cron, r.TimeZone, first)
		require.Len(t, named, others)
		require.LessOrEqual(t, others, 2)
	}
}

func TestJobsThatClocksChangeAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cron, zone string
		moved, out int
	}{
		{"30 2 * * *", "America/Los_Angeles", 1, 0},
		{"30 1 * * *", "America/Los_Angeles", 1, 1},
		{"30 1 * * *", "Africa/Cairo", 0, 0},
		{"30 2 * * mon-fri", "America/Los_Angeles", 0, 0},
		{"30 2 * 4-9 *", "America/Los_Angeles", 0, 0},
		{"30 4 * * *", "America/Los_Angeles", 0, 0},
		{"30 2 * * *", "UTC", 0, 0},
		{"30 2 * * *", "Africa/Casablanca", 0, 0},
		{"30 1,2 * * *", "America/Los_Angeles", 0, 0},
		{"0 0,23 * * *", "Africa/Cairo", 0, 0},
		{"*/15 * * * *", "America/Los_Angeles", 0, 0},
		{"0 1,3 * * *", "Antarctica/Troll", 0, 0},
		{"0 1 * * *", "Europe/Prague", 0, 1},
		{"30 0 * * *", "America/Santiago", 1, 1},
	} {
		found := times(t, recurrence.Rule{Cron: c.cron, TimeZone: c.zone}).Calendars()
		require.Len(t, found.Named, 1)
		require.Len(t, found.Moved, c.moved, "%s %s", c.cron, c.zone)
		require.Len(t, found.Excluded, c.out, "%s %s", c.cron, c.zone)
	}
	second := []int{8, 9, 10, 11, 12, 13, 14}
	require.Equal(t, []recurrence.Calendar{{Minutes: []int{30}, Hours: []int{3}, DaysOfMonth: second, Months: []int{3}, Weekdays: []int{0}}},
		times(t, recurrence.Rule{Cron: "30 2 * * *", TimeZone: "America/Los_Angeles"}).Calendars().Moved)
}

// TestLimitsChangeNoCalendars has rules that start and end far from the years whose
// transitions are looked at: their calendars are those of the rule without limits.
func TestLimitsChangeNoCalendars(t *testing.T) {
	t.Parallel()
	for _, name := range ruledZones {
		for _, cron := range []string{"30 2 * * *", "30 1 * * *", "0 0 * * 0"} {
			rule := recurrence.Rule{Cron: cron, TimeZone: name}
			want := times(t, rule).Calendars()
			rule.StartAt = time.Date(2090, 3, 12, 0, 0, 0, 0, time.UTC)
			rule.EndAt = rule.StartAt.AddDate(1, 0, 0)
			require.Equal(t, want, times(t, rule).Calendars(), "%s in %s", cron, name)
			require.NotEmpty(t, want.Named, "%s in %s", cron, name)
		}
	}
}
