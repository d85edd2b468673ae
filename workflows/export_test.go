package workflows

import "time"

// Choose decides among services, as ChooseService does.
func (in ChooseServiceInput) Choose(services []LiveService, waited time.Duration) (string, error) {
	return in.choose(services, waited)
}

// PauseNote is pauseNote, for tests.
var PauseNote = pauseNote
