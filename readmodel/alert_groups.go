package readmodel

import (
	"maps"
	"slices"

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

// Jobs are the jobs that fail, or wait, for what the group is about, by id.
func (g AlertGroup) Jobs() []string {
	ids := map[string]bool{}
	for _, alert := range slices.Concat([]*jobsv1.Alert{g.Alert}, g.Alike, g.HoldsUp) {
		switch alert.GetRule() {
		case jobsv1.AlertRule_ALERT_RULE_JOB_FAILING, jobsv1.AlertRule_ALERT_RULE_JOB_LATE, jobsv1.AlertRule_ALERT_RULE_DEADLINE_MISSED,
			jobsv1.AlertRule_ALERT_RULE_STARTS_MISSED:
			ids[alert.GetObject()] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}
