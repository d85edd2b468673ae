package watchdog

import (
	"time"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
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

// Rule is a rule of alerts.
type Rule struct {
	Word string
	// Meaning says when an alert is on, for people.
	Meaning string
	// Hold is that of its timing, unless a file says otherwise.
	Hold time.Duration
}

// Rules are all rules.
func Rules() []Rule {
	const (
		short  = 10 * time.Second
		middle = 30 * time.Second
	)
	word := readmodel.RuleWord
	return []Rule{
		{word(jobsv1.AlertRule_ALERT_RULE_SERVER_DOWN), "Temporal, NATS or another server does not answer", middle},
		{word(jobsv1.AlertRule_ALERT_RULE_NO_WORKER), "no live worker serves a type, or has the tags that jobs ask for", time.Minute},
		{word(jobsv1.AlertRule_ALERT_RULE_JOB_FAILING), "the latest runs or iterations of a job fail, or a teardown is blocked", short},
		{word(jobsv1.AlertRule_ALERT_RULE_JOB_LATE), "the latest success is older than `freshness`", middle},
		{word(jobsv1.AlertRule_ALERT_RULE_DEADLINE_MISSED), "there is no success by `deadline`", middle},
		{word(jobsv1.AlertRule_ALERT_RULE_STARTS_MISSED), "starts since the latest run were missed, also beside a long run", time.Minute},
		{word(jobsv1.AlertRule_ALERT_RULE_QUEUE_HALTED), "a queue waits for a person", short},
		{word(jobsv1.AlertRule_ALERT_RULE_QUEUE_ENDED), "the workflow of a queue has ended", short},
		{word(jobsv1.AlertRule_ALERT_RULE_QUEUE_BEHIND), "the oldest item waits for more than `queue_age`, 1 h", time.Minute},
		{word(jobsv1.AlertRule_ALERT_RULE_LOAD_BEHIND), "the oldest message waits for more than `load_age`, 15 min", time.Minute},
		{word(jobsv1.AlertRule_ALERT_RULE_BREAKER_OPEN), "a load's server is left alone since it failed", time.Minute},
		{word(jobsv1.AlertRule_ALERT_RULE_POINTS_REFUSED), "more than half of the latest points of a load went to quarantine", time.Minute},
		{word(jobsv1.AlertRule_ALERT_RULE_STATION_SILENT), "a station sends nothing for more than `station_age`, 24 h", time.Minute},
		{word(jobsv1.AlertRule_ALERT_RULE_INTEGRATION_FAILING), "an integration is not ready, or degraded", 2 * time.Minute},
		{word(jobsv1.AlertRule_ALERT_RULE_DRIFT), "Temporal is not as it was applied", 5 * time.Minute},
	}
}

// DefaultTimings are those of all rules, by their words.
func DefaultTimings() map[string]Timing {
	timings := map[string]Timing{}
	for _, rule := range Rules() {
		timings[rule.Word] = Timing{Hold: rule.Hold, Clear: defaultClear}
	}
	return timings
}
