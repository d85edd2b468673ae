package job

import (
	"slices"
	"time"
)

// Irregularity says what a change of the clocks does to a start.
type Irregularity string

// The irregularities.
const (
	// Skipped: clocks go past the time, and the start does not take place.
	Skipped Irregularity = "skipped"
	// Doubled: clocks go back, and this is one start more than the job names.
	Doubled Irregularity = "doubled"
	// Moved: clocks go past the time by less than an hour, and the start takes
	// place later.
	Moved Irregularity = "moved"
)

// Irregular is a start that a change of the clocks skips, doubles or moves.
type Irregular struct {
	Kind Irregularity `json:"kind"`
	// At is when the start takes place, or when the clocks go past it.
	At time.Time `json:"at"`
	// Local is the time on the clocks: of one skipped or moved, the time that
	// the cron text names. "2027-03-28 02:30".
	Local string `json:"local"`
}

// localLayout is the form of a time on the clocks of a zone.
const localLayout = "2006-01-02 15:04"

// Irregular lists what changes of the clocks after from and up to to do to the
// starts of the job, ordered by time. There is nothing for an interval, which
// does not look at clocks, nor for a cron text of every hour where clocks change
// by whole hours: nobody means a certain hour by it.
func (t Times) Irregular(from, to time.Time) []Irregular {
	if len(t.calendars) == 0 {
		return nil
	}
	var list []Irregular
	for at, shift := range t.changes(from, to) {
		if shift > 0 {
			list = append(list, t.passed(at, shift)...)
		} else if !t.everyHour(shift) {
			list = append(list, t.repeated(at, -shift)...)
		}
	}
	return list
}

// everyHour says that the job starts in every hour, and clocks change by whole ones.
func (t Times) everyHour(shift time.Duration) bool {
	return shift%time.Hour == 0 && t.calendars[0].hours == everyHour
}

// changes gives the times at which clocks change, and by how much: forward is
// positive.
func (t Times) changes(from, to time.Time) func(yield func(time.Time, time.Duration) bool) {
	return func(yield func(time.Time, time.Duration) bool) {
		for at := from; ; {
			_, next := at.In(t.zone).ZoneBounds()
			if next.IsZero() || next.After(to) {
				return
			}
			_, before := next.Add(-time.Second).Zone()
			_, after := next.Zone()
			if shift := time.Duration(after-before) * time.Second; shift != 0 && !yield(next, shift) {
				return
			}
			at = next
		}
	}
}

// named says whether the job names the time that clocks show.
func (t Times) named(clock time.Time) bool {
	return slices.ContainsFunc(t.calendars, func(c calendar) bool { return c.shows(clock) })
}

// within says whether a time is within the limits of the job's starts.
func (t Times) within(at time.Time) bool {
	return at.After(t.start) && (t.end.IsZero() || !at.After(t.end))
}

// passed lists the starts that there are not since clocks go forward: at times
// that do not exist and, where it is midnight that does not, on the whole day if
// the cron text names weekdays.
func (t Times) passed(at time.Time, shift time.Duration) []Irregular {
	starts := map[time.Time]bool{}
	for start := range t.After(at.Add(-time.Second)) {
		if !start.Before(at.Add(day)) {
			break
		}
		starts[start] = true
	}
	var list []Irregular
	// What clocks would show, as if they were in UTC: there the times exist.
	_, offset := at.Add(-time.Second).Zone()
	first := at.UTC().Add(time.Duration(offset) * time.Second)
	for clock := first; clock.Before(first.Add(day)); clock = clock.Add(time.Minute) {
		passed := clock.Before(first.Add(shift))
		if !t.named(clock) || passed && t.everyHour(shift) {
			continue
		}
		found := Irregular{Kind: Skipped, At: at.UTC(), Local: clock.Format(localLayout)}
		exists := time.Date(clock.Year(), clock.Month(), clock.Day(), clock.Hour(), clock.Minute(), 0, 0, t.zone).UTC()
		switch {
		case passed && starts[exists] && exists.In(t.zone).Hour() == clock.Hour():
			found.Kind, found.At = Moved, exists
		case !passed && starts[exists]:
			continue
		case !passed:
			found.At = exists
		}
		if t.within(found.At) {
			list = append(list, found)
		}
	}
	return list
}

// repeated lists the starts that there are once more since clocks go back.
func (t Times) repeated(at time.Time, shift time.Duration) []Irregular {
	var list []Irregular
	before := map[string]bool{}
	for start := range t.After(at.Add(-shift - time.Second)) {
		if !start.Before(at.Add(shift)) {
			break
		}
		local := start.In(t.zone)
		text := local.Format(localLayout)
		if before[text] || !t.named(local) {
			list = append(list, Irregular{Kind: Doubled, At: start, Local: text})
		}
		before[text] = true
	}
	return list
}
