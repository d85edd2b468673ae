package schedules

import (
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// scheduleOptions are a recurring job as a Temporal Schedule.
func scheduleOptions(j job.Job) (client.ScheduleOptions, error) {
	attributes, err := workflows.Attributes(j)
	if err != nil {
		return client.ScheduleOptions{}, err
	}
	spec, err := scheduleSpec(j)
	if err != nil {
		return client.ScheduleOptions{}, err
	}
	note := ""
	if j.Options.Paused {
		note = pausedInDefinition
	}
	return client.ScheduleOptions{
		ID:   workflows.ScheduleID(j.ID),
		Spec: spec,
		Action: &client.ScheduleWorkflowAction{
			ID:                    workflows.JobWorkflowID(j.ID),
			Workflow:              workflows.RunJobType,
			Args:                  []any{workflows.RunInput{Job: j, Trigger: workflows.TriggerSchedule}},
			TaskQueue:             workflows.TaskQueue(j.Worker),
			TypedSearchAttributes: attributes,
			StaticSummary:         workflows.Summary(j),
			Memo:                  map[string]any{workflows.MemoJob: j},
		},
		Overlap:               overlapPolicies[j.Recurring.OverlapPolicy()],
		CatchupWindow:         j.Recurring.Catchup().Std(),
		Paused:                j.Options.Paused,
		Note:                  note,
		TypedSearchAttributes: attributes,
	}, nil
}

const pausedInDefinition = "paused in its definition"

var overlapPolicies = map[job.Overlap]enumspb.ScheduleOverlapPolicy{
	job.OverlapSkip:           enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
	job.OverlapBufferOne:      enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE,
	job.OverlapBufferAll:      enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL,
	job.OverlapCancelOther:    enumspb.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER,
	job.OverlapTerminateOther: enumspb.SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER,
	job.OverlapAllowAll:       enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,
}

// scheduleSpec gives the times of a recurring job.
func scheduleSpec(j job.Job) (client.ScheduleSpec, error) {
	r := j.Recurring
	spec := client.ScheduleSpec{Jitter: r.Jitter.Std(), StartAt: r.StartAt, EndAt: r.EndAt}
	if r.Cron == "" {
		spec.Intervals = []client.ScheduleIntervalSpec{{Every: r.RecurEvery.Std(), Offset: r.Phase(j.ID).Std()}}
		return spec, nil
	}
	calendars, err := cronCalendars(r.Cron)
	if err != nil {
		return spec, err
	}
	spec.Calendars, spec.TimeZoneName = calendars, r.Zone()
	return spec, nil
}
