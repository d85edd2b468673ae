package recurrence

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
	_ "time/tzdata" // the same zones wherever a rule is checked; the machine may have no zone files
)

// lastYear is the last year in which Schedules look for a start.
const lastYear = 2100

const day = 24 * time.Hour

// Rule says when something recurs: on an interval, or at the times of a cron text.
// Exactly one of Every and Cron is set.
type Rule struct {
	// Every is the interval between two starts, counted from the Unix epoch, in
	// whole seconds.
	Every time.Duration
	// Offset shifts the interval, in whole seconds. Defaults to none.
	Offset time.Duration
	// Cron has the five fields of crontab(5): see [ParseCron].
	Cron string
	// TimeZone is the IANA name of the zone that Cron is meant in. Defaults to UTC.
	TimeZone string
	// StartAt and EndAt limit the starts, both inclusive. Default to no limit.
	StartAt, EndAt time.Time
}

// Times are the nominal starts of a rule, before jitter. A Temporal Schedule made
// of [Times.Calendars] has the same ones. What transitions of the zone do to them,
// [Times.Irregular] tells.
type Times struct {
	// every and offset are in seconds; without calendars.
	every, offset int64
	cron          Cron
	// calendars name the times of the cron text together. Near transitions, added
	// have further starts, and excluded none.
	calendars, added, excluded []calendar
	zone                       *time.Location
	// moves is by how much a start may be later or earlier than clocks show.
	moves time.Duration
	start time.Time
	end   time.Time // zero: none
}

// New gives the nominal starts of a rule. It fails if the rule has neither an
// interval of at least a second nor a valid cron text, or an unknown zone.
func New(rule Rule) (Times, error) {
	// A Schedule without a start starts with the epoch. The second before is
	// the latest that the first start can be after.
	t := Times{start: time.Unix(-1, 0), zone: time.UTC}
	if rule.Cron == "" {
		t.every, t.offset = int64(rule.Every/time.Second), int64(rule.Offset/time.Second)
		if t.every < 1 || t.offset < 0 {
			return Times{}, errors.New("a recurring job without cron needs an interval of at least a second")
		}
		return t.limited(rule), nil
	}
	var err error
	if t.cron, err = ParseCron(rule.Cron); err != nil {
		return Times{}, err
	}
	if t.zone, err = time.LoadLocation(rule.TimeZone); err != nil { // "" is UTC.
		return Times{}, fmt.Errorf("time zone: %w", err)
	}
	t.calendars = calendarsFor(t.cron, t.zone)
	t.adjust() // Before the limits: it looks at the transitions of all years.
	return t.limited(rule), nil
}

func (t Times) limited(rule Rule) Times {
	t.end = rule.EndAt
	if !rule.StartAt.IsZero() {
		t.start = rule.StartAt.Add(-time.Second)
	}
	return t
}

// Next is the first start after a time, in UTC; zero if there is none up to the
// year 2100, the last that Schedules know.
func (t Times) Next(after time.Time) time.Time {
	if after.Before(t.start) {
		after = t.start
	}
	for next := t.following(after); ; next = t.following(after) {
		if !next.After(after) || next.Year() > lastYear || !t.end.IsZero() && next.After(t.end) {
			return time.Time{}
		}
		if !t.excludes(next) {
			return next
		}
		after = next
	}
}

// following is the first start after a time, though excluded or beyond the end;
// zero if there is none.
func (t Times) following(after time.Time) time.Time {
	var next time.Time
	if t.every > 0 {
		// Rounded toward zero: before the epoch it is the server that counts so.
		next = time.Unix(((after.Unix()-t.offset)/t.every+1)*t.every+t.offset, 0)
	}
	for _, list := range [][]calendar{t.calendars, t.added} {
		for _, c := range list {
			if at := c.next(after); next.IsZero() || !at.IsZero() && at.Before(next) {
				next = at
			}
		}
	}
	return next.UTC()
}

func (t Times) excludes(at time.Time) bool {
	return slices.ContainsFunc(t.excluded, func(c calendar) bool { return c.matches(at.In(t.zone)) })
}

// After gives the starts after a time, one after the other.
func (t Times) After(after time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for at := t.Next(after); !at.IsZero() && yield(at); {
			at = t.Next(at)
		}
	}
}
