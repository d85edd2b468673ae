package recurrence

import (
	"math/bits"
	"time"
)

const (
	minutesPerHour = 60
	hoursPerDay    = 24
)

// calendar names the times at which all its fields match, each a set of bits.
type calendar struct {
	minutes, hours, daysOfMonth, months, weekdays uint64
	zone                                          *time.Location
}

// calendarsFor gives the calendars that name the times of a cron text together, as
// those of its Schedule do.
func calendarsFor(cron Cron, zone *time.Location) []calendar {
	c := calendar{
		minutes: bitsOf(cron.Minutes), hours: bitsOf(cron.Hours), daysOfMonth: bitsOf(cron.DaysOfMonth),
		months: bitsOf(cron.Months), weekdays: bitsOf(cron.Weekdays), zone: zone,
	}
	if !cron.EitherDay {
		return []calendar{c}
	}
	byDate, byWeekday := c, c
	byDate.weekdays, byWeekday.daysOfMonth = everyWeekday, everyDay
	return []calendar{byDate, byWeekday}
}

const (
	everyWeekday = 1<<7 - 1
	everyDay     = 1<<32 - 1<<1
	everyHour    = 1<<24 - 1
)

func bitsOf(values []int) uint64 {
	var set uint64
	for _, value := range values {
		set |= 1 << value
	}
	return set
}

func has(set uint64, value int) bool { return set>>value&1 != 0 }

// matches reports whether a clock that shows t is at one of the calendar's times.
func (c calendar) matches(t time.Time) bool {
	return t.Second() == 0 && has(c.minutes, t.Minute()) && has(c.hours, t.Hour()) &&
		has(c.daysOfMonth, t.Day()) && has(c.months, int(t.Month())) && has(c.weekdays, int(t.Weekday()))
}

// wallClock is what a clock in a zone shows. fold is true in the second of two
// hours of the same name (the word is that of PEP 495).
type wallClock struct {
	year         int
	month        time.Month
	day          int
	hour, minute int
	fold         bool
}

func (c wallClock) in(zone *time.Location) time.Time {
	return time.Date(c.year, c.month, c.day, c.hour, c.minute, 0, 0, zone)
}

// next is the first time after a time; zero if there is none up to lastYear.
//
// It takes the steps of the server's calendars (calendar.go in Temporal's
// service/worker/scheduler), since they decide its results near a transition: it
// goes through an hour in an overlap twice and passes over a time in a gap. It
// does both by whole hours, even where clocks change by half of one.
func (c calendar) next(after time.Time) time.Time {
	local := after.In(c.zone)
	var at wallClock
	at.year, at.month, at.day = local.Date()
	at.hour, at.minute = local.Hour(), local.Minute()+1
	at.fold = local.Add(-time.Hour).Hour() == at.hour
	for {
		at.carry(c.zone)
		if at.year > lastYear {
			return time.Time{}
		}
		if !c.reach(&at) {
			continue
		}
		found := at.in(c.zone)
		if found.Hour() != at.hour {
			at.hour, at.minute = at.hour+1, 0 // It is in a gap.
			continue
		}
		if at.fold {
			found = found.Add(time.Hour)
		}
		return found
	}
}

// carry brings what is beyond its greatest value into the next larger unit.
func (c *wallClock) carry(zone *time.Location) {
	if c.minute >= minutesPerHour {
		c.minute = 0
		this := c.in(zone)
		c.hour++
		// If the next hour is two hours away, this hour comes twice.
		if !c.fold && c.in(zone).Sub(this) > time.Hour {
			c.hour--
			c.fold = true
		} else {
			c.fold = false
		}
	}
	if c.hour >= hoursPerDay {
		c.day, c.hour = c.day+1, 0
	}
	if c.day > daysIn(c.month, c.year) {
		c.month, c.day = c.month+1, 1
	}
	if c.month > time.December {
		c.year, c.month = c.year+1, time.January
	}
}

// reach moves on to a time that matches, within its year. It gives false where
// a unit has gone beyond its greatest value.
func (c calendar) reach(at *wallClock) bool {
	for !has(c.months, int(at.month)) {
		*at = wallClock{year: at.year, month: at.month + 1, day: 1}
		if at.month > time.December {
			return false
		}
	}
	for !has(c.daysOfMonth, at.day) || c.weekdays != everyWeekday && !has(c.weekdays, int(at.in(c.zone).Weekday())) {
		*at = wallClock{year: at.year, month: at.month, day: at.day + 1}
		if at.day > daysIn(at.month, at.year) {
			return false
		}
	}
	if !has(c.hours, at.hour) {
		at.hour, at.minute, at.fold = following(c.hours, at.hour, hoursPerDay), 0, false
		if at.hour >= hoursPerDay {
			return false
		}
	}
	at.minute = following(c.minutes, at.minute-1, minutesPerHour)
	return at.minute < minutesPerHour
}

// following is the least member of a set above a value, or most if there is none.
func following(set uint64, value, most int) int {
	return min(value+1+bits.TrailingZeros64(set>>(value+1)), most)
}

func daysIn(month time.Month, year int) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// Calendar names the times at which all its fields match what clocks show.
type Calendar struct {
	Minutes     []int // 0 to 59
	Hours       []int // 0 to 23
	DaysOfMonth []int // 1 to 31
	Months      []int // 1 to 12
	Weekdays    []int // 0 to 6, from Sunday
}

// Calendars are the starts of a cron text as a Schedule has them: at the times of
// Named and Moved, but not at those of Excluded.
type Calendars struct {
	// Named has the times that the cron text names.
	Named []Calendar
	// Moved has the starts in place of those in a gap or an overlap, and Excluded
	// the starts that would be more than one: see [Times.Calendars].
	Moved, Excluded []Calendar
}

// Calendars gives the times of a cron text as calendars; none for an interval.
//
// A time in a gap (a clock skips it) or in an overlap (a clock shows it twice) has
// one start, later by the length of the gap or overlap: 02:30 becomes 03:30. It is
// earlier by as much if later is the next day. This holds unless two hours of the
// cron text follow each other: such a rule, as one of every hour, goes by what
// clocks show. Nor does it hold where transitions follow no rule of weekdays and
// dates, nor where two times would have the same start.
func (t Times) Calendars() Calendars {
	return Calendars{Named: exported(t.calendars), Moved: exported(t.added), Excluded: exported(t.excluded)}
}

func exported(list []calendar) []Calendar {
	var all []Calendar
	for _, c := range list {
		all = append(all, Calendar{
			Minutes: values(c.minutes), Hours: values(c.hours), DaysOfMonth: values(c.daysOfMonth),
			Months: values(c.months), Weekdays: values(c.weekdays),
		})
	}
	return all
}
