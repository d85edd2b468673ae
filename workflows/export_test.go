package workflows

import (
	"context"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"

	"github.com/dendrascience/dendra-jobs/job"
)

// Choose decides among services, as ChooseService does.
func Choose(in contract.ChooseServiceInput, services []LiveService, waited time.Duration) (string, error) {
	return serviceSearch{in}.choose(services, waited)
}

// Patience is how long a run has waited when it looks for the n-th time, and how
// long it waits then.
func Patience(in contract.ChooseServiceInput, n int) (waited, next time.Duration) {
	return serviceSearch{in}.patience(n)
}

// NewWatcher serves WatchRunActivity, with room to watch so many runs at once.
func NewWatcher(places int) func(context.Context, WatchRunInput) error {
	return newWatcher(places).WatchRun
}

// PauseItself is what an exhausted loop does.
func PauseItself(s *contract.ContinuousState, lastError string) {
	l := loop{ContinuousState: *s}
	l.pauseItself(lastError)
	*s = l.ContinuousState
}

// TriggerTime is the time of a trigger of a job.
func TriggerTime(jobID string, r *job.Recurring, now time.Time) time.Time {
	return triggerTime(jobID, r, now)
}

// IsRepeat says that the run with a memo did the work of an item of a page.
var IsRepeat = isRepeat
