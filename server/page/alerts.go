package page

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/api/plantext"
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

// Told is the text without what stands above it, such as the job that fails.
func (a alert) Told() string {
	text, named := strings.CutPrefix(a.GetText(), "Job "+a.GetObject()+" ")
	switch {
	case !named || a.GetRule() != jobsv1.AlertRule_ALERT_RULE_JOB_FAILING:
		return a.GetText()
	case strings.HasPrefix(text, "has failed "):
		return "Failed " + strings.TrimPrefix(text, "has failed ")
	}
	return strings.TrimPrefix(text, "is failing: ")
}

// alertGroup is what needs a person, with all that it explains.
type alertGroup struct {
	alert
	// Extent says how far it goes.
	Extent string
	// Others are the alerts of jobs that fail alike, the first one too, and those that it explains:
	// the jobs that fail come first. More is how many are left out.
	Others []alert
	More   int
	// Failure is the failure group of jobs that fail alike. Empty if one job does, or if nobody
	// may retry them.
	Failure string
	// MaySilence says that there is the button for it, and Silences are the objects that it is for, a line each.
	MaySilence bool
	Silences   string
}

// alertList is all that needs a person, also what is silenced.
type alertList []alertGroup

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

// How many alerts are shown of those that one explains: beside the grid, which gets them with each
// change, and in the view of alerts.
const (
	fewOthers  = 10
	manyOthers = 200
)

// newAlerts groups alerts. Of what one explains it takes at most so many.
func newAlerts(role verbs.Role, alerts []*jobsv1.Alert, most int) alertList {
	var shown alertList
	for _, g := range api.GroupAlerts(alerts) {
		group := alertGroup{alert: newAlert(role, g.Alert), Extent: g.Extent()}
		group.MaySilence = g.GetSilence() == "" && offers(role, verbs.CreateSilence, verbs.Subject{})
		group.Silences = g.GetObject()
		others := g.HoldsUp
		if len(g.Alike) > 0 { // What helps one of them is below, beside it.
			alike := append([]*jobsv1.Alert{g.Alert}, g.Alike...)
			others, group.Actions = slices.Concat(alike, g.HoldsUp), nil
			for _, a := range g.Alike {
				group.Silences += "\n" + a.GetObject()
			}
			if verbs.RetryRun.Role <= role {
				group.Failure = g.GetFailure()
			}
		} else {
			others = slices.Clone(others)
		}
		slices.SortStableFunc(others, func(a, b *jobsv1.Alert) int { return cmp.Compare(place(a), place(b)) })
		for n, other := range others {
			if n == most {
				group.More = len(others) - n
				break
			}
			group.Others = append(group.Others, newAlert(role, other))
		}
		shown = append(shown, group)
	}
	return shown
}

// place is that of an alert among those that another one explains: jobs that fail come first.
func place(a *jobsv1.Alert) int {
	if a.GetRule() == jobsv1.AlertRule_ALERT_RULE_JOB_FAILING {
		return 0
	}
	return 1
}

func newAlert(role verbs.Role, a *jobsv1.Alert) alert {
	shown := alert{Alert: a, Link: alertLink(a)}
	for _, action := range a.GetActions() {
		if v := verbs.OfAction(action); v != nil && v.Role <= role { // Whoever raised the alert looked whether it applies.
			shown.Actions = append(shown.Actions, newButton(v, a.GetObject()))
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
	case jobsv1.AlertRule_ALERT_RULE_STATION_SILENT:
		id, _, _ := strings.Cut(a.GetObject(), "/")
		return jobPath(id)
	case jobsv1.AlertRule_ALERT_RULE_SERVER_DOWN:
		if strings.HasPrefix(a.GetObject(), "influxdb/") {
			return "/loads"
		}
	case jobsv1.AlertRule_ALERT_RULE_INTEGRATION_FAILING:
		return integrationPath(a.GetObject())
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
	Rules []choice
	// Object is what the form for a new silence begins with.
	Object string
}

func (p *Page) alerts(r *http.Request) (*document, error) {
	o, err := p.readOverview(r.Context(), 1)
	if err != nil {
		return nil, err
	}
	role := p.role(r)
	data := alertsView{Alerts: newAlerts(role, o.GetAlerts(), manyOthers), Silence: offers(role, verbs.CreateSilence, verbs.Subject{})}
	if silences, err := p.API.Alerts.ListSilences(r.Context(), &jobsv1.ListSilencesRequest{}); err != nil {
		data.Note = "Silences cannot be read: " + sentence(err) + "."
	} else {
		for _, s := range silences.GetSilences() {
			data.Silences = append(data.Silences, silence{s, buttons(role, []*verbs.Verb{verbs.DeleteSilence}, verbs.Subject{}, s.GetName())})
		}
	}
	// The button of an alert leads to the form, where the script has no dialog for it.
	word, object, _ := strings.Cut(r.URL.Query().Get("silence"), "/")
	data.Object = object
	for number := range int32(len(jobsv1.AlertRule_name)) {
		if rule := jobsv1.AlertRule(number); number > 0 {
			data.Rules = append(data.Rules, choice{Value: strings.TrimPrefix(rule.String(), "ALERT_RULE_"), Chosen: api.RuleWord(rule) == word})
		}
	}
	return &document{Title: "Alerts", View: "alerts", Section: "/alerts", Revision: p.revision(o), Follow: []string{"alerts"}, Data: data}, nil
}

// silenceAll silences the alerts of several objects that fail alike.
func (p *Page) silenceAll(w http.ResponseWriter, r *http.Request, args verbs.Args) {
	answers := verbs.Each(r.Context(), len(args.Names), func(ctx context.Context, n int) (verbs.Done, error) {
		one := args
		one.Names = args.Names[n : n+1]
		return verbs.CreateSilence.Do(ctx, p.API.Calls, one)
	}, nil)
	a := &answer{Title: title(verbs.CreateSilence)}
	var failed []string
	for n, one := range answers {
		if one.Err != nil {
			failed = append(failed, args.Names[n]+": "+sentence(one.Err))
		}
	}
	a.OK, a.Text = len(failed) == 0, fmt.Sprintf("Done for %d of %s.", len(answers)-len(failed), plantext.Counted(len(answers), "alert", "alerts"))
	a.name(failed)
	p.reply(w, r, http.StatusOK, a)
}
