package recurrence

import (
	"cmp"
	"slices"
	"time"
)

// adjacent reports whether two of the hours follow each other.
func adjacent(hours uint64) bool {
	const last = hoursPerDay - 1
	return hours&(hours>>1) != 0 || has(hours, 0) && has(hours, last)
}

// adjust corrects the times near transitions that follow a rule, so that each time
// that the cron text names has one start: see [Times.Calendars]. Where that does
// not come out, they stay as they are.
func (t *Times) adjust() {
	if len(t.calendars) == 0 || adjacent(t.calendars[0].hours) {
		return
	}
	for _, rule := range yearlyTransitions(t.zone) {
		for _, anyWeekday := range []bool{false, true} {
			corrected, ok := t.corrected(rule, anyWeekday)
			if !ok {
				break
			}
			if again, ok := corrected.deviations(rule); ok && again.none() {
				*t = corrected
				break
			}
		}
	}
}

// deviations are the local times of starts that are missing, and of starts beyond
// those that the cron text names.
type deviations struct{ missing, extra []time.Time }

func (d deviations) none() bool { return len(d.missing) == 0 && len(d.extra) == 0 }

// deviations compares the starts around transitions with the times that the cron
// text names. It reports false if two of these would have the same start.
func (t Times) deviations(rule []transition) (deviations, bool) {
	var all deviations
	for _, change := range rule {
		first, last := t.around(change)
		names := t.namedWithin(first, last)
		if len(names) == 0 && !t.misdatesDay(change) {
			continue // As most: nothing is there to go wrong.
		}
		list, starts := t.startsWithin(change.instant(first), change.instant(last))
		named := map[time.Time]bool{}
		for _, local := range names {
			at := change.instant(local)
			if change.contains(local) {
				at = t.startOf(change, local, starts)
			}
			if named[at] {
				return all, false
			}
			named[at] = true
			if !starts[at] {
				all.missing = append(all.missing, localTime(at, t.zone))
			}
		}
		for _, at := range list {
			if !named[at] {
				all.extra = append(all.extra, localTime(at, t.zone))
			}
		}
	}
	return all, true
}

// misdatesDay reports whether the server may take the day of a transition for the day
// before, and so for another weekday: the day has no midnight.
func (t Times) misdatesDay(change transition) bool {
	return change.isGap() && change.from.Equal(change.from.Truncate(day)) &&
		slices.ContainsFunc(t.calendars, func(c calendar) bool { return c.weekdays != everyWeekday })
}

// around bounds the local times where a transition may matter to the starts: some
// hours, or up to the end of a day that is misdated.
func (t Times) around(change transition) (first, last time.Time) {
	hours := change.length() + 2*time.Hour
	first, last = change.from.Add(-hours), change.to.Add(hours)
	if t.misdatesDay(change) {
		last = change.from.Add(day)
	}
	return first, last
}

// startOf is the start of a local time in a gap or overlap: one of its instants if
// that alone is among the starts, else the resolved one.
func (t Times) startOf(change transition, local time.Time, starts map[time.Time]bool) time.Time {
	if !change.isGap() {
		first, second := change.instants(local)
		switch {
		case starts[first] && !starts[second]:
			return first
		case starts[second] && !starts[first]:
			return second
		}
	}
	return change.instant(change.resolve(local))
}

// startsWithin are the starts from a time until before another, as a list in their
// order and as a set.
func (t Times) startsWithin(from, to time.Time) (list []time.Time, starts map[time.Time]bool) {
	starts = map[time.Time]bool{}
	for at := range t.After(from.Add(-time.Second)) {
		if !at.Before(to) {
			break
		}
		list = append(list, at)
		starts[at] = true
	}
	return list, starts
}

// namedWithin lists the local times that the cron text names, from one until before
// another.
func (t Times) namedWithin(from, to time.Time) []time.Time {
	var list []time.Time
	hours, minutes := values(t.calendars[0].hours), values(t.calendars[0].minutes)
	for date := from.Truncate(day); date.Before(to); date = date.Add(day) {
		for _, hour := range hours {
			for _, minute := range minutes {
				local := date.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
				if !local.Before(from) && local.Before(to) && t.named(local) {
					list = append(list, local)
				}
			}
		}
	}
	return list
}

// corrected adds the starts that are missing around the transitions of a rule, and
// excludes those that are too many. It reports false if there is nothing to
// correct, or no way to correct it.
//
// The server takes a day without midnight, west of Greenwich, for the day before.
// So a calendar finds it only if it does not ask for a weekday: then the others are
// excluded.
func (t Times) corrected(rule []transition, anyWeekday bool) (Times, bool) {
	found, ok := t.deviations(rule)
	if !ok || found.none() {
		return t, false
	}
	t.added, t.excluded = slices.Clone(t.added), slices.Clone(t.excluded)
	t.excluded = append(t.excluded, calendarsOf(found.extra, t.zone)...)
	for _, c := range calendarsOf(found.missing, t.zone) {
		if anyWeekday {
			other := c
			c.weekdays = everyWeekday
			other.weekdays = everyWeekday &^ other.weekdays
			for _, named := range t.calendars {
				if named.overlaps(c) {
					other.weekdays &^= named.weekdays
				}
			}
			if other.weekdays != 0 {
				t.excluded = append(t.excluded, other)
			}
		}
		t.added = append(t.added, c)
	}
	if len(found.missing) > 0 {
		t.moves = max(t.moves, rule[0].length())
	}
	return t, true
}

// calendarsOf are the calendars of local times: one for each hour of each weekday in
// each month, with the dates on which it falls.
func calendarsOf(local []time.Time, zone *time.Location) []calendar {
	type key struct {
		month   time.Month
		weekday time.Weekday
		hour    int
	}
	found := map[key]calendar{}
	var keys []key
	for _, at := range local {
		k := key{at.Month(), at.Weekday(), at.Hour()}
		c, known := found[k]
		if !known {
			keys = append(keys, k)
		}
		found[k] = calendar{
			minutes: c.minutes | 1<<at.Minute(), hours: 1 << k.hour, daysOfMonth: c.daysOfMonth | 1<<at.Day(),
			months: 1 << k.month, weekdays: 1 << k.weekday, zone: zone,
		}
	}
	var list []calendar
	for _, k := range keys {
		list = append(list, found[k])
	}
	slices.SortFunc(list, func(a, b calendar) int {
		return cmp.Or(cmp.Compare(a.months, b.months), cmp.Compare(a.weekdays, b.weekdays), cmp.Compare(a.hours, b.hours))
	})
	return list
}

// overlaps reports whether the calendars have a time in common, apart from weekdays.
func (c calendar) overlaps(other calendar) bool {
	return c.minutes&other.minutes != 0 && c.hours&other.hours != 0 &&
		c.daysOfMonth&other.daysOfMonth != 0 && c.months&other.months != 0
}
