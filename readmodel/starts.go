package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/recurrence"
)

// starts are those of a recurring job that were missed, as [client.AccountStarts] has it: of
// the time since the oldest run that is known. As long as every start has a run, nobody is
// asked.
type starts struct {
	times  *recurrence.Times
	jitter time.Duration
	// span is the shortest one that holds as many starts as are looked at.
	span time.Duration

	// facts are what the account needs of the schedule, as it was described at a time; nil
	// until there is a start without a run, and once the schedule has changed.
	facts   *client.StartFacts
	factsAt time.Time
	// wanted says that the schedule is to be described.
	wanted bool
	// awaited is the first start that was known of a job whose definition is not.
	awaited time.Time

	// missed are the times of missed starts, in nanoseconds since 1970.
	missed []int64
	// next is the start that was not looked at yet, and looked says at what it was looked.
	next   time.Time
	looked lookedAt
}

// lookedAt is what an account depends on besides the time.
type lookedAt struct {
	runs           int
	oldest, latest int64
	facts          *client.StartFacts
}

// maxLookedStarts bounds the starts that are looked at for one job.
const maxLookedStarts = 10 * maxOutcomes

// withoutRuns is how far back a job without runs is looked at.
const withoutRuns = 24 * time.Hour

// longestLook bounds the time that is looked at of a job that has very many starts.
const longestLook = 365 * 24 * time.Hour

// define takes over a definition.
func (s *starts) define(definition *job.Job) {
	*s = starts{}
	if definition.Recurring == nil {
		return
	}
	times, err := definition.Recurring.Times(definition.ID)
	if err != nil {
		return // It was refused when it was made, unless it is of another version.
	}
	s.times, s.jitter = &times, definition.Recurring.Jitter.Std()
}

// changed notes that the schedule is another one, whose next start is known.
func (s *starts) changed(next time.Time) {
	s.facts, s.wanted = nil, false
	if s.awaited.IsZero() {
		s.awaited = next
	}
}

// update looks for starts that were missed up to a time, by which all runs are known, and
// reports whether there are others than before.
func (s *starts) update(j *jobState, known time.Time) bool {
	if j.schedule == nil {
		return s.set(nil)
	}
	if s.times == nil || j.schedule.DefinitionHash != j.definedBy {
		s.wanted = !s.awaited.IsZero() && known.Add(-client.MissedAfter).After(s.awaited)
		return s.set(nil)
	}
	until := known.Add(-client.MissedAfter - s.jitter)
	looked := lookedAt{runs: len(j.outcomes.list), facts: s.facts}
	if n := looked.runs; n > 0 {
		looked.oldest, looked.latest = j.outcomes.list[0].started, j.outcomes.list[n-1].started
	}
	if looked == s.looked && s.next.After(until) {
		return false
	}
	s.looked = looked
	since := s.since(j, until)
	latest := s.lacks(j, since, until)
	switch {
	case latest.IsZero():
		return s.set(nil)
	case s.facts == nil || s.buffers(j) && s.factsAt.Before(latest.Add(client.MissedAfter)):
		s.wanted = true
		return false // It is known once the schedule was described.
	}
	account, err := client.AccountStarts(j.definition, s.facts, j.outcomes.runs(), since, until.Add(s.jitter), maxLookedStarts)
	if err != nil {
		return false // Its times were read before, and are not too many.
	}
	var missed []int64
	for _, start := range account.MissedStarts {
		missed = append(missed, start.Scheduled.UnixNano())
	}
	return s.set(missed)
}

func (s *starts) set(missed []int64) bool {
	same := slices.Equal(s.missed, missed)
	s.missed = missed
	return !same
}

// buffers reports whether starts wait for a run under way to end: how many do is known of the
// time at which the schedule was described.
func (s *starts) buffers(j *jobState) bool {
	policy := j.definition.Recurring.OverlapPolicy()
	return policy != job.OverlapSkip && policy != job.OverlapAllowAll
}

// since is when an account begins: at the oldest run that is known. Once older ones were
// dropped, that is when it began: what was due before may have had one of them, also if the
// oldest that is left made up for a start of long ago.
func (s *starts) since(j *jobState, until time.Time) time.Time {
	since := until.Add(-withoutRuns)
	if list := j.outcomes.list; len(list) > 0 {
		oldest := list[0].started
		if list[0].scheduled != 0 && len(list) < maxOutcomes {
			oldest = list[0].scheduled
		}
		since = time.Unix(0, oldest)
	}
	// More starts than are looked at cannot be shown either.
	if s.span == 0 {
		s.span = s.times.ShortestSpan(maxLookedStarts-1, longestLook)
	}
	if first := until.Add(-s.span); since.Before(first) {
		return first
	}
	return since
}

// lacks gives the latest start without a run, zero if all have one.
func (s *starts) lacks(j *jobState, since, until time.Time) (latest time.Time) {
	ran := map[int64]bool{}
	for _, run := range j.outcomes.list {
		ran[run.scheduled] = true
	}
	for at := range s.times.After(since.Add(-time.Nanosecond)) {
		if s.next = at; at.After(until) {
			return latest
		}
		if !ran[at.UnixNano()] {
			latest = at
		}
	}
	s.next = until.Add(longestLook) // It has no more.
	return latest
}

// readStarts describes the schedules of jobs that have starts without a run.
func (r *Reader) readStarts(ctx context.Context) error {
	r.mu.Lock()
	var ids []string
	for id, j := range r.state.jobs {
		if j.starts.wanted && j.schedule != nil {
			ids = append(ids, id)
		}
	}
	r.mu.Unlock()
	slices.Sort(ids)
	var errs []error
	for _, id := range ids {
		at := time.Now()
		live, err := r.client.Jobs.LiveSchedule(ctx, id)
		var facts *client.StartFacts
		if err == nil && live != nil && live.Job.Recurring != nil {
			facts, err = live.StartFacts()
		}
		if ctx.Err() != nil {
			return ctx.Err() //nolint:wrapcheck // That of the context.
		}
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			errs = append(errs, fmt.Errorf("starts of job %s: %w", id, err))
			continue
		}
		r.mu.Lock()
		if j := r.state.jobs[id]; j != nil {
			j.describe(live, facts, at)
		}
		r.mu.Unlock()
	}
	return errors.Join(errs...)
}

// describe notes a schedule that was described at a time; facts are nil if there is none.
func (j *jobState) describe(live *client.Live, facts *client.StartFacts, at time.Time) {
	j.starts.wanted = false
	if facts == nil || j.schedule == nil || facts.DefinitionHash != j.schedule.DefinitionHash {
		return // The list of schedules shows it in a moment.
	}
	if j.definedBy != facts.DefinitionHash {
		definition := live.Job
		definition.Spec = nil
		j.definition, j.definedBy, j.message = &definition, facts.DefinitionHash, nil
		j.starts.define(&definition)
	}
	j.starts.facts, j.starts.factsAt = facts, at
}
