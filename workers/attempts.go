package workers

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// attempts are those of an activity up to the present one, which is the last.
type attempts struct {
	all   []contract.Attempt // never changed in place: heartbeats have it
	began time.Time          // by the clock of this process
}

func newAttempts(before []contract.Attempt, present contract.Attempt) attempts {
	if extra := len(before) + 1 - contract.KeptAttempts; extra > 0 {
		before = before[extra:]
	}
	return attempts{all: append(slices.Clip(before), present), began: time.Now()}
}

// eachAttempt are the attempts as far as they are known.
func (r *run) eachAttempt() []contract.Attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.attempts.all
}

// endAttempt notes that the present attempt failed, and when the next one is due if there is
// one. The times are those of Temporal's clock.
func (r *run) endAttempt(class, text string, wait time.Duration) []contract.Attempt {
	const most = 200
	line, _, _ := strings.Cut(text, "\n")
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.attempts.all)
	last := &all[len(all)-1]
	last.End = last.Start.Add(time.Since(r.attempts.began))
	last.Class, last.Error = class, job.Cut(line, most)
	last.Next = last.End.Add(cmp.Or(wait, r.input.Job.Options.RetryBackoff.Wait(r.attempt)))
	r.attempts.all = all
	return all
}
