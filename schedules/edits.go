package schedules

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// edits are the ways in which a live schedule differs from what its job asks
// for, for example since someone edited it in the Web UI. A pause is not among
// them: people may pause.
func edits(live *client.Live, wanted *schedulepb.Schedule) []Field {
	have, want := settings(live.ScheduleWithoutSkips()), settings(wanted)
	var fields []Field
	for i, s := range want {
		if old := have[i].value; old != s.value {
			fields = append(fields, Field{Path: "schedule." + s.name, Old: old, New: s.value})
		}
	}
	if live.Input != "" {
		fields = append(fields, Field{Path: "schedule.input", Old: text(live.Input), New: text("that of a scheduled run")})
	}
	return fields
}

// setting is one property of a schedule, its value as JSON, or "" for none.
type setting struct{ name, value string }

// settings lists what a schedule is, in words that do not depend on how the
// server rewrites it: it completes ranges, and turns cron texts into calendars.
// The list has the same names in the same order for every schedule.
func settings(s *schedulepb.Schedule) []setting {
	spec, policies, start := s.GetSpec(), s.GetPolicies(), s.GetAction().GetStartWorkflow()
	overlap := policies.GetOverlapPolicy()
	if overlap == enumspb.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED {
		overlap = enumspb.SCHEDULE_OVERLAP_POLICY_SKIP
	}
	return []setting{
		{"intervals", texts(spec.GetInterval(), intervalText)},
		{"calendars", texts(spec.GetStructuredCalendar(), calendarText)},
		{"skip", texts(spec.GetExcludeStructuredCalendar(), calendarText)},
		{"time_zone", text(zone(spec))},
		{"jitter", length(spec.GetJitter())},
		{"start_at", moment(spec.GetStartTime())},
		{"end_at", moment(spec.GetEndTime())},
		{"overlap", text(overlapName(overlap))},
		{"catchup_window", length(policies.GetCatchupWindow())},
		{"pause_on_failure", flag(policies.GetPauseOnFailure())},
		{"remaining_actions", remaining(s.GetState())},
		{"workflow", text(start.GetWorkflowType().GetName())},
		{"workflow_id", text(start.GetWorkflowId())},
		{"task_queue", text(start.GetTaskQueue().GetName())},
		{"execution_timeout", length(start.GetWorkflowExecutionTimeout())},
		{"run_timeout", length(start.GetWorkflowRunTimeout())},
		{"task_timeout", taskTimeout(start.GetWorkflowTaskTimeout())},
		{"search_attributes", texts(attributeNames(start), func(name string) string {
			return name + "=" + temporalclient.Attribute(start.GetSearchAttributes(), name)
		})},
		{"memo", texts(memoNames(start), func(name string) string { return memoText(start, name) })},
		{"summary", text(temporalclient.SummaryOf(start.GetUserMetadata()))},
		{"other", otherSettings(start)},
	}
}

func intervalText(i *schedulepb.IntervalSpec) string {
	return fmt.Sprintf("every %s at %s", job.Duration(i.GetInterval().AsDuration()), job.Duration(i.GetPhase().AsDuration()))
}

func flag(set bool) string {
	if set {
		return "true"
	}
	return ""
}

// remaining is how many starts a schedule is limited to, which ours never are.
func remaining(state *schedulepb.ScheduleState) string {
	if !state.GetLimitedActions() {
		return ""
	}
	return strconv.FormatInt(state.GetRemainingActions(), 10)
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
func zone(spec *schedulepb.ScheduleSpec) string {
	dated := len(spec.GetStructuredCalendar()) > 0 || len(spec.GetExcludeStructuredCalendar()) > 0
	if !dated || spec.GetTimezoneName() == "UTC" {
		return ""
	}
	return spec.GetTimezoneName()
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

func length(d *durationpb.Duration) string {
	if d.AsDuration() == 0 {
		return ""
	}
	return string(job.EncodeJSON(job.Duration(d.AsDuration())))
}

// taskTimeout leaves out the server's default, which the Web UI writes at each edit.
func taskTimeout(d *durationpb.Duration) string {
	const byDefault = 10 * time.Second
	if d.AsDuration() == byDefault {
		return ""
	}
	return length(d)
}

func moment(t *timestamppb.Timestamp) string {
	if t == nil || t.AsTime().IsZero() {
		return ""
	}
	return string(job.EncodeJSON(t.AsTime().Format(time.RFC3339Nano)))
}
