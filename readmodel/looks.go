package readmodel

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
)

// lookAfter is how long a run is under way before it is looked at, and the least time
// between two looks at it: most runs are short.
const lookAfter = 2 * time.Second

// looked is what the latest look at the run under way of a job has found.
type looked struct {
	at   time.Time
	run  string // the id of the run, or of the workflow that bears the job's id
	look *client.Look
}

// underWay names the run under way for a look, and says which one it is.
func (j *jobState) underWay(now time.Time) (at client.RunRef, run string, ok bool) {
	facts := j.facts()
	if at, ok = facts.UnderWay(now); ok && facts.Schedule == nil {
		return at, facts.Own.RunID, true
	}
	return at, at.RunID, ok
}

// nextLook is the job whose run under way was looked at longest ago, "" if none is due. As
// for lists, only the first ones by id are looked at.
func (s *state) nextLook(now time.Time) string {
	var open []string
	for id, j := range s.jobs {
		if _, _, ok := j.underWay(now); ok {
			open = append(open, id)
		}
	}
	slices.Sort(open)
	best, oldest := "", now
	for _, id := range open[:min(len(open), client.MaxLooks)] {
		j := s.jobs[id]
		_, run, _ := j.underWay(now)
		at := j.looked.at
		if j.looked.run != run {
			if at = (time.Time{}); s.lookedAll {
				at = j.openedAt() // One that has just begun is given time to end.
			}
		}
		if at.Before(oldest) && (at.IsZero() || now.Sub(at) >= lookAfter) {
			best, oldest = id, at
		}
	}
	return best
}

// openedAt is when the run under way has begun.
func (j *jobState) openedAt() time.Time {
	if j.schedule != nil {
		return j.outcomes.latestOpen().Started
	}
	return j.own.Own.Started
}

// readLook looks at the run under way of one job: whether a worker has taken it, and what
// else no list shows.
func (r *Reader) readLook(ctx context.Context) error {
	now := time.Now()
	r.mu.Lock()
	id := r.state.nextLook(now)
	if id == "" {
		r.state.lookedAll = r.state.lookedAll || !r.state.lastScan.IsZero()
		r.mu.Unlock()
		return nil
	}
	at, run, _ := r.state.jobs[id].underWay(now)
	r.mu.Unlock()
	look, err := r.client.Jobs.LookAt(ctx, at)
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.state.jobs[id]; j != nil {
		j.looked.at, j.looked.run = now, run
		if err == nil {
			j.looked.look = look
		} else {
			j.looked.look = nil
		}
		j.message = nil
	}
	switch {
	case err != nil:
		return err //nolint:wrapcheck // It says what it did.
	case !r.state.lookedAll:
		return errMore
	}
	return nil
}

// withWaits writes W for runs under way that wait: for the latest, which was looked at, or
// for all, if no live worker can have taken any.
func withWaits(outcomes string, facts client.Facts) string {
	done := strings.TrimRight(outcomes, "R")
	open := len(outcomes) - len(done)
	if facts.Look != nil {
		open = min(open, 1)
	}
	return outcomes[:len(outcomes)-open] + strings.Repeat("W", open)
}
