package job

import (
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"
	"time"
)

// Times are the nominal starts of a recurring job: those that its definition
// names, before jitter. They are the ones that a Temporal Schedule made of the
// job has, with what happens to them where clocks change: see [Times.Irregular].
type Times struct {
	// every and phase are in seconds; without calendars.
	every, phase int64
	// calendars name the times of a cron text together. Where clocks change, added
	// have further starts, and excluded none.
	calendars, added, excluded []calendar
	zone                       *time.Location
	// moves is by how much a start may be later or earlier than clocks show.
	moves time.Duration
	start time.Time
	end   time.Time // zero: none
}

// Phase is Offset or its default: a shift in whole seconds, shorter than
// RecurEvery, that depends on the job id alone and spreads jobs of the same
// interval over it. It is zero for a cron text.
func (r Recurring) Phase(jobID string) Duration {
	if r.Offset != nil {
		return *r.Offset
	}
	seconds := int64(r.RecurEvery / Duration(time.Second))
	if seconds <= 1 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(jobID))                                      // A hash takes everything.
	return Duration(h.Sum64()%uint64(seconds)) * Duration(time.Second) //nolint:gosec // Below an interval.
}

// Times gives the nominal starts of the job with the id. It fails where the
// definition does: neither an interval nor a cron text, or an unknown zone.
func (r Recurring) Times(jobID string) (Times, error) {
	// A schedule without a start starts with the epoch. The second before is
	// the latest that the first start can be after.
	t := Times{start: time.Unix(-1, 0)}
	if r.Cron == "" {
		t.every = int64(r.RecurEvery / Duration(time.Second))
		t.phase = int64(r.Phase(jobID) / Duration(time.Second))
		if t.every < 1 || t.phase < 0 {
			return Times{}, errors.New("a recurring job without cron needs an interval of at least a second")
		}
		return t.limited(r), nil
	}
	cron, err := ParseCron(r.Cron)
	if err != nil {
		return Times{}, err
	}
	if t.zone, err = time.LoadLocation(r.Zone()); err != nil {
		return Times{}, fmt.Errorf("time zone: %w", err)
	}
	t.calendars = calendars(cron, t.zone)
	t.onceEach()
	return t.limited(r), nil
}

func (t Times) limited(r Recurring) Times {
	t.end = r.EndAt
	if !r.StartAt.IsZero() {
		t.start = r.StartAt.Add(-time.Second)
	}
	return t
}

// Next is the first start after a time, in UTC; zero if there is none up to the
// year 2100, the last that schedules know.
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
		next = time.Unix(((after.Unix()-t.phase)/t.every+1)*t.every+t.phase, 0)
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
	return slices.ContainsFunc(t.excluded, func(c calendar) bool { return c.shows(at.In(t.zone)) })
}

// After gives the starts after a time, one after the other.
func (t Times) After(after time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for at := t.Next(after); !at.IsZero() && yield(at); {
			at = t.Next(at)
		}
	}
}

// Count is how many starts lie after from and not after to, at most the given
// number of them.
func (t Times) Count(from, to time.Time, most int) int {
	count := 0
	for at := range t.After(from) {
		if at.After(to) || count >= most {
			break
		}
		count++
	}
	return count
}
