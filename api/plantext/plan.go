package plantext

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/job/wording"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Mark is the sign of an action.
type Mark struct {
	Sign string
	Tone Tone
}

// Marks are the signs of the actions of a plan.
var Marks = map[jobsv1.JobAction]Mark{
	jobsv1.JobAction_JOB_ACTION_CREATE:    {"+", Added},
	jobsv1.JobAction_JOB_ACTION_UPDATE:    {"~", Changed},
	jobsv1.JobAction_JOB_ACTION_DELETE:    {"-", Removed},
	jobsv1.JobAction_JOB_ACTION_BLOCKED:   {"!", Blocked},
	jobsv1.JobAction_JOB_ACTION_UNCHANGED: {"=", Faint},
	jobsv1.JobAction_JOB_ACTION_ORPHANED:  {"?", Faint},
}

// Count is how many jobs a plan has the action for.
func Count(plan *jobsv1.Plan, action jobsv1.JobAction) int {
	n := 0
	for _, change := range plan.GetChanges() {
		if change.GetAction() == action {
			n++
		}
	}
	return n
}

// Unread is how many jobs of a plan could not be read. They are blocked, with an error.
func Unread(plan *jobsv1.Plan) int {
	n := 0
	for _, change := range plan.GetChanges() {
		if IsUnread(change) {
			n++
		}
	}
	return n
}

// UnreadError says that jobs could not be read; nil if all could.
func UnreadError(unread int) error {
	if unread == 0 {
		return nil
	}
	return fmt.Errorf("%s could not be read, since Temporal is busy: try again", Counted(unread, "job", "jobs"))
}

// IsUnread reports whether a change is of a job that could not be read.
func IsUnread(change *jobsv1.JobChange) bool {
	return change.GetAction() == jobsv1.JobAction_JOB_ACTION_BLOCKED && change.GetErrorMessage() != ""
}

// OfPlan shows every job that apply would change or that has a note, and the number of
// unchanged ones. Coming starts are in the time zone of the location.
func OfPlan(plan *jobsv1.Plan, location *time.Location) []Line {
	var lines list
	for _, change := range plan.GetChanges() {
		if change.GetAction() == jobsv1.JobAction_JOB_ACTION_UNCHANGED && change.GetNote() == "" {
			continue
		}
		lines.change(change)
		lines.fields(change.GetFields())
		lines.nextStarts(change, location)
	}
	lines.foreign(plan.GetForeign())
	if n := Count(plan, jobsv1.JobAction_JOB_ACTION_UNCHANGED); n > 0 {
		lines.add(Faint, fmt.Sprintf("= unchanged (%d)", n))
	}
	for _, warning := range plan.GetWarnings() {
		lines.add(Changed, "warning: "+warning.GetMessage())
	}
	if len(plan.GetChanges()) > 0 {
		lines.add(Plain, "")
	}
	if plan.GetRefusal() != "" {
		lines.add(Plain, fmt.Sprintf("Apply would refuse this: %s (--allow-mass-prune).", plan.GetRefusal()))
	}
	lines.add(Plain, fmt.Sprintf("Plan for namespace %s: %s.", plan.GetNamespace(), total(plan)))
	return lines
}

// change adds a job that apply would change, or that has a note.
func (l *list) change(change *jobsv1.JobChange) {
	mark := Marks[change.GetAction()]
	text := fmt.Sprintf("%s %s  %s", mark.Sign, change.GetJobId(), modeWord(change.GetMode()))
	switch {
	case change.GetAction() == jobsv1.JobAction_JOB_ACTION_ORPHANED:
		text += "  no longer declared (kept; --prune deletes it)"
	case change.GetNote() != "":
		text += "  " + change.GetNote()
	}
	if change.GetDrifted() {
		text += "  (edited by hand since it was applied)"
	}
	l.add(mark.Tone, text)
}

// nextStarts adds when a job that changes starts next, before and after the change.
func (l *list) nextStarts(change *jobsv1.JobChange, location *time.Location) {
	now, then := times(change.GetCurrentStartTimes()), times(change.GetPlannedStartTimes())
	if change.GetAction() == jobsv1.JobAction_JOB_ACTION_UPDATE && !slices.EqualFunc(now, then, time.Time.Equal) {
		l.starts("next starts now: ", now, location)
		l.starts("next starts then:", then, location)
	} else {
		l.starts("next starts:", then, location)
	}
}

func times(stamps []*timestamppb.Timestamp) []time.Time {
	all := make([]time.Time, len(stamps))
	for i, t := range stamps {
		all[i] = t.AsTime()
	}
	return all
}

func (l *list) starts(label string, starts []time.Time, location *time.Location) {
	if len(starts) == 0 {
		return
	}
	texts := make([]string, len(starts))
	for i, start := range starts {
		texts[i] = start.In(location).Format("2006-01-02 15:04:05 MST")
	}
	l.add(Plain, "    "+label+" "+strings.Join(texts, ", "))
}

// total is a plan in one line.
func total(plan *jobsv1.Plan) string {
	return fmt.Sprintf("%d to create, %d to update, %d to delete, %d blocked, %d unchanged, %d no longer declared",
		Count(plan, jobsv1.JobAction_JOB_ACTION_CREATE), Count(plan, jobsv1.JobAction_JOB_ACTION_UPDATE), Count(plan, jobsv1.JobAction_JOB_ACTION_DELETE),
		Count(plan, jobsv1.JobAction_JOB_ACTION_BLOCKED), Count(plan, jobsv1.JobAction_JOB_ACTION_UNCHANGED), Count(plan, jobsv1.JobAction_JOB_ACTION_ORPHANED))
}

// ChangedSince names the first five jobs of which two plans say different things.
func ChangedSince(before, now *jobsv1.Plan) string {
	was := map[string]string{}
	for _, change := range before.GetChanges() {
		was[change.GetJobId()] = change.GetEtag()
	}
	var changed []string
	for _, change := range now.GetChanges() {
		if was[change.GetJobId()] != change.GetEtag() {
			changed = append(changed, change.GetJobId())
		}
		delete(was, change.GetJobId())
	}
	for _, change := range before.GetChanges() {
		if _, gone := was[change.GetJobId()]; gone {
			changed = append(changed, change.GetJobId())
		}
	}
	return wording.List(changed, 5)
}
