package recurrence

import (
	"iter"
	"sync"
	"time"
)

// The years from whose transitions the rules of a zone are read: a cycle of the
// calendar, in which every date falls on every weekday.
const firstRuleYear, ruleYears = 2026, 28

// transition is one change of a zone's offset from UTC: a gap, whose local times
// clocks skip, or an overlap, whose local times they show twice (the words are
// those of java.time). A local time is written as if it were in UTC, where every
// one exists, once.
type transition struct {
	at time.Time
	// from and to bound the local times of the gap or overlap.
	from, to time.Time
	// before and after are the offsets from UTC.
	before, after time.Duration
}

func transitionAt(at time.Time, zone *time.Location) transition {
	t := transition{at: at, before: offset(at.Add(-time.Second), zone), after: offset(at, zone)}
	t.from, t.to = at.UTC().Add(min(t.before, t.after)), at.UTC().Add(max(t.before, t.after))
	return t
}

func offset(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// localTime is what clocks in a zone show at a time.
func localTime(at time.Time, zone *time.Location) time.Time {
	return at.UTC().Add(offset(at, zone))
}

// length is how long the gap or overlap is.
func (t transition) length() time.Duration { return t.to.Sub(t.from) }

func (t transition) isGap() bool { return t.after > t.before }

// contains reports whether a local time is in the gap or overlap.
func (t transition) contains(local time.Time) bool {
	return !local.Before(t.from) && local.Before(t.to)
}

// instant is when clocks show a local time outside of the gap or overlap.
func (t transition) instant(local time.Time) time.Time {
	if local.Before(t.from) {
		return local.Add(-t.before)
	}
	return local.Add(-t.after)
}

// instants are the two times at which clocks show a local time of the overlap.
func (t transition) instants(local time.Time) (first, second time.Time) {
	return local.Add(-t.before), local.Add(-t.after)
}

// resolve gives the local time of the start in place of one in the gap or overlap:
// later by its length, so that starts keep their distances, or earlier by as much
// if later is another day.
func (t transition) resolve(local time.Time) time.Time {
	if later := local.Add(t.length()); later.Day() == local.Day() {
		return later
	}
	return local.Add(-t.length())
}

// yearlyTransitions are those that a zone has by a rule: on a certain weekday that
// falls on one of certain dates, as on the second Sunday of March. A rule is given
// as one transition for each of these dates. Transitions without such a rule are
// left out.
func yearlyTransitions(zone *time.Location) [][]transition {
	if known, ok := knownTransitions.Load(zone.String()); ok {
		return known.([][]transition) //nolint:forcetypeassert // Nothing else is stored.
	}
	type kind struct{ before, after, timeOfDay time.Duration }
	found := map[kind][]transition{}
	var kinds []kind
	from := time.Date(firstRuleYear, 1, 1, 0, 0, 0, 0, time.UTC)
	for t := range transitionsWithin(zone, from, from.AddDate(ruleYears, 0, 0)) {
		k := kind{t.before, t.after, t.from.Sub(t.from.Truncate(day))}
		if found[k] == nil {
			kinds = append(kinds, k)
		}
		found[k] = append(found[k], t)
	}
	var rules [][]transition
	for _, k := range kinds {
		if rule, ok := ruleOf(found[k]); ok {
			rules = append(rules, rule)
		}
	}
	knownTransitions.Store(zone.String(), rules)
	return rules
}

// knownTransitions caches the yearly transitions of zones by name: to find them
// takes longer than all else that times take.
var knownTransitions sync.Map

// ruleOf picks a transition for each date, if there is one whenever such a date
// falls on the weekday of the transitions.
func ruleOf(found []transition) ([]transition, bool) {
	type date struct {
		month time.Month
		day   int
	}
	weekday := found[0].from.Weekday()
	dates := map[date]bool{}
	days := map[time.Time]bool{}
	var rule []transition
	for _, t := range found {
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

// transitionsWithin gives the transitions of a zone after from and not after to.
func transitionsWithin(zone *time.Location, from, to time.Time) iter.Seq[transition] {
	return func(yield func(transition) bool) {
		for at := from; ; {
			_, next := at.In(zone).ZoneBounds()
			if next.IsZero() || next.After(to) {
				return
			}
			if !next.After(at) {
				// In leap years beyond the table of a zone, package time has the year
				// end a day early, and this day at its own beginning.
				at = at.Add(day)
				continue
			}
			// Bounds may change the name of a zone alone.
			if t := transitionAt(next, zone); t.length() != 0 && !yield(t) {
				return
			}
			at = next
		}
	}
}
