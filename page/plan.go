package page

import (
	"fmt"
	"net/http"
	"strings"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// planView is the drift and the plan, as the command line shows them.
type planView struct {
	Drift, Plan string
	// Notes say what could not be read.
	Notes []string
}

func (p *Page) plan(r *http.Request) (*document, error) {
	var data planView
	drift, err := p.API.JobSets.GetDrift(r.Context(), &jobsv1.GetDriftRequest{})
	if err != nil {
		data.Notes = append(data.Notes, "The drift cannot be read: "+sentence(err)+".")
	} else {
		data.Drift = driftText(drift, p.Namespace)
	}
	if p.Declared != nil {
		if data.Plan, err = p.planText(r); err != nil {
			data.Notes = append(data.Notes, "There is no plan: "+sentence(err)+".")
		}
	}
	return &document{Title: "Plan and drift", View: "plan", Section: "/plan", Data: data}, nil
}

func (p *Page) planText(r *http.Request) (string, error) {
	set, err := p.Declared(r.Context())
	if err != nil {
		return "", err
	}
	answer, err := p.API.JobSets.PlanJobSet(r.Context(), &jobsv1.PlanJobSetRequest{JobSet: set})
	if err != nil {
		return "", err
	}
	return planText(answer.GetPlan(), p.Namespace), nil
}

var driftKinds = map[jobsv1.DriftKind][2]string{
	jobsv1.DriftKind_DRIFT_KIND_EDITED:  {"~", "edited by hand"},
	jobsv1.DriftKind_DRIFT_KIND_PAUSED:  {"~", "paused"},
	jobsv1.DriftKind_DRIFT_KIND_RESUMED: {"~", "resumed, though it is declared as paused"},
	jobsv1.DriftKind_DRIFT_KIND_DELETED: {"-", "its schedule was deleted"},
	jobsv1.DriftKind_DRIFT_KIND_STOPPED: {"-", "was stopped"},
}

// driftText is what `starter drift` prints.
func driftText(drift *jobsv1.GetDriftResponse, namespace string) string {
	var text strings.Builder
	for _, one := range drift.GetDrifts() {
		kind := driftKinds[one.GetKind()]
		fmt.Fprintf(&text, "%s %s  %s", kind[0], one.GetJobId(), kind[1])
		if one.GetNote() != "" {
			fmt.Fprintf(&text, ": %s", one.GetNote())
		}
		text.WriteByte('\n')
		writeFields(&text, one.GetFields())
	}
	for _, one := range drift.GetFailing() {
		fmt.Fprintf(&text, "= %s  paused by itself: %s\n", one.GetJobId(), one.GetNote())
	}
	writeForeign(&text, drift.GetForeign())
	if text.Len() > 0 {
		text.WriteByte('\n')
	}
	total := "nothing was applied yet"
	if drift.GetApplied() > 0 || len(drift.GetDrifts())+len(drift.GetForeign()) > 0 {
		total = plural(len(drift.GetDrifts()), "job has drifted", "jobs have drifted")
		if n := len(drift.GetForeign()); n > 0 {
			total += ", " + plural(n, "resource is unmanaged", "resources are unmanaged")
		}
		total += fmt.Sprintf(", of %d applied", drift.GetApplied())
	}
	fmt.Fprintf(&text, "Namespace %s against the last apply: %s.\n", namespace, total)
	return text.String()
}

var actionSigns = map[jobsv1.JobAction]string{
	jobsv1.JobAction_JOB_ACTION_CREATE: "+", jobsv1.JobAction_JOB_ACTION_UPDATE: "~", jobsv1.JobAction_JOB_ACTION_DELETE: "-",
	jobsv1.JobAction_JOB_ACTION_BLOCKED: "!", jobsv1.JobAction_JOB_ACTION_UNCHANGED: "=", jobsv1.JobAction_JOB_ACTION_ORPHANED: "?",
}

// planText is what `starter plan` prints, without the coming starts of jobs that stay.
func planText(plan *jobsv1.Plan, namespace string) string {
	var text strings.Builder
	counts := map[jobsv1.JobAction]int{}
	for _, change := range plan.GetChanges() {
		counts[change.GetAction()]++
		if change.GetAction() == jobsv1.JobAction_JOB_ACTION_UNCHANGED && change.GetNote() == "" {
			continue
		}
		fmt.Fprintf(&text, "%s %s", actionSigns[change.GetAction()], change.GetJobId())
		switch {
		case change.GetAction() == jobsv1.JobAction_JOB_ACTION_ORPHANED:
			text.WriteString("  no longer declared (kept; --prune deletes it)")
		case change.GetNote() != "":
			text.WriteString("  " + change.GetNote())
		}
		if change.GetDrifted() {
			text.WriteString("  (edited by hand since it was applied)")
		}
		text.WriteByte('\n')
		writeFields(&text, change.GetFields())
		if len(change.GetPlannedStartTimes()) > 0 {
			text.WriteString("    next starts:")
			for _, at := range change.GetPlannedStartTimes() {
				text.WriteString(" " + at.AsTime().UTC().Format("2006-01-02 15:04:05 MST"))
			}
			text.WriteByte('\n')
		}
	}
	writeForeign(&text, plan.GetForeign())
	if n := counts[jobsv1.JobAction_JOB_ACTION_UNCHANGED]; n > 0 {
		fmt.Fprintf(&text, "= unchanged (%d)\n", n)
	}
	for _, warning := range plan.GetWarnings() {
		fmt.Fprintf(&text, "warning: %s\n", warning.GetMessage())
	}
	fmt.Fprintf(&text, "\nPlan for namespace %s: %d to create, %d to update, %d to delete.\n", namespace,
		counts[jobsv1.JobAction_JOB_ACTION_CREATE], counts[jobsv1.JobAction_JOB_ACTION_UPDATE], counts[jobsv1.JobAction_JOB_ACTION_DELETE])
	return text.String()
}

func writeForeign(text *strings.Builder, foreign []string) {
	for _, name := range foreign {
		fmt.Fprintf(text, "! %s is unmanaged: it has a job's name, and starter did not create it\n", name)
	}
}

func writeFields(text *strings.Builder, fields []*jobsv1.FieldChange) {
	value := func(text string) string {
		if text == "" {
			return "(not set)"
		}
		return text
	}
	for _, f := range fields {
		fmt.Fprintf(text, "    %s: %s → %s\n", f.GetPath(), value(f.GetOldValue()), value(f.GetNewValue()))
	}
}
