package readmodel

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/wording"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// addLimits adds the freshness and the deadline of the job, and since when it is known: from
// the list of schedules, or else from the definition of its latest run.
func (j *jobState) addLimits(m *jobsv1.JobOverview, now time.Time) {
	if j.known.IsZero() {
		j.known = now
	}
	if list := j.outcomes.list; len(list) > 0 {
		if oldest := time.Unix(0, list[0].started); oldest.Before(j.known) {
			j.known = oldest
		}
	}
	m.FirstSeenTime = Timestamp(j.known)
	var freshness job.Duration
	var deadline *job.Deadline
	switch {
	case j.schedule != nil && j.schedule.Limits != nil:
		freshness, deadline = j.schedule.Limits.Freshness, j.schedule.Limits.Deadline
	case j.definition != nil && (j.schedule == nil || j.schedule.DefinitionHash == j.definedBy):
		freshness, deadline = j.definition.Options.Freshness, j.definition.Options.Deadline
	}
	if freshness > 0 {
		m.Freshness = durationpb.New(freshness.Std())
	}
	if deadline != nil {
		m.Deadline = deadline.String()
	}
}

// FreshUntil is when the latest success of a job becomes older than its freshness: the zero
// time if it has none, or nothing is known of it yet.
func FreshUntil(j *jobsv1.JobOverview) time.Time {
	since, _ := job.Late(job.Duration(j.GetFreshness().AsDuration()), timeOrZero(j.GetLastSuccessTime()), timeOrZero(j.GetFirstSeenTime()), time.Now())
	return since
}

// late adds the alerts about successes that a job has not had in time.
func (a *alerting) late(j *jobsv1.JobOverview) {
	success, known := timeOrZero(j.GetLastSuccessTime()), timeOrZero(j.GetFirstSeenTime())
	last := "has not succeeded yet"
	if !success.IsZero() {
		last = "last succeeded at " + wording.Stamp(success)
	}
	run := []jobsv1.AlertAction{jobsv1.AlertAction_ALERT_ACTION_RUN_JOB}
	freshness := a.limits.Freshness
	if limit := j.GetFreshness(); limit != nil {
		freshness = limit.AsDuration()
	}
	if since, late := job.Late(job.Duration(freshness), success, known, a.now); late {
		a.add(jobsv1.AlertRule_ALERT_RULE_JOB_LATE, j.GetId(), since, run,
			"Job %s %s, and should at least every %s.", j.GetId(), last, wording.Span(freshness))
	}
	deadline, err := job.ParseDeadline(j.GetDeadline())
	if err != nil {
		return // It has none.
	}
	if at, missed := deadline.Missed(success, known, a.now); missed {
		a.add(jobsv1.AlertRule_ALERT_RULE_DEADLINE_MISSED, j.GetId(), at, run,
			"Job %s %s, and should each day by %s.", j.GetId(), last, deadline)
	}
}
