package schedules

import (
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// scheduleOf is a recurring job as a Temporal Schedule.
func scheduleOf(j job.Job) (*schedulepb.Schedule, error) {
	action, err := scheduleAction(j)
	if err != nil {
		return nil, err
	}
	spec, err := scheduleSpec(j)
	if err != nil {
		return nil, err
	}
	state := &schedulepb.ScheduleState{Paused: j.Options.Paused}
	if j.Options.Paused {
		state.Notes = pausedInDefinition
	}
	return &schedulepb.Schedule{
		Spec:   spec,
		Action: action,
		Policies: &schedulepb.SchedulePolicies{
			OverlapPolicy: overlapPolicies[j.Recurring.OverlapPolicy()],
			CatchupWindow: durationpb.New(j.Recurring.Catchup().Std()),
		},
		State: state,
	}, nil
}

// scheduleAction is what the schedule of a recurring job starts: a run of it.
func scheduleAction(j job.Job) (*schedulepb.ScheduleAction, error) {
	m, err := temporalclient.JobMetadata(j)
	if err != nil {
		return nil, err
	}
	input, err := temporalclient.EncodePayload(contract.RunInput{Job: j, StartedBy: contract.StartedBySchedule})
	if err != nil {
		return nil, err
	}
	return &schedulepb.ScheduleAction{Action: &schedulepb.ScheduleAction_StartWorkflow{
		StartWorkflow: &workflowpb.NewWorkflowExecutionInfo{
			WorkflowId:       contract.JobWorkflowID(j.ID),
			WorkflowType:     &commonpb.WorkflowType{Name: contract.RunJobType},
			TaskQueue:        &taskqueuepb.TaskQueue{Name: contract.TaskQueue(j.Worker), Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
			Input:            &commonpb.Payloads{Payloads: []*commonpb.Payload{input}},
			Memo:             m.Memo,
			SearchAttributes: m.SearchAttributes,
			UserMetadata:     m.UserMetadata,
		},
	}}, nil
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
func scheduleSpec(j job.Job) (*schedulepb.ScheduleSpec, error) {
	r := j.Recurring
	spec := &schedulepb.ScheduleSpec{}
	if r.Jitter != 0 {
		spec.Jitter = durationpb.New(r.Jitter.Std())
	}
	if !r.StartAt.IsZero() {
		spec.StartTime = timestamppb.New(r.StartAt)
	}
	if !r.EndAt.IsZero() {
		spec.EndTime = timestamppb.New(r.EndAt)
	}
	if r.Cron == "" {
		spec.Interval = []*schedulepb.IntervalSpec{{
			Interval: durationpb.New(r.RecurEvery.Std()), Phase: durationpb.New(r.Phase(j.ID).Std()),
		}}
		return spec, nil
	}
	times, err := r.Times(j.ID)
	if err != nil {
		return nil, err
	}
	spec.StructuredCalendar, spec.ExcludeStructuredCalendar = cronCalendars(r.Cron, times)
	spec.TimezoneName = r.Zone()
	return spec, nil
}
