package schedules

import (
	"hash/fnv"
	"time"

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
		every := r.RecurEvery.Std()
		offset := phase(j.ID, every)
		if r.Offset != nil {
			offset = r.Offset.Std()
		}
		spec.Intervals = []client.ScheduleIntervalSpec{{Every: every, Offset: offset}}
		return spec, nil
	}
	calendars, err := cronCalendars(r.Cron)
	if err != nil {
		return spec, err
	}
	spec.Calendars, spec.TimeZoneName = calendars, r.Zone()
	return spec, nil
}

// phase spreads jobs of the same interval over it, in whole seconds, so that
// they do not all start at its beginning. It depends on the job id alone.
func phase(jobID string, every time.Duration) time.Duration {
	seconds := uint64(every / time.Second) //nolint:gosec // Validated as at least one second.
	if seconds <= 1 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(jobID))                         // A hash takes everything.
	return time.Duration(h.Sum64()%seconds) * time.Second //nolint:gosec // Below an interval.
}
