package job

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// The years from whose changes of the clocks the rule of a zone is read: a cycle
// of the calendar, in which every date falls on every weekday.
const firstRuleYear, ruleYears = 2026, 28

// turn is one change of the clocks in a zone. What clocks show is written as if
// it were a time in UTC, where all of it exists, once.
type turn struct {
	at time.Time
	// from and to bound what clocks skip, or repeat.
	from, to time.Time
	// before and after are the offsets from UTC.
	before, after time.Duration
}

func turnOf(at time.Time, zone *time.Location) turn {
	t := turn{at: at, before: offset(at.Add(-time.Second), zone), after: offset(at, zone)}
	t.from, t.to = at.UTC().Add(min(t.before, t.after)), at.UTC().Add(max(t.before, t.after))
	return t
}

func offset(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// face is what clocks in a zone show at a time.
func face(at time.Time, zone *time.Location) time.Time {
	return at.UTC().Add(offset(at, zone))
}

func (t turn) shift() time.Duration { return t.to.Sub(t.from) }

func (t turn) skips() bool { return t.after > t.before }

// affects says that clocks skip what they show, or repeat it.
func (t turn) affects(shown time.Time) bool {
	return !shown.Before(t.from) && shown.Before(t.to)
}

// instant is when clocks show what the turn does not affect.
func (t turn) instant(shown time.Time) time.Time {
	if shown.Before(t.from) {
		return shown.Add(-t.before)
	}
	return shown.Add(-t.after)
}

// copies are the times at which clocks show what they repeat.
func (t turn) copies(shown time.Time) (first, second time.Time) {
	return shown.Add(-t.before), shown.Add(-t.after)
}

// moved is what clocks show instead of a time that they skip or repeat: as much
// later as they change by, so that starts keep their distances, or as much
// earlier if that is another day.
func (t turn) moved(shown time.Time) time.Time {
	if later := shown.Add(t.shift()); later.Day() == shown.Day() {
		return later
	}
	return shown.Add(-t.shift())
}

// yearlyTurns are the changes of the clocks that a zone has by a rule: on a
// certain weekday that falls on one of certain dates, as on the second Sunday of
// March. Of each there is one turn for each of these dates. Changes that follow no
// such rule are left out.
func yearlyTurns(zone *time.Location) [][]turn {
	if known, ok := knownTurns.Load(zone.String()); ok {
		return known.([][]turn) //nolint:forcetypeassert // Nothing else is stored.
	}
	type kind struct{ before, after, timeOfDay time.Duration }
	found := map[kind][]turn{}
	var kinds []kind
	from := time.Date(firstRuleYear, 1, 1, 0, 0, 0, 0, time.UTC)
	for at := range (Times{zone: zone}).changes(from, from.AddDate(ruleYears, 0, 0)) {
		t := turnOf(at, zone)
		k := kind{t.before, t.after, t.from.Sub(t.from.Truncate(day))}
		if found[k] == nil {
			kinds = append(kinds, k)
		}
		found[k] = append(found[k], t)
	}
	var rules [][]turn
	for _, k := range kinds {
		if rule, ok := ruleOf(found[k]); ok {
			rules = append(rules, rule)
		}
	}
	knownTurns.Store(zone.String(), rules)
	return rules
}

// knownTurns are the yearly turns of zones by name, since they take longer to find
// than all else that times take.
var knownTurns sync.Map

// ruleOf picks a turn for each date, if there is one whenever such a date falls on
// the weekday of the turns.
func ruleOf(turns []turn) ([]turn, bool) {
	type date struct {
		month time.Month
		day   int
	}
	weekday := turns[0].from.Weekday()
	dates := map[date]bool{}
	days := map[time.Time]bool{}
	var rule []turn
	for _, t := range turns {
		if t.from.Weekday() != weekday {
			return nil, false
		}
		days[t.from.Truncate(day)] = true
		if d := (date{t.from.Month(), t.from.Day()}); !dates[d] {
			dates[d] = true
			rule = append(rule, t)
		}
	}
	for _, t := range rule {
		d := date{t.from.Month(), t.from.Day()}
		for year := firstRuleYear; year < firstRuleYear+ruleYears; year++ {
			at := time.Date(year, d.month, d.day, 0, 0, 0, 0, time.UTC)
			if at.Month() == d.month && at.Weekday() == weekday && !days[at] {
				return nil, false
			}
		}
	}
	return rule, true
}

// neighbours says that two of the hours follow each other.
func neighbours(hours uint64) bool {
	const last = hoursPerDay - 1
	return hours&(hours>>1) != 0 || has(hours, 0) && has(hours, last)
}

// onceEach corrects the times where clocks change by a rule, so that each time
// that the cron text names has one start: see [Recurring.Cron]. Where that does
// not come out, they are left as they are.
func (t *Times) onceEach() {
	if len(t.calendars) == 0 || neighbours(t.calendars[0].hours) {
		return
	}
	for _, rule := range yearlyTurns(t.zone) {
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

// deviations are what clocks show at starts that are missing, and at those that
// there are beyond what the cron text names.
type deviations struct{ missing, extra []time.Time }

func (d deviations) none() bool { return len(d.missing) == 0 && len(d.extra) == 0 }

// deviations compares the starts around turns with the times that the cron text
// names. It reports false if two of these would have the same start.
func (t Times) deviations(turns []turn) (deviations, bool) {
	var all deviations
	for _, change := range turns {
		first, last := t.around(change)
		names := t.namedWithin(first, last)
		if len(names) == 0 && !t.mistaken(change) {
			continue // As most: nothing is there to go wrong.
		}
		list, starts := t.startsWithin(change.instant(first), change.instant(last))
		named := map[time.Time]bool{}
		for _, shown := range names {
			at := change.instant(shown)
			if change.affects(shown) {
				at = t.startOf(change, shown, starts)
			}
			if named[at] {
				return all, false
			}
			named[at] = true
			if !starts[at] {
				all.missing = append(all.missing, face(at, t.zone))
			}
		}
		for _, at := range list {
			if !named[at] {
				all.extra = append(all.extra, face(at, t.zone))
			}
		}
	}
	return all, true
}

// mistaken says that a turn may have the server take the day for the one before,
// and so for another weekday: it has no midnight.
func (t Times) mistaken(change turn) bool {
	return change.skips() && change.from.Equal(change.from.Truncate(day)) &&
		slices.ContainsFunc(t.calendars, func(c calendar) bool { return c.weekdays != everyWeekday })
}

// around bounds what clocks show where a turn may matter to the starts: some hours,
// or up to the end of a mistaken day.
func (t Times) around(change turn) (first, last time.Time) {
	hours := change.shift() + 2*time.Hour
	first, last = change.from.Add(-hours), change.to.Add(hours)
	if t.mistaken(change) {
		last = change.from.Add(day)
	}
	return first, last
}

// startOf is the start that a time has which clocks skip or repeat: one of the
// copies if that alone is among the starts, else the moved one.
func (t Times) startOf(change turn, shown time.Time, starts map[time.Time]bool) time.Time {
	if !change.skips() {
		first, second := change.copies(shown)
		switch {
		case starts[first] && !starts[second]:
			return first
		case starts[second] && !starts[first]:
			return second
		}
	}
	return change.instant(change.moved(shown))
}

// startsWithin are the starts from a time until before another, in their order and
// to look up.
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

// namedWithin lists what the cron text names from a time on clocks until before
// another.
func (t Times) namedWithin(from, to time.Time) []time.Time {
	var list []time.Time
	hours, minutes := values(t.calendars[0].hours), values(t.calendars[0].minutes)
	for date := from.Truncate(day); date.Before(to); date = date.Add(day) {
		for _, hour := range hours {
			for _, minute := range minutes {
				shown := date.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
				if !shown.Before(from) && shown.Before(to) && t.named(shown) {
					list = append(list, shown)
				}
			}
		}
	}
	return list
}

// corrected adds the starts that are missing around the turns of a rule, and
// excludes those that are too many. It reports false if there is nothing to
// correct, or no way to.
//
// The server takes a day without midnight, west of Greenwich, for the day before.
// So a calendar finds it only if it does not ask for a weekday: then the others are
// excluded.
func (t Times) corrected(rule []turn, anyWeekday bool) (Times, bool) {
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
		t.moves = max(t.moves, rule[0].shift())
	}
	return t, true
}

// calendarsOf are the calendars of what clocks show: one for each hour of each
// weekday in each month, with the dates on which it falls.
func calendarsOf(shown []time.Time, zone *time.Location) []calendar {
	type key struct {
		month   time.Month
		weekday time.Weekday
		hour    int
	}
	found := map[key]calendar{}
	var keys []key
	for _, at := range shown {
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

// overlaps says that the calendars have a time in common, apart from weekdays.
func (c calendar) overlaps(other calendar) bool {
	return c.minutes&other.minutes != 0 && c.hours&other.hours != 0 &&
		c.daysOfMonth&other.daysOfMonth != 0 && c.months&other.months != 0
}
