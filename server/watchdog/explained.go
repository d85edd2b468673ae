package watchdog

import (
	"time"

	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// explained reports whether another alert says why this one is on, so that people hear of that one
// alone: it is on as well, or was told and has not cleared yet. One whose rule is off says nothing.
func (w *Watchdog) explained(s *observation, on map[string]bool, records map[string]alerts.Stored) bool {
	if cause := s.alert.GetCausedBy(); cause != "" {
		s.cause = cause
	}
	if s.cause == "" || w.Timings[ruleOf(s.cause)].Off {
		return false
	}
	_, recorded := records[s.cause]
	return recorded || on[s.cause] && s.alert.GetCausedBy() == s.cause
}

// alone is since when an alert is on and nothing explains it: from then it has to hold.
func (s *observation) alone() time.Time {
	if s.explained.After(s.here) {
		return s.explained
	}
	return s.here
}
