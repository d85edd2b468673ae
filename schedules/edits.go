package schedules

import (
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/job"
)

// edits are the ways in which a live schedule differs from what its job asks
// for, for example since someone edited it in the Web UI. A pause is not among
// them: people may pause.
func edits(live *client.ScheduleDescription, wanted client.ScheduleOptions) []Field {
	have := settings(live.Schedule.Spec, live.Schedule.Policy, live.Schedule.Action)
	want := settings(&wanted.Spec, &client.SchedulePolicies{
		Overlap:        wanted.Overlap,
		CatchupWindow:  wanted.CatchupWindow,
		PauseOnFailure: wanted.PauseOnFailure,
	}, wanted.Action)
	var fields []Field
	for i, s := range want {
		if old := have[i].value; old != s.value {
			fields = append(fields, Field{Path: "schedule." + s.name, Old: old, New: s.value})
		}
	}
	return fields
}

// setting is one property of a schedule, its value as JSON, or "" for none.
type setting struct{ name, value string }

// settings lists what a schedule is, in words that do not depend on how the
// server rewrites it: it completes ranges, and turns cron texts into calendars.
// The list has the same names in the same order for every schedule.
func settings(spec *client.ScheduleSpec, policy *client.SchedulePolicies, action client.ScheduleAction) []setting {
	overlap := policy.Overlap
	if overlap == enumspb.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED {
		overlap = enumspb.SCHEDULE_OVERLAP_POLICY_SKIP
	}
	var workflow, taskQueue string
	if start, ok := action.(*client.ScheduleWorkflowAction); ok {
		workflow, taskQueue = fmt.Sprint(start.Workflow), start.TaskQueue
	}
	pauses := ""
	if policy.PauseOnFailure {
		pauses = "true"
	}
	return []setting{
		{"intervals", texts(spec.Intervals, intervalText)},
		{"calendars", texts(spec.Calendars, calendarText)},
		{"skip", texts(spec.Skip, calendarText)},
		{"time_zone", text(zone(spec))},
		{"jitter", length(spec.Jitter)},
		{"start_at", moment(spec.StartAt)},
		{"end_at", moment(spec.EndAt)},
		{"overlap", text(overlapName(overlap))},
		{"catchup_window", length(policy.CatchupWindow)},
		{"pause_on_failure", pauses},
		{"workflow", text(workflow)},
		{"task_queue", text(taskQueue)},
	}
}

func intervalText(i client.ScheduleIntervalSpec) string {
	return fmt.Sprintf("every %s at %s", job.Duration(i.Every), job.Duration(i.Offset))
}

func overlapName(policy enumspb.ScheduleOverlapPolicy) string {
	for name, p := range overlapPolicies {
		if p == policy {
			return string(name)
		}
	}
	return policy.String()
}

// zone is the time zone of a spec where it has a meaning, other than UTC, the
// default.
func zone(spec *client.ScheduleSpec) string {
	if len(spec.Calendars) == 0 && len(spec.Skip) == 0 || spec.TimeZoneName == "UTC" {
		return ""
	}
	return spec.TimeZoneName
}

// texts writes a list whose order has no meaning.
func texts[E any](list []E, write func(E) string) string {
	if len(list) == 0 {
		return ""
	}
	texts := make([]string, len(list))
	for i, entry := range list {
		texts[i] = write(entry)
	}
	slices.Sort(texts)
	return string(job.EncodeJSON(texts))
}

func text(value string) string {
	if value == "" {
		return ""
	}
	return string(job.EncodeJSON(value))
}

func length(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return string(job.EncodeJSON(job.Duration(d)))
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return string(job.EncodeJSON(t.UTC().Format(time.RFC3339Nano)))
}
