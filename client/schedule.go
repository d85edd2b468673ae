package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// ScheduleAction is what the schedule of a recurring job starts: a run of it.
func ScheduleAction(j job.Job) (*schedulepb.ScheduleAction, error) {
	m, err := marksOf(j)
	if err != nil {
		return nil, err
	}
	input, err := encode(contract.RunInput{Job: j, StartedBy: contract.StartedBySchedule})
	if err != nil {
		return nil, err
	}
	return &schedulepb.ScheduleAction{Action: &schedulepb.ScheduleAction_StartWorkflow{
		StartWorkflow: &workflowpb.NewWorkflowExecutionInfo{
			WorkflowId:       contract.JobWorkflowID(j.ID),
			WorkflowType:     &commonpb.WorkflowType{Name: contract.RunJobType},
			TaskQueue:        &taskqueuepb.TaskQueue{Name: contract.TaskQueue(j.Worker), Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
			Input:            &commonpb.Payloads{Payloads: []*commonpb.Payload{input}},
			Memo:             m.memo,
			SearchAttributes: m.attributes,
			UserMetadata:     m.metadata,
		},
	}}, nil
}

// ScheduleChange says what a schedule shall become.
type ScheduleChange struct {
	Job      job.Job
	Schedule *schedulepb.Schedule
	// Create says that no schedule was there; otherwise Expected says whether the
	// one that is there is the one that the change was made for.
	Create   bool
	Expected func(*Live) bool
	// InSync says whether the one that is there is as it shall be.
	InSync func(*Live) bool
	// SetPause takes the pause of Schedule as well. Otherwise a schedule that is
	// there keeps its own, unless the definition of the job changes it.
	SetPause bool
}

// PutSchedule creates the schedule of a recurring job, or makes the one that is
// there like it. It returns once the server shows the change. A schedule that
// someone else has changed meanwhile is left alone, and gives [ErrMoved].
func (c *JobClient) PutSchedule(ctx context.Context, change ScheduleChange) error {
	if change.Create {
		created, err := c.createSchedule(ctx, change)
		if created || err != nil {
			return err
		}
	}
	err := c.changeSchedule(ctx, change.Job.ID, change.edit)
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("schedule %s was removed by someone else meanwhile: %w", contract.ScheduleID(change.Job.ID), ErrMoved)
	}
	return err
}

// createSchedule reports false when there is a schedule of the name.
func (c *conn) createSchedule(ctx context.Context, change ScheduleChange) (bool, error) {
	m, err := marksOf(change.Job)
	if err != nil {
		return false, err
	}
	id := contract.ScheduleID(change.Job.ID)
	_, err = call(ctx, c.temporal.WorkflowService().CreateSchedule, &workflowservice.CreateScheduleRequest{
		Namespace: c.namespace, ScheduleId: id, Schedule: change.Schedule, SearchAttributes: m.attributes,
		Identity: c.identity, RequestId: NewRequestID(),
	})
	var exists *serviceerror.AlreadyExists
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &exists) || errors.As(err, &started) || errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return false, nil
	}
	return err == nil, explain("create schedule "+id, err)
}

// edit is what is to be written in place of what is there, nil if that is as it
// shall be.
func (change ScheduleChange) edit(live *Live) (*ScheduleEdit, error) {
	id := contract.ScheduleID(change.Job.ID)
	if change.InSync(live) && (!change.SetPause || live.Paused == change.Schedule.GetState().GetPaused()) {
		return nil, nil //nolint:nilnil // Documented: there is nothing to do.
	}
	if change.Create || !change.Expected(live) {
		return nil, fmt.Errorf("schedule %s was changed by someone else meanwhile: %w", id, ErrMoved)
	}
	m, err := marksOf(change.Job)
	if err != nil {
		return nil, err
	}
	schedule, err := change.over(live)
	if err != nil {
		return nil, fmt.Errorf("schedule %s: %w", id, err)
	}
	return &ScheduleEdit{Schedule: schedule, Attributes: m.attributes}, nil
}

// over is the schedule to write in place of the one that is there: everything
// but the state, of which the pause is people's, and the rest the server's, and
// the starts ahead that people have skipped.
func (change ScheduleChange) over(live *Live) (*schedulepb.Schedule, error) {
	state := live.Schedule.GetSchedule().GetState()
	if state == nil {
		state = &schedulepb.ScheduleState{}
	}
	spec, err := withSkips(change.Schedule.GetSpec(), comingSkips(live.Schedule.GetSchedule().GetSpec(), time.Now()))
	if err != nil {
		return nil, err
	}
	schedule := &schedulepb.Schedule{
		Spec: spec, Action: proto.CloneOf(change.Schedule.GetAction()), Policies: change.Schedule.GetPolicies(), State: state,
	}
	if err := keepPauses(schedule, pausesOf(live.Schedule.GetSchedule())); err != nil {
		return nil, err
	}
	if change.SetPause || live.Job.Options.Paused != change.Job.Options.Paused {
		paused, note := change.Schedule.GetState().GetPaused(), change.Schedule.GetState().GetNotes()
		if note == "" {
			note = "as declared"
		}
		if paused != state.GetPaused() {
			err = setPaused(schedule, paused, note, time.Now())
		}
		state.Notes = note
	}
	state.LimitedActions, state.RemainingActions = false, 0
	return schedule, err
}

