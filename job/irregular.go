package job

import (
	"cmp"
	"slices"
	"strings"
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
	// Moved: clocks go past the time, or show it twice, and the start takes place
	// once, at another time: see [Recurring.Cron].
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
		change := turnOf(at, t.zone)
		if shift > 0 {
			list = append(list, t.passed(change)...)
		} else if !t.everyHour(shift) {
			list = append(list, t.repeated(change)...)
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
			if !next.After(at) {
				// In leap years beyond the table of a zone, package time has the year
				// end a day early, and this day at its own beginning.
				at = at.Add(day)
				continue
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

// passed lists what becomes of the times that clocks go past and, where midnight is
// among them, of the whole day: it has no starts at all if the cron text names
// weekdays, and clocks change by no rule.
func (t Times) passed(change turn) []Irregular {
	_, starts := t.startsWithin(change.at.Add(-2*change.shift()), change.at.Add(day))
	var list []Irregular
	for _, shown := range t.namedWithin(change.from, change.from.Add(day)) {
		found := Irregular{Kind: Skipped, At: change.at.UTC(), Local: shown.Format(localLayout)}
		if change.affects(shown) {
			if t.everyHour(change.shift()) {
				continue
			}
			if moved, ok := t.movedStart(change, shown, starts); ok {
				found.Kind, found.At = Moved, moved
			}
		} else {
			if found.At = change.instant(shown); starts[found.At] {
				continue
			}
		}
		if t.within(found.At) {
			list = append(list, found)
		}
	}
	return list
}

// movedStart is the start in place of one that clocks skip or repeat, unless the
// cron text names its time too.
func (t Times) movedStart(change turn, shown time.Time, starts map[time.Time]bool) (time.Time, bool) {
	moved := change.moved(shown)
	at := change.instant(moved)
	return at, starts[at] && !t.named(moved)
}

// repeated lists what becomes of the times that clocks show twice, and the starts
// that there are once more.
func (t Times) repeated(change turn) []Irregular {
	all, starts := t.startsWithin(change.at.Add(-2*change.shift()), change.at.Add(2*change.shift()))
	var list []Irregular
	for _, at := range all {
		shown := face(at, t.zone)
		if !change.affects(shown) {
			continue
		}
		if first, second := change.copies(shown); !t.named(shown) || at.Equal(second) && starts[first] {
			list = append(list, Irregular{Kind: Doubled, At: at, Local: shown.Format(localLayout)})
		}
	}
	for _, shown := range t.namedWithin(change.from, change.to) {
		first, second := change.copies(shown)
		if starts[first] || starts[second] {
			continue
		}
		found := Irregular{Kind: Skipped, At: second, Local: shown.Format(localLayout)}
		if moved, ok := t.movedStart(change, shown, starts); ok {
			found.Kind, found.At = Moved, moved
		}
		if t.within(found.At) {
			list = append(list, found)
		}
	}
	slices.SortFunc(list, func(a, b Irregular) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Local, b.Local)) })
	return list
}
