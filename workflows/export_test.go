package workflows

import "github.com/dendrascience/dendra-jobs/contract"

// PauseItself is what an exhausted continuous job does.
func PauseItself(s *contract.ContinuousState, lastError string) {
	c := continuous{ContinuousState: *s}
	c.pauseItself(lastError)
	*s = c.ContinuousState
}
