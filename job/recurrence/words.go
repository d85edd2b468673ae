package recurrence

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Words say when a rule recurs, for people. A cron text that has no short sentence stays as
// it is.
func (r Rule) Words() string {
	if r.Cron == "" {
		return "every " + interval(r.Every)
	}
	zone := r.TimeZone
	if zone == "" {
		zone = "UTC"
	}
	cron, err := ParseCron(r.Cron)
	if err != nil {
		return "cron " + r.Cron
	}
	return cron.words(r.Cron) + " " + zone
}

// units are those of an interval, the largest first.
var units = []struct {
	length    time.Duration
	one, many string
}{{day, "day", "d"}, {time.Hour, "hour", "h"}, {time.Minute, "minute", "min"}, {time.Second, "second", "s"}}

// interval is a duration in all its units. One unit alone has no number: every hour.
func interval(d time.Duration) string {
	var parts []string
	for _, u := range units {
		if d == u.length {
			return u.one
		}
	}
	for _, u := range units {
		if n := d / u.length; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, u.many))
			d -= n * u.length
		}
	}
	return strings.Join(parts, " ")
}

// words say when a cron text matches.
func (c Cron) words(text string) string {
	everyDay, everyMonth, everyWeekday := len(c.DaysOfMonth) == 31, len(c.Months) == 12, len(c.Weekdays) == 7
	at, ok := c.timesOfDay()
	if !ok || !everyMonth || !everyDay && !everyWeekday {
		return "cron " + text
	}
	switch {
	case !everyWeekday:
		return weekdays(c.Weekdays) + " " + at
	case !everyDay:
		return "on day " + numbers(c.DaysOfMonth) + " of the month " + at
	case len(c.Hours) == 24:
		return at
	}
	return "daily " + at
}

// mostTimes is how many times of day a sentence has.
const mostTimes = 4

// timesOfDay say at which times of day a cron text matches, if these are few.
func (c Cron) timesOfDay() (string, bool) {
	switch {
	case len(c.Hours) == 24 && len(c.Minutes) == 60:
		return "every minute", true
	case len(c.Hours) == 24 && len(c.Minutes) <= mostTimes:
		return "at minute " + numbers(c.Minutes) + " of each hour", true
	case len(c.Hours)*len(c.Minutes) > mostTimes:
		return "", false
	}
	var times []string
	for _, hour := range c.Hours {
		for _, minute := range c.Minutes {
			times = append(times, fmt.Sprintf("%02d:%02d", hour, minute))
		}
	}
	return "at " + strings.Join(times, ", "), true
}

// weekdays are their names from Monday on; more than two in a row are a range.
func weekdays(days []int) string {
	const sunday = 7
	names := [...]string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
	var numbers []int
	for _, n := range days {
		if n == 0 {
			n = sunday
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	if n := len(numbers); n > 2 && numbers[n-1]-numbers[0] == n-1 {
		return names[numbers[0]-1] + " to " + names[numbers[n-1]-1]
	}
	var words []string
	for _, n := range numbers {
		words = append(words, names[n-1])
	}
	return strings.Join(words, ", ")
}

func numbers(values []int) string {
	var words []string
	for _, n := range values {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ", ")
}
