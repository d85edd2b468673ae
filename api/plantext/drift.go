package plantext

import (
	"fmt"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// kinds are the kinds of drift for people, with their signs.
var kinds = map[jobsv1.DriftKind]struct {
	Mark
	text string
}{
	jobsv1.DriftKind_DRIFT_KIND_EDITED:  {Mark{"~", Changed}, "edited"},
	jobsv1.DriftKind_DRIFT_KIND_PAUSED:  {Mark{"~", Changed}, "paused"},
	jobsv1.DriftKind_DRIFT_KIND_RESUMED: {Mark{"~", Changed}, "resumed, though it is declared as paused"},
	jobsv1.DriftKind_DRIFT_KIND_DELETED: {Mark{"-", Removed}, "its schedule was deleted"},
	jobsv1.DriftKind_DRIFT_KIND_STOPPED: {Mark{"-", Removed}, "was stopped"},
}

// Drifted reports whether something is not as it was applied.
func Drifted(drift *jobsv1.GetDriftResponse) bool {
	return len(drift.GetDrifts())+len(drift.GetForeign()) > 0
}

// OfDrift shows what was changed by hand since the last apply.
func OfDrift(drift *jobsv1.GetDriftResponse) []Line {
	var lines list
	for _, one := range drift.GetDrifts() {
		kind := kinds[one.GetKind()]
		text := fmt.Sprintf("%s %s  %s  %s", kind.Sign, one.GetJobId(), modeWord(one.GetMode()), kind.text)
		if one.GetNote() != "" {
			text += ": " + one.GetNote()
		}
		lines.add(kind.Tone, text)
		lines.fields(one.GetFields())
	}
	for _, one := range drift.GetFailing() {
		lines.add(Faint, fmt.Sprintf("= %s  %s  paused by itself: %s", one.GetJobId(), modeWord(one.GetMode()), one.GetNote()))
	}
	for _, one := range drift.GetUnread() {
		lines.add(Blocked, fmt.Sprintf("! %s  %s  could not be read: %s", one.GetJobId(), modeWord(one.GetMode()), one.GetNote()))
	}
	lines.foreign(drift.GetForeign())
	if Drifted(drift) || len(drift.GetFailing())+len(drift.GetUnread()) > 0 {
		lines.add(Plain, "")
	}
	lines.add(Plain, fmt.Sprintf("Namespace %s against the last apply: %s.", drift.GetNamespace(), driftTotal(drift)))
	return lines
}

// driftTotal is drift in one line.
func driftTotal(drift *jobsv1.GetDriftResponse) string {
	if drift.GetApplied() == 0 && !Drifted(drift) {
		return "nothing was applied yet"
	}
	text := Counted(len(drift.GetDrifts()), "job has drifted", "jobs have drifted")
	if n := len(drift.GetForeign()); n > 0 {
		text += ", " + Counted(n, "resource is unmanaged", "resources are unmanaged")
	}
	if n := len(drift.GetUnread()); n > 0 {
		text += ", " + Counted(n, "job", "jobs") + " could not be read"
	}
	return fmt.Sprintf("%s, of %d applied", text, drift.GetApplied())
}

// Counted writes a number with its noun, in the singular or the plural.
func Counted(n any, one, more string) string {
	if text := fmt.Sprint(n); text != "1" {
		return text + " " + more
	}
	return "1 " + one
}
