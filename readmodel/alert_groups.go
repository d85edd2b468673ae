package readmodel

import (
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// AlertGroup is what needs a person, with all that it explains.
type AlertGroup struct {
	// Alert is the first of them.
	*jobsv1.Alert
	// Alike are the others of jobs that fail in the same way.
	Alike []*jobsv1.Alert
	// HoldsUp are the alerts that these explain.
	HoldsUp []*jobsv1.Alert
}

// GroupAlerts puts alerts to those that explain them, and those that fail alike to each other. The
// order is that of the alerts. Silenced ones are never with others.
func GroupAlerts(list []*jobsv1.Alert) []AlertGroup {
	var groups []AlertGroup
	place := map[string]int{} // by the name of an alert, and by its failure group
	for _, alert := range list {
		if alert.GetCausedBy() != "" {
			continue
		}
		like := "\x00" + alert.GetFailure() + alert.GetSilence()
		if at, known := place[like]; known && alert.GetFailure() != "" {
			groups[at].Alike = append(groups[at].Alike, alert)
			place[alert.GetName()] = at
			continue
		}
		place[alert.GetName()], place[like] = len(groups), len(groups)
		groups = append(groups, AlertGroup{Alert: alert})
	}
	for _, alert := range list {
		if cause := alert.GetCausedBy(); cause != "" {
			if at, known := place[cause]; known {
				groups[at].HoldsUp = append(groups[at].HoldsUp, alert)
			}
		}
	}
	return groups
}

// kinds of what alerts are about, in the order in which they are counted.
var alertKinds = []struct {
	one, many string
	rules     []jobsv1.AlertRule
}{
	{"job", "jobs", []jobsv1.AlertRule{
		jobsv1.AlertRule_ALERT_RULE_JOB_FAILING, jobsv1.AlertRule_ALERT_RULE_JOB_LATE, jobsv1.AlertRule_ALERT_RULE_DEADLINE_MISSED, jobsv1.AlertRule_ALERT_RULE_STARTS_MISSED,
	}},
	{"load", "loads", []jobsv1.AlertRule{jobsv1.AlertRule_ALERT_RULE_BREAKER_OPEN, jobsv1.AlertRule_ALERT_RULE_LOAD_BEHIND, jobsv1.AlertRule_ALERT_RULE_POINTS_REFUSED}},
	{"queue", "queues", []jobsv1.AlertRule{jobsv1.AlertRule_ALERT_RULE_QUEUE_BEHIND, jobsv1.AlertRule_ALERT_RULE_QUEUE_HALTED, jobsv1.AlertRule_ALERT_RULE_QUEUE_ENDED}},
	{"station", "stations", []jobsv1.AlertRule{jobsv1.AlertRule_ALERT_RULE_STATION_SILENT}},
	{"integration", "integrations", []jobsv1.AlertRule{jobsv1.AlertRule_ALERT_RULE_INTEGRATION_FAILING}},
}

// Extent says in a few words how far the group goes: how many jobs fail alike, and what it holds
// up. It is empty of an alert that is alone.
func (g AlertGroup) Extent() string {
	var parts, held []string
	if n := len(g.Alike); n > 0 {
		parts = append(parts, plantext.Counted(n+1, "job fails", "jobs fail")+" alike")
	}
	own := map[string]bool{}
	for _, alert := range append([]*jobsv1.Alert{g.Alert}, g.Alike...) {
		own[alert.GetObject()] = true
	}
	for _, kind := range alertKinds {
		objects := map[string]bool{}
		for _, alert := range g.HoldsUp {
			if slices.Contains(kind.rules, alert.GetRule()) && !own[alert.GetObject()] {
				objects[alert.GetObject()] = true
			}
		}
		if n := len(objects); n > 0 {
			held = append(held, plantext.Counted(n, kind.one, kind.many))
		}
	}
	switch {
	case len(held) > 0:
		parts = append(parts, "holds up "+strings.Join(held, ", "))
	case len(g.HoldsUp) > 0:
		parts = append(parts, plantext.Counted(len(g.HoldsUp), "more alert", "more alerts")+" of it")
	}
	return strings.Join(parts, "; ")
}
