package workflows

import "github.com/dendrascience/dendra-jobs/contract"

// PauseItself is what an exhausted loop does.
func PauseItself(s *contract.ContinuousState, lastError string) {
	l := loop{ContinuousState: *s}
	l.pauseItself(lastError)
	*s = l.ContinuousState
}
