package job

import (
	"math/bits"
	"time"
)

// lastYear is the last year in which schedules look for a start.
const lastYear = 2100

const (
	minutesPerHour = 60
	hoursPerDay    = 24
)

// calendar names the times at which all its fields match, each a set of bits.
type calendar struct {
	minutes, hours, daysOfMonth, months, weekdays uint64
	zone                                          *time.Location
}

// calendars name the times of a cron text together, as those of its schedule do.
func calendars(cron Cron, zone *time.Location) []calendar {
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

// shows says whether a clock that shows the time is at one of the calendar's times.
func (c calendar) shows(t time.Time) bool {
	return t.Second() == 0 && has(c.minutes, t.Minute()) && has(c.hours, t.Hour()) &&
		has(c.daysOfMonth, t.Day()) && has(c.months, int(t.Month())) && has(c.weekdays, int(t.Weekday()))
}

// clock is a time on the clocks of a zone. repeated says that it is in the
// second of two hours of the same name.
type clock struct {
	year         int
	month        time.Month
	day          int
	hour, minute int
	repeated     bool
}

func (c clock) in(zone *time.Location) time.Time {
	return time.Date(c.year, c.month, c.day, c.hour, c.minute, 0, 0, zone)
}

// next is the first time after a time; zero if there is none up to lastYear.
//
// It takes the steps of the server's calendars (calendar.go in Temporal's
// service/worker/scheduler), since where clocks change its results are these
// steps': an hour that comes twice is gone through twice, a time that does not
// exist is passed over, and both by whole hours, even where clocks change by
// half of one.
func (c calendar) next(after time.Time) time.Time {
	local := after.In(c.zone)
	var at clock
	at.year, at.month, at.day = local.Date()
	at.hour, at.minute = local.Hour(), local.Minute()+1
	at.repeated = local.Add(-time.Hour).Hour() == at.hour
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
			at.hour, at.minute = at.hour+1, 0 // The clocks go past it.
			continue
		}
		if at.repeated {
			found = found.Add(time.Hour)
		}
		return found
	}
}

// carry brings what is beyond its greatest value into the next larger unit.
func (c *clock) carry(zone *time.Location) {
	if c.minute >= minutesPerHour {
		c.minute = 0
		this := c.in(zone)
		c.hour++
		// A next hour that is two hours away comes after a second one like this.
		if !c.repeated && c.in(zone).Sub(this) > time.Hour {
			c.hour--
			c.repeated = true
		} else {
			c.repeated = false
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
func (c calendar) reach(at *clock) bool {
	for !has(c.months, int(at.month)) {
		*at = clock{year: at.year, month: at.month + 1, day: 1}
		if at.month > time.December {
			return false
		}
	}
	for !has(c.daysOfMonth, at.day) || c.weekdays != everyWeekday && !has(c.weekdays, int(at.in(c.zone).Weekday())) {
		*at = clock{year: at.year, month: at.month, day: at.day + 1}
		if at.day > daysIn(at.month, at.year) {
			return false
		}
	}
	if !has(c.hours, at.hour) {
		at.hour, at.minute, at.repeated = following(c.hours, at.hour, hoursPerDay), 0, false
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

// Calendars are the starts of a cron text as a schedule has them: at the times of
// Named and Moved, but not at those of LeftOut.
type Calendars struct {
	// Named has the times that the cron text names.
	Named []Calendar
	// Moved has the starts in place of those that clocks skip or repeat, and LeftOut
	// the times that they repeat: see [Recurring.Cron].
	Moved, LeftOut []Calendar
}

// Calendars gives the times as calendars; none for an interval.
func (t Times) Calendars() Calendars {
	return Calendars{Named: published(t.calendars), Moved: published(t.added), LeftOut: published(t.excluded)}
}

func published(list []calendar) []Calendar {
	var all []Calendar
	for _, c := range list {
		all = append(all, Calendar{
			Minutes: values(c.minutes), Hours: values(c.hours), DaysOfMonth: values(c.daysOfMonth),
			Months: values(c.months), Weekdays: values(c.weekdays),
		})
	}
	return all
}
