package readmodel

import (
	"strings"
	"time"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Rule is a rule of alerts.
type Rule struct {
	Rule jobsv1.AlertRule
	// Meaning says when an alert is on, for people.
	Meaning string
	// Cure says what to do, where the class of an error does not.
	Cure string
	// Hold is how long an alert is on before the watchdog tells it, and Severity how urgent
	// it is, unless its file says otherwise.
	Hold     time.Duration
	Severity jobsv1.AlertSeverity
}

// Word is the word of the rule: job-failing.
func (r Rule) Word() string { return RuleWord(r.Rule) }

// Rules are all rules.
func Rules() []Rule {
	const (
		short    = 10 * time.Second
		middle   = 30 * time.Second
		critical = jobsv1.AlertSeverity_ALERT_SEVERITY_CRITICAL
		warning  = jobsv1.AlertSeverity_ALERT_SEVERITY_WARNING
		info     = jobsv1.AlertSeverity_ALERT_SEVERITY_INFO
	)
	return []Rule{
		{jobsv1.AlertRule_ALERT_RULE_SERVER_DOWN, "Temporal, NATS or another server does not answer",
			"Start the server, or check its address and the network.", middle, critical},
		{jobsv1.AlertRule_ALERT_RULE_NO_WORKER, "no live worker serves a type, or has the tags that jobs ask for",
			"Start a worker that serves it, or look at the log of the one that has ended.", time.Minute, critical},
		{jobsv1.AlertRule_ALERT_RULE_JOB_FAILING, "the latest runs or iterations of a job fail, or a teardown is blocked",
			"Read the error and the log of the failed run.", short, warning},
		{jobsv1.AlertRule_ALERT_RULE_JOB_LATE, "the latest success is older than `freshness`",
			"Look at the latest runs of the job; run it once what they lacked is there.", middle, warning},
		{jobsv1.AlertRule_ALERT_RULE_DEADLINE_MISSED, "there is no success by `deadline`",
			"Look at the latest runs of the job, and run it now.", middle, warning},
		{jobsv1.AlertRule_ALERT_RULE_STARTS_MISSED, "starts since the latest run were missed, also beside a long run",
			"Look at the starts of the job, which say why; backfill those that matter.", time.Minute, warning},
		{jobsv1.AlertRule_ALERT_RULE_QUEUE_HALTED, "a queue waits for a person",
			"Mend why the item failed; then resume the queue, or skip the item.", short, critical},
		{jobsv1.AlertRule_ALERT_RULE_QUEUE_ENDED, "the workflow of a queue has ended",
			"Recover the queue.", short, critical},
		{jobsv1.AlertRule_ALERT_RULE_QUEUE_BEHIND, "the oldest item waits for more than `queue_age`, 1 h",
			"Look at the running item, and at the workers that serve the queue.", time.Minute, warning},
		{jobsv1.AlertRule_ALERT_RULE_LOAD_BEHIND, "the oldest message waits for more than `load_age`, 15 min",
			"Look whether the load's job runs, and at the load of its server.", time.Minute, warning},
		{jobsv1.AlertRule_ALERT_RULE_BREAKER_OPEN, "a load's server is left alone since it failed",
			"Mend what the error names. The load tries the server again by itself.", time.Minute, critical},
		{jobsv1.AlertRule_ALERT_RULE_POINTS_REFUSED, "more than half of the latest points of a load went to quarantine",
			"Look at the items in quarantine.", time.Minute, warning},
		{jobsv1.AlertRule_ALERT_RULE_STATION_SILENT, "a station sends nothing for more than `station_age`, 24 h",
			"Look at the station, its power and its connection.", time.Minute, warning},
		{jobsv1.AlertRule_ALERT_RULE_INTEGRATION_FAILING, "an integration is degraded, or has not been ready for a minute",
			"Read its conditions and its log; mend the config or the job that they name.", 2 * time.Minute, warning},
		{jobsv1.AlertRule_ALERT_RULE_DRIFT, "Temporal is not as it was applied",
			"Look at the plan; apply the jobs again, or declare what was changed.", 5 * time.Minute, warning},
		{jobsv1.AlertRule_ALERT_RULE_SETTINGS_DIFFER, "a replica of the server has another watchdog file",
			"Start both replicas with the same watchdog file.", 5 * time.Minute, warning},
		{jobsv1.AlertRule_ALERT_RULE_RUN_ENDED, "an export or import has ended; told once, and in no list",
			"Fetch the files, or read the error.", 0, info},
	}
}

// cureOf is the cure of a rule.
func cureOf(rule jobsv1.AlertRule) string {
	for _, r := range Rules() {
		if r.Rule == rule {
			return r.Cure
		}
	}
	return ""
}

// RuleWord is the word of a rule: job-failing.
func RuleWord(rule jobsv1.AlertRule) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(rule.String(), "ALERT_RULE_"), "_", "-"))
}

// RuleOf is the rule of a word; unspecified if there is none.
func RuleOf(word string) jobsv1.AlertRule {
	name := "ALERT_RULE_" + strings.ToUpper(strings.ReplaceAll(word, "-", "_"))
	return jobsv1.AlertRule(jobsv1.AlertRule_value[name])
}