// DeleteSchedule removes the schedule of a job. Runs under way go on. One that is
// not as expected is left alone, and gives [ErrMoved]; nil expects nothing.
func (c *JobClient) DeleteSchedule(ctx context.Context, jobID string, expected func(*Live) bool) error {
	live, err := c.LiveSchedule(ctx, jobID)
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("schedule of job %s: %w", jobID, ErrNotFound)
	}
	id := contract.ScheduleID(jobID)
	if expected != nil && !expected(live) {
		return fmt.Errorf("schedule %s was changed by someone else meanwhile: %w", id, ErrMoved)
	}
	_, err = call(ctx, c.temporal.WorkflowService().DeleteSchedule, &workflowservice.DeleteScheduleRequest{
		Namespace: c.namespace, ScheduleId: id, Identity: c.identity,
	})
	return explain("delete schedule "+id, err)
}

// setSchedulePaused pauses or resumes a schedule. One that is paused keeps the
// reasons that it was paused for.
func (c *conn) setSchedulePaused(ctx context.Context, jobID string, paused bool, reason string) error {
	return c.changeSchedule(ctx, jobID, func(live *Live) (*ScheduleEdit, error) {
		schedule := live.Schedule.GetSchedule()
		because := reason
		if paused && live.Paused {
			if because = addReason(live.PauseReason, reason); because == live.PauseReason {
				return nil, nil //nolint:nilnil // It is as it shall be.
			}
		}
		if !paused && !live.Paused {
			return nil, nil //nolint:nilnil // It is as it shall be.
		}
		if because == "" {
			because = map[bool]string{true: "paused", false: "resumed"}[paused]
		}
		if err := setPaused(schedule, paused, because, time.Now()); err != nil {
			return nil, err
		}
		return &ScheduleEdit{Schedule: schedule}, nil
	})
}

// schedules is the way to change schedules.
func (c *conn) schedules() Schedules {
	return Schedules{Service: scheduleService{c}, Namespace: c.namespace, Identity: c.identity}
}

// changeSchedule edits the schedule of a job until edit gives nil.
func (c *conn) changeSchedule(ctx context.Context, jobID string, edit func(*Live) (*ScheduleEdit, error)) error {
	return c.schedules().Change(ctx, jobID, func(now *workflowservice.DescribeScheduleResponse) (*ScheduleEdit, error) {
		live, err := liveSchedule(jobID, now)
		if err != nil {
			return nil, err
		}
		return edit(live)
	})
}

// scheduleService makes calls with the patience of this package, and explains their
// errors.
type scheduleService struct{ *conn }

func (s scheduleService) DescribeSchedule(ctx context.Context, in *workflowservice.DescribeScheduleRequest, _ ...grpc.CallOption) (*workflowservice.DescribeScheduleResponse, error) {
	out, err := call(ctx, s.temporal.WorkflowService().DescribeSchedule, in)
	return out, explainSchedule(in.GetScheduleId(), err)
}

func (s scheduleService) UpdateSchedule(ctx context.Context, in *workflowservice.UpdateScheduleRequest, _ ...grpc.CallOption) (*workflowservice.UpdateScheduleResponse, error) {
	out, err := call(ctx, s.temporal.WorkflowService().UpdateSchedule, in)
	return out, explainSchedule(in.GetScheduleId(), err)
}

func (s scheduleService) PatchSchedule(ctx context.Context, in *workflowservice.PatchScheduleRequest, _ ...grpc.CallOption) (*workflowservice.PatchScheduleResponse, error) {
	out, err := call(ctx, s.temporal.WorkflowService().PatchSchedule, in)
	return out, explainSchedule(in.GetScheduleId(), err)
}

func explainSchedule(id string, err error) error {
	return explain("schedule of job "+strings.TrimPrefix(id, contract.ScheduleID("")), err)
}

// triggerSchedule asks the schedule itself, so that its overlap policy holds,
// and waits until the run is there.
func (c *conn) triggerSchedule(ctx context.Context, j job.Job) (RunRef, error) {
	triggered, err := c.schedules().Trigger(ctx, j.ID, j.Recurring, enumspb.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED)
	switch {
	case errors.Is(err, ErrNotFound):
		return RunRef{}, err
	case err != nil:
		return RunRef{}, fmt.Errorf("trigger job %s: %w", j.ID, err)
	case triggered.Waits:
		return RunRef{}, fmt.Errorf("job %s was triggered, and its run waits for one that is under way", j.ID)
	case triggered.Started == nil:
		return RunRef{}, fmt.Errorf("job %s was not started: a run of it is under way and its overlap policy is to skip", j.ID)
	}
	return RunRef{WorkflowID: triggered.Started.GetWorkflowId(), RunID: triggered.Started.GetRunId()}, nil
}
