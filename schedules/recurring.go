package schedules

import (
	"fmt"
	"hash/fnv"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// recurring is a recurring job as a Temporal Schedule.
type recurring struct {
	spec       client.ScheduleSpec
	action     *client.ScheduleWorkflowAction
	overlap    enumspb.ScheduleOverlapPolicy
	catchup    time.Duration
	attributes temporal.SearchAttributes
}

func newRecurring(j job.Job) (*recurring, error) {
	attributes, err := workflows.Attributes(j)
	if err != nil {
		return nil, err
	}
	every := j.Recurring.RecurEvery.Std()
	return &recurring{
		spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{
			Every:  every,
			Offset: phase(j.ID, every),
		}}},
		action: &client.ScheduleWorkflowAction{
			ID:                    workflows.JobWorkflowID(j.ID),
			Workflow:              workflows.RunJobType,
			Args:                  []any{workflows.RunInput{Job: j, Trigger: workflows.TriggerSchedule}},
			TaskQueue:             workflows.TaskQueue(j.Worker),
			TypedSearchAttributes: attributes,
			StaticSummary:         workflows.Summary(j),
			Memo:                  map[string]any{workflows.MemoJob: j},
		},
		overlap:    enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
		catchup:    catchupWindow(every),
		attributes: attributes,
	}, nil
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

// catchupWindow is how late a start may be after an outage: up to two intervals,
// at least a minute. The server's own default is a year.
func catchupWindow(every time.Duration) time.Duration {
	return max(2*every, time.Minute)
}

func (r *recurring) options(j job.Job) client.ScheduleOptions {
	note := ""
	if j.Options.Paused {
		note = pausedInDefinition
	}
	return client.ScheduleOptions{
		ID:                    workflows.ScheduleID(j.ID),
		Spec:                  r.spec,
		Action:                r.action,
		Overlap:               r.overlap,
		CatchupWindow:         r.catchup,
		Paused:                j.Options.Paused,
		Note:                  note,
		TypedSearchAttributes: r.attributes,
	}
}

const pausedInDefinition = "paused in its definition"

// edits are the ways in which a live schedule differs from what its job asks
// for, for example since someone edited it in the Web UI. A pause is not among
// them: people may pause.
func (r *recurring) edits(live *client.ScheduleDescription) []Field {
	var fields []Field
	differ := func(path string, old, wanted any) {
		if o, w := fmt.Sprint(old), fmt.Sprint(wanted); o != w {
			fields = append(fields, Field{Path: "schedule." + path, Old: o, New: w})
		}
	}
	spec, policy := live.Schedule.Spec, live.Schedule.Policy
	differ("intervals", intervals(spec), intervals(&r.spec))
	differ("calendars", calendars(spec), 0)
	differ("jitter", spec.Jitter, time.Duration(0))
	differ("overlap", policy.Overlap, r.overlap)
	differ("catchup_window", policy.CatchupWindow, r.catchup)
	if action, ok := live.Schedule.Action.(*client.ScheduleWorkflowAction); ok {
		differ("workflow", action.Workflow, r.action.Workflow)
		differ("task_queue", action.TaskQueue, r.action.TaskQueue)
	}
	return fields
}

func intervals(spec *client.ScheduleSpec) string {
	text := ""
	for _, i := range spec.Intervals {
		text += fmt.Sprintf("every %s at %s ", job.Duration(i.Every), job.Duration(i.Offset))
	}
	return text
}

func calendars(spec *client.ScheduleSpec) int {
	return len(spec.Calendars) + len(spec.CronExpressions)
}
