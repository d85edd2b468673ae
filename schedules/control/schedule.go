package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// Standing says what stands in Temporal for a job until someone removes it.
type Standing struct {
	Provider job.Provider
	Schedule bool // a schedule
	Loop     bool // the open workflow of a continuous job
	// Waiting is an item that has not started, in the queue of its definition.
	Waiting *workflows.QueueItem
}

// Standing lists what stands for which job id, and the queues whose items nobody
// can tell since no worker answers. Besides the queues that are listed it asks
// the given ones. The lists behind it lag by about a second: confirm with
// LiveSchedule or LiveWorkflow before acting on a schedule or loop.
func (c *Client) Standing(ctx context.Context, queues []string) (map[string]Standing, []string, error) {
	standing, err := c.standingListed(ctx)
	if err != nil {
		return nil, nil, err
	}
	listed, err := c.queueNames(ctx)
	if err != nil {
		return nil, nil, err
	}
	names := slices.Concat(listed, queues)
	slices.Sort(names)
	unread, err := c.standingWaiting(ctx, slices.Compact(names), standing)
	return standing, unread, err
}

// standingWaiting adds what waits in queues, and gives those that do not answer.
// After the first that does not, the others are not asked: they have the same workers.
func (c *Client) standingWaiting(ctx context.Context, names []string, standing map[string]Standing) (unread []string, err error) {
	for i, name := range names {
		state, err := c.QueueState(ctx, name)
		switch {
		case errors.Is(err, ErrNotFound):
			continue
		case errors.Is(err, ErrNoWorker):
			return names[i:], nil
		case err != nil:
			return nil, err
		}
		err = c.eachWaiting(ctx, state, 0, func(item workflows.QueueItem) bool {
			s := standing[item.Job.ID]
			s.Waiting = &item
			if s.Provider == "" {
				s.Provider = item.Job.Provider
			}
			standing[item.Job.ID] = s
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (c *Client) standingListed(ctx context.Context) (map[string]Standing, error) {
	rows := map[string]JobRow{}
	if err := c.scheduledRows(ctx, rows); err != nil {
		return nil, err
	}
	standing := map[string]Standing{}
	for id, row := range rows {
		standing[id] = Standing{Provider: row.Provider, Schedule: true}
	}
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", workflows.ContinuousJobType)
	err := c.listWorkflows(ctx, query, 0, func(info *workflowpb.WorkflowExecutionInfo) {
		run := newRun(info)
		if run.WorkflowID != workflows.JobWorkflowID(run.JobID) {
			return // Not ours.
		}
		s := standing[run.JobID]
		s.Loop = true
		s.Provider = job.Provider(attribute(info.GetSearchAttributes(), workflows.AttributeProvider.GetName()))
		standing[run.JobID] = s
	})
	return standing, err
}

// PutSchedule creates the schedule of a recurring job, or makes the one that is
// there like it. A pause is kept, unless the definition itself says otherwise
// than the one that is there. It returns once the server shows the new
// definition, with the mark of the job and as matches wants it: the older
// schedule engine answers before it acts, and may lose a request.
func (c *Client) PutSchedule(ctx context.Context, j job.Job, options client.ScheduleOptions, matches func(*client.ScheduleDescription) bool) error {
	_, err := c.temporal.ScheduleClient().Create(ctx, options)
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return explain("create schedule "+options.ID, err)
	}
	handle := c.temporal.ScheduleClient().GetHandle(ctx, options.ID)
	hash, err := j.SpecHash()
	if err != nil {
		return err
	}
	const tries = 3
	for range tries {
		if err := c.updateSchedule(ctx, handle, j, options); err != nil {
			return err
		}
		settled, err := c.settles(ctx, func() (bool, error) {
			live, err := c.LiveSchedule(ctx, j.ID)
			return err == nil && live != nil && live.SpecHash == hash && matches(live.Schedule), err
		})
		if settled || err != nil {
			return err
		}
	}
	return fmt.Errorf("schedule %s did not take the new definition in %d tries", options.ID, tries)
}

func (c *Client) updateSchedule(ctx context.Context, handle client.ScheduleHandle, j job.Job, options client.ScheduleOptions) error {
	live, err := c.LiveSchedule(ctx, j.ID)
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("schedule %s: %w", options.ID, ErrNotFound)
	}
	pauseChanges := live.Job.Options.Paused != j.Options.Paused
	err = handle.Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			schedule := in.Description.Schedule
			schedule.Spec = &options.Spec
			schedule.Action = options.Action
			schedule.Policy.Overlap = options.Overlap
			schedule.Policy.CatchupWindow = options.CatchupWindow
			schedule.Policy.PauseOnFailure = options.PauseOnFailure
			if pauseChanges {
				schedule.State.Paused, schedule.State.Note = options.Paused, options.Note
			}
			return &client.ScheduleUpdate{Schedule: &schedule, TypedSearchAttributes: &options.TypedSearchAttributes}, nil
		},
	})
	return explain("update schedule "+options.ID, err)
}

// DeleteSchedule removes the schedule of a job. Runs under way go on.
func (c *Client) DeleteSchedule(ctx context.Context, jobID string) error {
	live, err := c.LiveSchedule(ctx, jobID)
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("schedule of job %s: %w", jobID, ErrNotFound)
	}
	id := workflows.ScheduleID(jobID)
	return explain("delete schedule "+id, c.temporal.ScheduleClient().GetHandle(ctx, id).Delete(ctx))
}

// StopLoop ends the loop of a continuous job and waits until it has ended: its
// handler has its grace period.
func (c *Client) StopLoop(ctx context.Context, jobID, reason string) error {
	live, err := c.LiveWorkflow(ctx, jobID)
	if err != nil {
		return err
	}
	if live == nil || !live.Workflow.Open() || live.Workflow.Type != workflows.ContinuousJobType {
		return fmt.Errorf("loop of job %s: %w", jobID, ErrNotFound)
	}
	if _, err := send(ctx, c, workflows.MessageStop, jobID, workflows.StopRequest{Reason: reason}); err != nil {
		return err
	}
	return c.awaitEnd(ctx, live)
}

// awaitEnd waits until a loop that was told to stop has ended.
func (c *Client) awaitEnd(ctx context.Context, live *Live) error {
	ctx, cancel := context.WithTimeout(ctx, live.Job.Options.StopGracePeriod.Std()+30*time.Second)
	defer cancel()
	err := c.temporal.GetWorkflow(ctx, workflows.JobWorkflowID(live.Job.ID), "").Get(ctx, nil)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("job %s was told to stop and has not ended yet", live.Job.ID)
	}
	return err
}
