package job

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Deadline is a time of each day, by which a job has a success.
type Deadline struct {
	// Time is the hour and the minute: 06:00. Required.
	Time string `json:"time" pattern:"^([01][0-9]|2[0-3]):[0-5][0-9]$" example:"06:00" help:"the hour and the minute"`
	// TimeZone is the IANA name of the zone of Time. Defaults to UTC.
	TimeZone string `json:"time_zone,omitempty" default:"UTC" example:"Europe/Prague" help:"the zone of the time, by its IANA name"`
}

var timeOfDayPattern = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)

// ParseDeadline reads what [Deadline.String] writes.
func ParseDeadline(text string) (Deadline, error) {
	at, zone, _ := strings.Cut(text, " ")
	d := Deadline{Time: at, TimeZone: zone}
	return d, errors.Join(checkTimeOfDay(d.Time), checkZone(d.Zone()))
}

// String is the time with the zone: 06:00 Europe/Prague.
func (d Deadline) String() string { return d.Time + " " + d.Zone() }

// Zone is TimeZone or its default.
func (d Deadline) Zone() string {
	if d.TimeZone == "" {
		return "UTC"
	}
	return d.TimeZone
}

func checkTimeOfDay(text string) error {
	if !timeOfDayPattern.MatchString(text) {
		return fmt.Errorf("%.80q is not a time of day, such as 06:00 or 23:30", text)
	}
	return nil
}

// Latest gives the latest deadline that is not after a time, and the one of the day
// before. Where clocks show the time twice, the second one counts; a time that clocks
// skip is that of the clock before the change. It fails for what is not valid.
func (d Deadline) Latest(now time.Time) (latest, before time.Time, err error) {
	zone, err := time.LoadLocation(d.Zone())
	if err == nil {
		err = checkTimeOfDay(d.Time)
	}
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	clock, err := time.Parse("15:04", d.Time)
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	year, month, day := now.In(zone).Date()
	on := func(days int) time.Time {
		return instant(time.Date(year, month, day+days, clock.Hour(), clock.Minute(), 0, 0, time.UTC), zone)
	}
	for days := 1; ; days-- { // Skipped hours may move a deadline into the next day.
		if latest = on(days); !latest.After(now) {
			return latest, on(days - 1), nil
		}
	}
}

// instant is when the clocks of a zone show what a time shows in UTC.
func instant(shown time.Time, zone *time.Location) time.Time {
	at := func(nearby time.Time) (time.Time, bool) {
		_, offset := nearby.In(zone).Zone()
		found := shown.Add(-time.Duration(offset) * time.Second)
		_, there := found.In(zone).Zone()
		return found, there == offset
	}
	// No zone changes its clocks twice within two days.
	byOld, shownByOld := at(shown.Add(-24 * time.Hour))
	byNew, shownByNew := at(shown.Add(24 * time.Hour))
	if shownByNew && (!shownByOld || byNew.After(byOld)) {
		return byNew
	}
	return byOld
}

// Late says since when the latest success is older than freshness. A job without any
// success is measured from when it was known first.
func Late(freshness Duration, lastSuccess, known, now time.Time) (since time.Time, late bool) {
	if lastSuccess.IsZero() {
		lastSuccess = known
	}
	if freshness <= 0 || lastSuccess.IsZero() {
		return time.Time{}, false
	}
	since = lastSuccess.Add(freshness.Std())
	return since, now.After(since)
}

// Missed says which deadline passed without a success since the one before it. A success
// after it ends that. A job that was not known at the deadline before has missed none.
func (d Deadline) Missed(lastSuccess, known, now time.Time) (deadline time.Time, missed bool) {
	latest, before, err := d.Latest(now)
	if err != nil {
		return time.Time{}, false
	}
	if lastSuccess.IsZero() {
		lastSuccess = known
	}
	return latest, !lastSuccess.IsZero() && !lastSuccess.After(before)
}

// Inherits reports whether a job of the mode takes an option from those that several jobs
// share. One that is for other modes alone is left out.
func Inherits(mode Mode, option string) bool {
	return watched(mode) || option != "freshness" && option != "deadline"
}

// watched reports whether freshness and deadlines are for jobs of the mode.
func watched(mode Mode) bool { return mode == ModeRecurring || mode == ModeContinuous }

func (v *validator) limits(mode Mode, o Options) {
	for _, option := range []struct {
		name string
		set  bool
	}{{"freshness", o.Freshness != 0}, {"deadline", o.Deadline != nil}} {
		if option.set && mode != "" && !watched(mode) {
			v.atKey([]string{option.name}, fmt.Sprintf("%s goes with recurring and continuous jobs: a %s job runs once", option.name, mode))
		}
	}
	if o.Deadline == nil {
		return
	}
	if err := checkTimeOfDay(o.Deadline.Time); err != nil {
		v.at([]string{"deadline", "time"}, "%s", err)
	}
	if err := checkZone(o.Deadline.Zone()); err != nil {
		v.at([]string{"deadline", "time_zone"}, "%s", err)
	}
}
