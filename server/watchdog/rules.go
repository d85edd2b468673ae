package watchdog

import (
	"time"

	"github.com/dendrascience/dendra-jobs/readmodel"
)

// Timing says when alerts of a rule are sent.
type Timing struct {
	// Hold is how long an alert is there before it fires, and Clear how long it is gone
	// before it clears.
	Hold, Clear time.Duration
	// Repeat is the wait before an alert that still fires is sent again; 0 means never.
	Repeat time.Duration
	// Off says that alerts of the rule are not sent.
	Off bool
}

// defaultClear is long enough for a worker or a server that starts anew.
const defaultClear = time.Minute

// DefaultTimings are those of all rules, by their words.
func DefaultTimings() map[string]Timing {
	timings := map[string]Timing{}
	for _, rule := range readmodel.Rules() {
		timings[rule.Word()] = Timing{Hold: rule.Hold, Clear: defaultClear}
	}
	return timings
}
