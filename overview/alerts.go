package overview

import (
	"time"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Limits are those of alerts.
type Limits struct {
	// QueueAge is how long the oldest item of a queue may wait. Defaults to an hour.
	QueueAge time.Duration
	// LoadAge is how long the oldest message of a load may wait. Defaults to 15 minutes.
	LoadAge time.Duration
}

func (l Limits) withDefaults() Limits {
	if l.QueueAge == 0 {
		l.QueueAge = time.Hour
	}
	if l.LoadAge == 0 {
		l.LoadAge = 15 * time.Minute
	}
	return l
}

func (s *state) alerts(o *jobsv1.Overview, limits Limits, now time.Time) []*jobsv1.Alert { return nil }
