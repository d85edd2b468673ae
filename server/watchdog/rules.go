package watchdog

import (
	"time"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// Timing says when alerts of a rule are told.
type Timing struct {
	// Hold is how long an alert is there before it fires, and Clear how long it is gone
	// before it clears.
	Hold, Clear time.Duration
	// Repeat is the wait before an alert that still fires is told again; 0 means never.
	Repeat time.Duration
	// Off says that alerts of the rule are not told.
	Off bool
}

// defaultClear is long enough for a worker or a server that starts anew.
const defaultClear = time.Minute

// DefaultTimings are those of all rules, by their words.
func DefaultTimings() map[string]Timing {
	timings := map[string]Timing{}
	for rule, hold := range map[jobsv1.AlertRule]time.Duration{
		jobsv1.AlertRule_ALERT_RULE_SERVER_DOWN:         30 * time.Second,
		jobsv1.AlertRule_ALERT_RULE_NO_WORKER:           time.Minute,
		jobsv1.AlertRule_ALERT_RULE_JOB_FAILING:         10 * time.Second,
		jobsv1.AlertRule_ALERT_RULE_JOB_LATE:            30 * time.Second,
		jobsv1.AlertRule_ALERT_RULE_DEADLINE_MISSED:     30 * time.Second,
		jobsv1.AlertRule_ALERT_RULE_STARTS_MISSED:       time.Minute,
		jobsv1.AlertRule_ALERT_RULE_QUEUE_HALTED:        10 * time.Second,
		jobsv1.AlertRule_ALERT_RULE_QUEUE_ENDED:         10 * time.Second,
		jobsv1.AlertRule_ALERT_RULE_QUEUE_BEHIND:        time.Minute,
		jobsv1.AlertRule_ALERT_RULE_LOAD_BEHIND:         time.Minute,
		jobsv1.AlertRule_ALERT_RULE_BREAKER_OPEN:        time.Minute,
		jobsv1.AlertRule_ALERT_RULE_STATION_SILENT:      time.Minute,
		jobsv1.AlertRule_ALERT_RULE_POINTS_REFUSED:      time.Minute,
		jobsv1.AlertRule_ALERT_RULE_INTEGRATION_FAILING: 2 * time.Minute,
		jobsv1.AlertRule_ALERT_RULE_DRIFT:               5 * time.Minute,
	} {
		timings[readmodel.RuleWord(rule)] = Timing{Hold: hold, Clear: defaultClear}
	}
	return timings
}
