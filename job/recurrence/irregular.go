package recurrence

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Irregularity says what a transition of the zone does to a start.
type Irregularity string

// The irregularities.
const (
	// Skipped: the time is in a gap, and the start does not take place.
	Skipped Irregularity = "skipped"
	// Doubled: the time is in an overlap, and this is one start more than the rule names.
	Doubled Irregularity = "doubled"
	// Moved: the time is in a gap or an overlap, and the start takes place once, at
	// another time: see [Times.Calendars].
	Moved Irregularity = "moved"
)

// Irregular is a start that a transition skips, doubles or moves.
type Irregular struct {
	Kind Irregularity `json:"kind"`
	// At is when the start takes place, or when the gap begins that skips it.
	At time.Time `json:"at"`
	// Local is the time on the clocks: of one skipped or moved, the time that
	// the cron text names. "2027-03-28 02:30".
	Local string `json:"local"`
}

// localLayout is the form of a time on the clocks of a zone.
const localLayout = "2006-01-02 15:04"

// Irregular lists what transitions after from and not after to do to the starts of
// the rule, ordered by time. There is nothing for an interval, which does not look
// at clocks, nor for a cron text of every hour where clocks change by whole hours:
// nobody means a certain hour by it.
func (t Times) Irregular(from, to time.Time) []Irregular {
	if len(t.calendars) == 0 {
		return nil
	}
	var list []Irregular
	for change := range transitionsWithin(t.zone, from, to) {
		if change.isGap() {
			list = append(list, t.atGap(change)...)
		} else if !t.everyHour(change) {
			list = append(list, t.atOverlap(change)...)
		}
	}
	return list
}

// everyHour reports whether there are starts in every hour, and clocks change by whole ones.
func (t Times) everyHour(change transition) bool {
	return change.length()%time.Hour == 0 && t.calendars[0].hours == everyHour
}

// named reports whether the cron text names a local time.
func (t Times) named(local time.Time) bool {
	return slices.ContainsFunc(t.calendars, func(c calendar) bool { return c.matches(local) })
}

// within reports whether a time is within the limits of the starts.
func (t Times) within(at time.Time) bool {
	return at.After(t.start) && (t.end.IsZero() || !at.After(t.end))
}

// atGap lists what becomes of the times in a gap and, where midnight is among them,
// of the whole day: it has no starts at all if the cron text names weekdays, and
// the transition follows no rule.
func (t Times) atGap(change transition) []Irregular {
	_, starts := t.startsWithin(change.at.Add(-2*change.length()), change.at.Add(day))
	var list []Irregular
	for _, local := range t.namedWithin(change.from, change.from.Add(day)) {
		found := Irregular{Kind: Skipped, At: change.at.UTC(), Local: local.Format(localLayout)}
		if change.contains(local) {
			if t.everyHour(change) {
				continue
			}
			if moved, ok := t.movedStart(change, local, starts); ok {
				found.Kind, found.At = Moved, moved
			}
		} else {
			if found.At = change.instant(local); starts[found.At] {
				continue
			}
		}
		if t.within(found.At) {
			list = append(list, found)
		}
	}
	return list
}

// movedStart is the start in place of one in a gap or overlap, unless the cron text
// names its time too.
func (t Times) movedStart(change transition, local time.Time, starts map[time.Time]bool) (time.Time, bool) {
	moved := change.resolve(local)
	at := change.instant(moved)
	return at, starts[at] && !t.named(moved)
}

// atOverlap lists what becomes of the times in an overlap, and the starts that there
// are once more.
func (t Times) atOverlap(change transition) []Irregular {
	all, starts := t.startsWithin(change.at.Add(-2*change.length()), change.at.Add(2*change.length()))
	var list []Irregular
	for _, at := range all {
		local := localTime(at, t.zone)
		if !change.contains(local) {
			continue
		}
		if first, second := change.instants(local); !t.named(local) || at.Equal(second) && starts[first] {
			list = append(list, Irregular{Kind: Doubled, At: at, Local: local.Format(localLayout)})
		}
	}
	for _, local := range t.namedWithin(change.from, change.to) {
		first, second := change.instants(local)
		if starts[first] || starts[second] {
			continue
		}
		found := Irregular{Kind: Skipped, At: second, Local: local.Format(localLayout)}
		if moved, ok := t.movedStart(change, local, starts); ok {
			found.Kind, found.At = Moved, moved
		}
		if t.within(found.At) {
			list = append(list, found)
		}
	}
	slices.SortFunc(list, func(a, b Irregular) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Local, b.Local)) })
	return list
}
