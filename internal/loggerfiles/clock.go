package loggerfiles

import (
	"fmt"
	"time"
)

// Clock finds the moments at which a clock in a time zone showed the times of a file.
type Clock struct {
	zone *time.Location
	last time.Time
}

// NewClock makes a clock. The zone is one with a fixed offset for loggers whose clocks
// know no daylight saving time.
func NewClock(zone *time.Location) *Clock { return &Clock{zone: zone} }

// At is the moment at which the clock showed a time, which is given as if it were UTC.
// A time that a zone has twice, when its clocks are set back, is the earlier moment,
// unless that is not after the moment of the call before. A time that a zone does not
// have, when its clocks are set forward, is an error.
func (c *Clock) At(shown time.Time) (time.Time, error) {
	var found time.Time
	// No zone changes twice within two days.
	for _, around := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := shown.Add(around).In(c.zone).Zone()
		at := shown.Add(-time.Duration(offset) * time.Second)
		if _, has := at.In(c.zone).Zone(); has != offset {
			continue
		}
		if found.IsZero() || (at.After(found) && !found.After(c.last)) {
			found = at
		}
	}
	if found.IsZero() {
		return time.Time{}, fmt.Errorf("the time %s does not exist in %s, where clocks were set forward",
			shown.Format("2006-01-02 15:04:05"), c.zone)
	}
	c.last = found
	return found.In(c.zone), nil
}

// FullYear is the year of two digits: 69 to 99 are of the 20th century (POSIX, strptime %y).
func FullYear(digits int) int {
	if digits >= 69 {
		return 1900 + digits
	}
	return 2000 + digits
}

// Timestamp reads a time of the form YYYY-MM-DD HH:MM:SS, with or without a fraction.
// Midnight may also be 24:00:00 of the day that ends.
func Timestamp(text string) (time.Time, error) {
	const form = "2006-01-02 15:04:05"
	midnight := len(text) >= len(form) && text[11:13] == "24"
	parsed := text
	if midnight {
		parsed = text[:11] + "00" + text[13:]
	}
	at, err := time.Parse(form, parsed)
	if err != nil || len(text) < len(form) || (len(text) > len(form) && text[len(form)] != '.') {
		return time.Time{}, fmt.Errorf("the time %.60q is not of the form YYYY-MM-DD HH:MM:SS", text)
	}
	if midnight {
		if at.Minute() != 0 || at.Second() != 0 || at.Nanosecond() != 0 {
			return time.Time{}, fmt.Errorf("the time %.60q is after 24:00:00", text)
		}
		at = at.AddDate(0, 0, 1)
	}
	return at, nil
}
