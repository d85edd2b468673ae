package control

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

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// ScheduleAction is what the schedule of a recurring job starts: a run of it.
func ScheduleAction(j job.Job) (*schedulepb.ScheduleAction, error) {
	m, err := marksOf(j)
	if err != nil {
		return nil, err
	}
	input, err := encode(workflows.RunInput{Job: j, Trigger: workflows.TriggerSchedule, KeepEnd: true})
	if err != nil {
		return nil, err
	}
	return &schedulepb.ScheduleAction{Action: &schedulepb.ScheduleAction_StartWorkflow{
		StartWorkflow: &workflowpb.NewWorkflowExecutionInfo{
			WorkflowId:       workflows.JobWorkflowID(j.ID),
			WorkflowType:     &commonpb.WorkflowType{Name: workflows.RunJobType},
			TaskQueue:        &taskqueuepb.TaskQueue{Name: workflows.TaskQueue(j.Worker), Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
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
	// Settled says whether the one that is there is as it shall be.
	Settled func(*Live) bool
	// SetPause takes the pause of Schedule as well. Otherwise a schedule that is
	// there keeps its own, unless the definition of the job changes it.
	SetPause bool
}

// scheduleTries bounds how often a schedule is asked to change.
const scheduleTries = 5

// PutSchedule creates the schedule of a recurring job, or makes the one that is
// there like it. It returns once the server shows the change: the older schedule
// engine answers before it acts, and may lose a request. A schedule that someone
// else has changed meanwhile is left alone, and gives [ErrMoved].
func (c *Client) PutSchedule(ctx context.Context, change ScheduleChange) error {
	if change.Create {
		created, err := c.createSchedule(ctx, change)
		if created || err != nil {
			return err
		}
	}
	for try := 1; ; try++ {
		done, err := c.updateSchedule(ctx, change)
		if done || err != nil {
			return err
		}
		if try == scheduleTries {
			return fmt.Errorf("schedule %s did not take the new definition in %d tries", workflows.ScheduleID(change.Job.ID), scheduleTries)
		}
	}
}

// createSchedule reports false when there is a schedule of the name.
func (c *Client) createSchedule(ctx context.Context, change ScheduleChange) (bool, error) {
	m, err := marksOf(change.Job)
	if err != nil {
		return false, err
	}
	id := workflows.ScheduleID(change.Job.ID)
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

// updateSchedule reports false when the schedule has to be looked at again:
// someone else was faster, or the server has lost the change.
func (c *Client) updateSchedule(ctx context.Context, change ScheduleChange) (bool, error) {
	id := workflows.ScheduleID(change.Job.ID)
	live, err := c.LiveSchedule(ctx, change.Job.ID)
	switch {
	case err != nil:
		return false, err
	case live == nil:
		return false, fmt.Errorf("schedule %s was removed by someone else meanwhile: %w", id, ErrMoved)
	case change.Settled(live) && (!change.SetPause || live.Paused == change.Schedule.GetState().GetPaused()):
		return true, nil
	case change.Create || !change.Expected(live):
		if whole, err := c.becomesWhole(ctx, live); whole || err != nil {
			return false, err
		}
		return false, fmt.Errorf("schedule %s was changed by someone else meanwhile: %w", id, ErrMoved)
	}
	m, err := marksOf(change.Job)
	if err != nil {
		return false, err
	}
	schedule, err := change.over(live)
	if err != nil {
		return false, fmt.Errorf("schedule %s: %w", id, err)
	}
	_, err = call(ctx, c.temporal.WorkflowService().UpdateSchedule, &workflowservice.UpdateScheduleRequest{
		Namespace: c.namespace, ScheduleId: id, Schedule: schedule, SearchAttributes: m.attributes,
		ConflictToken: live.Schedule.GetConflictToken(), Identity: c.identity, RequestId: NewRequestID(),
	})
	if conflicts(err) {
		return false, nil
	}
	if err != nil {
		return false, explain("update schedule "+id, err)
	}
	settled, err := c.settles(ctx, func() (bool, error) {
		live, err := c.LiveSchedule(ctx, change.Job.ID)
		return err == nil && live != nil && change.Settled(live), err
	})
	c.wakeProbe(ctx, live)
	return settled, err
}

// becomesWhole waits for a schedule whose mark is that of another definition: the
// older engine shows a change and its mark one after the other. It reports false
// for a schedule that was whole already, or stays as it is.
func (c *Client) becomesWhole(ctx context.Context, live *Live) (bool, error) {
	whole := func(live *Live) bool {
		hash, err := live.Job.SpecHash()
		return err == nil && hash == live.SpecHash
	}
	if whole(live) {
		return false, nil
	}
	return c.settles(ctx, func() (bool, error) {
		live, err := c.LiveSchedule(ctx, live.Job.ID)
		return err == nil && (live == nil || whole(live)), err
	})
}

// over is the schedule to write in place of the one that is there: everything
// but the state, of which the pause is people's, and the rest the server's, and
// the starts ahead that people have skipped.
func (change ScheduleChange) over(live *Live) (*schedulepb.Schedule, error) {
	state := live.Schedule.GetSchedule().GetState()
	if state == nil {
		state = &schedulepb.ScheduleState{}
	}
	if failed := live.Paused && workflows.PausedForFailures(live.PauseReason); failed && !change.Job.Options.Paused {
		// What failed was another definition. Nobody would try this one.
		note := writeNote("resumed: its definition was changed", false, state.GetNotes(), true, time.Now())
		state.Paused, state.Notes = false, note
	}
	if change.SetPause || live.Job.Options.Paused != change.Job.Options.Paused {
		paused, note := change.Schedule.GetState().GetPaused(), change.Schedule.GetState().GetNotes()
		if note == "" {
			note = "as declared"
		}
		if paused != state.GetPaused() {
			note = writeNote(note, paused, state.GetNotes(), state.GetPaused(), time.Now())
		}
		state.Paused, state.Notes = paused, note
	}
	state.LimitedActions, state.RemainingActions = false, 0
	spec, err := withSkips(change.Schedule.GetSpec(), comingSkips(live.Schedule.GetSchedule().GetSpec(), time.Now()))
	return &schedulepb.Schedule{
		Spec: spec, Action: change.Schedule.GetAction(), Policies: change.Schedule.GetPolicies(), State: state,
	}, err
}

// conflicts says that a schedule has changed since it was described.
func conflicts(err error) bool {
	var failed *serviceerror.FailedPrecondition
	return errors.As(err, &failed) && strings.Contains(failed.Message, "conflict token")
}

// DeleteSchedule removes the schedule of a job. Runs under way go on. One that is
// not as expected is left alone, and gives [ErrMoved]; nil expects nothing.
func (c *Client) DeleteSchedule(ctx context.Context, jobID string, expected func(*Live) bool) error {
	live, err := c.LiveSchedule(ctx, jobID)
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("schedule of job %s: %w", jobID, ErrNotFound)
	}
	id := workflows.ScheduleID(jobID)
	if expected != nil && !expected(live) {
		return fmt.Errorf("schedule %s was changed by someone else meanwhile: %w", id, ErrMoved)
	}
	_, err = call(ctx, c.temporal.WorkflowService().DeleteSchedule, &workflowservice.DeleteScheduleRequest{
		Namespace: c.namespace, ScheduleId: id, Identity: c.identity,
	})
	c.wakeProbe(ctx, live)
	return explain("delete schedule "+id, err)
}

// setSchedulePaused asks until the schedule says so: the older schedule engine
// answers before it acts, and may lose a request to one that comes right after.
func (c *Client) setSchedulePaused(ctx context.Context, jobID string, paused bool, reason string) error {
	before, err := c.describeSchedule(ctx, jobID)
	if err != nil {
		return explain("schedule of job "+jobID, err)
	}
	if reason == "" {
		reason = map[bool]string{true: "paused", false: "resumed"}[paused]
	}
	state := before.GetSchedule().GetState()
	note := writeNote(reason, paused, state.GetNotes(), state.GetPaused(), time.Now())
	patch := &schedulepb.SchedulePatch{Pause: note}
	if !paused {
		patch = &schedulepb.SchedulePatch{Unpause: note}
	}
	for range scheduleTries {
		if err := c.patchSchedule(ctx, jobID, patch); err != nil {
			return explain("schedule of job "+jobID, err)
		}
		settled, err := c.settles(ctx, func() (bool, error) {
			live, err := c.describeSchedule(ctx, jobID)
			return err == nil && live.GetSchedule().GetState().GetPaused() == paused, err
		})
		if settled || err != nil {
			return err
		}
	}
	return fmt.Errorf("the schedule of job %s did not take the change in %d tries", jobID, scheduleTries)
}

func (c *Client) patchSchedule(ctx context.Context, jobID string, patch *schedulepb.SchedulePatch) error {
	_, err := call(ctx, c.temporal.WorkflowService().PatchSchedule, &workflowservice.PatchScheduleRequest{
		Namespace: c.namespace, ScheduleId: workflows.ScheduleID(jobID), Patch: patch,
		Identity: c.identity, RequestId: NewRequestID(),
	})
	return err
}

func (c *Client) describeSchedule(ctx context.Context, jobID string) (*workflowservice.DescribeScheduleResponse, error) {
	return call(ctx, c.temporal.WorkflowService().DescribeSchedule, &workflowservice.DescribeScheduleRequest{
		Namespace: c.namespace, ScheduleId: workflows.ScheduleID(jobID),
	})
}

// triggerSchedule asks the schedule itself, so that its overlap policy holds,
// and waits until the run is there.
func (c *Client) triggerSchedule(ctx context.Context, jobID string) (RunRef, error) {
	before, err := c.describeSchedule(ctx, jobID)
	if err != nil {
		return RunRef{}, explain("schedule of job "+jobID, err)
	}
	// By run: two runs within a second have the same workflow id.
	seen := map[string]bool{}
	for _, action := range before.GetInfo().GetRecentActions() {
		seen[action.GetStartWorkflowResult().GetRunId()] = true
	}
	patch := &schedulepb.SchedulePatch{TriggerImmediately: &schedulepb.TriggerImmediatelyRequest{}}
	if err := c.patchSchedule(ctx, jobID, patch); err != nil {
		return RunRef{}, explain("trigger job "+jobID, err)
	}
	var ref RunRef
	settled, err := c.settles(ctx, func() (bool, error) {
		now, err := c.describeSchedule(ctx, jobID)
		if err != nil {
			return false, explain("schedule of job "+jobID, err)
		}
		for _, action := range now.GetInfo().GetRecentActions() {
			if started := action.GetStartWorkflowResult(); started != nil && !seen[started.GetRunId()] {
				ref = RunRef{WorkflowID: started.GetWorkflowId(), RunID: started.GetRunId()}
				return true, nil
			}
		}
		if now.GetInfo().GetOverlapSkipped() > before.GetInfo().GetOverlapSkipped() {
			return false, fmt.Errorf("job %s was not started: a run of it is under way and its overlap policy is to skip", jobID)
		}
		return false, nil
	})
	if err == nil && !settled {
		err = fmt.Errorf("job %s was triggered, but its schedule has started no run within two seconds", jobID)
	}
	return ref, err
}
