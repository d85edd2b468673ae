package page

import (
	"net/http"
	"strings"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// alert is an alert with its actions.
type alert struct {
	*jobsv1.Alert
	// Link leads to its object. Empty if there is no view of it.
	Link string
	// Actions are the buttons of what helps.
	Actions []button
}

// alertList is all alerts, also those that are silenced.
type alertList []alert

// NeedYou counts those that are not silenced.
func (l alertList) NeedYou() int {
	n := 0
	for _, a := range l {
		if a.GetSilence() == "" {
			n++
		}
	}
	return n
}

func newAlerts(role verbs.Role, alerts []*jobsv1.Alert) alertList {
	shown := make(alertList, len(alerts))
	for i, a := range alerts {
		shown[i] = alert{Alert: a, Link: alertLink(a)}
		for _, action := range a.GetActions() {
			if v := verbs.OfAction(action); v != nil && v.Role <= role { // Whoever raised the alert looked whether it applies.
				shown[i].Actions = append(shown[i].Actions, newButton(v, a.GetObject()))
			}
		}
	}
	return shown
}

func alertLink(a *jobsv1.Alert) string {
	switch a.GetRule() {
	case jobsv1.AlertRule_ALERT_RULE_JOB_FAILING, jobsv1.AlertRule_ALERT_RULE_JOB_LATE, jobsv1.AlertRule_ALERT_RULE_DEADLINE_MISSED,
		jobsv1.AlertRule_ALERT_RULE_STARTS_MISSED:
		return jobPath(a.GetObject())
	case jobsv1.AlertRule_ALERT_RULE_QUEUE_HALTED, jobsv1.AlertRule_ALERT_RULE_QUEUE_ENDED, jobsv1.AlertRule_ALERT_RULE_QUEUE_BEHIND:
		return queuePath(a.GetObject())
	case jobsv1.AlertRule_ALERT_RULE_LOAD_BEHIND, jobsv1.AlertRule_ALERT_RULE_BREAKER_OPEN, jobsv1.AlertRule_ALERT_RULE_POINTS_REFUSED:
		return "/loads"
	case jobsv1.AlertRule_ALERT_RULE_NO_WORKER:
		return "/workers"
	case jobsv1.AlertRule_ALERT_RULE_INTEGRATION_FAILING:
		return "/integrations"
	case jobsv1.AlertRule_ALERT_RULE_DRIFT:
		return "/plan"
	}
	return ""
}

// silence is a silence with its actions.
type silence struct {
	*jobsv1.Silence
	Buttons []button
}

// alertsView is all alerts, and the silences.
type alertsView struct {
	Alerts   alertList
	Silences []silence
	// Silence says that there is the form for a new one.
	Silence bool
	// Note says why there are no silences to show.
	Note  string
	Rules []string
}

func (p *Page) alerts(r *http.Request) (*document, error) {
	o, err := p.readOverview(r.Context(), 1)
	if err != nil {
		return nil, err
	}
	role := p.role(r)
	data := alertsView{Alerts: newAlerts(role, o.GetAlerts()), Silence: offers(role, verbs.CreateSilence, verbs.Subject{})}
	if silences, err := p.API.Alerts.ListSilences(r.Context(), &jobsv1.ListSilencesRequest{}); err != nil {
		data.Note = "Silences cannot be read: " + sentence(err) + "."
	} else {
		for _, s := range silences.GetSilences() {
			data.Silences = append(data.Silences, silence{s, buttons(role, []*verbs.Verb{verbs.DeleteSilence}, verbs.Subject{}, s.GetName())})
		}
	}
	for number := range int32(len(jobsv1.AlertRule_name)) {
		if number > 0 {
			data.Rules = append(data.Rules, strings.TrimPrefix(jobsv1.AlertRule_name[number], "ALERT_RULE_"))
		}
	}
	return &document{Title: "Alerts", View: "alerts", Section: "/alerts", Revision: p.revision(o), Follow: []string{"alerts"}, Data: data}, nil
}
