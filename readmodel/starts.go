package readmodel

import (
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/recurrence"
)

// missedAfter is how late a start may be before it counts as missed: by then a run of it is
// in the lists, and one that waits for a busy server has begun.
const missedAfter = time.Minute

// starts are those of a recurring job that have no run, as far as its runs tell: of the
// time since the oldest run that has the definition in force.
type starts struct {
	times  *recurrence.Times
	jitter time.Duration
	pauses client.Pauses

	// missed are the times of starts without a run, in nanoseconds since 1970.
	missed []int64
	// next is the start that was not looked at yet.
	next      time.Time
	runs      int // how many runs there were then
	latestRun int64
}

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

// update looks for starts that have no run, and reports whether there are others than
// before. A start that came while the job was paused, or while a run was under way, is none
// of those, and neither is one that people have skipped.
func (s *starts) update(j *jobState, now time.Time) bool {
	if s.times == nil || j.schedule == nil || j.schedule.DefinitionHash != j.definedBy {
		return false
	}
	list := j.outcomes.list
	if len(list) == 0 {
		return false
	}
	last := list[len(list)-1].started
	until := now.Add(-missedAfter - s.jitter)
	if last == s.latestRun && len(list) == s.runs && (s.next.IsZero() || s.next.After(until)) {
		return false
	}
	s.runs, s.latestRun = len(list), last
	before := len(s.missed)
	s.missed = s.find(j, until)
	return len(s.missed) != before
}

// maxLookedStarts bounds the starts that are looked at for one job.
const maxLookedStarts = 10 * maxOutcomes

func (s *starts) find(j *jobState, until time.Time) []int64 {
	ran := map[int64]bool{}
	first := int64(0)
	for _, run := range j.outcomes.list {
		if run.scheduled == 0 {
			continue
		}
		ran[run.scheduled] = true
		if first == 0 || run.scheduled < first {
			first = run.scheduled
		}
	}
	s.next = time.Time{}
	if first == 0 {
		return nil
	}
	var missed []int64
	looked := 0
	for at := range s.times.After(time.Unix(0, first)) {
		if at.After(until) || looked == maxLookedStarts {
			s.next = at
			break
		}
		looked++
		if !ran[at.UnixNano()] && !s.pauses.Cover(at) && !j.schedule.Skips(at) && !j.outcomes.underWay(at.UnixNano()) && !j.mayHavePaused(at) {
			missed = append(missed, at.UnixNano())
		}
	}
	return missed
}

// underWay says that a run was under way at a time.
func (o *outcomes) underWay(at int64) bool {
	for _, run := range o.list {
		if run.started <= at && (run.open() || run.started+run.took >= at) {
			return true
		}
	}
	return false
}

// mayHavePaused says that a job may have been paused at a time: a run knows the pauses
// before it, and of those since the latest run the reader knows what it has seen itself.
func (j *jobState) mayHavePaused(at time.Time) bool {
	return at.After(j.outcomes.latest()) && (j.schedule.Schedule.Paused || !at.After(j.onSince))
}
