package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// UnsupportedError says that a verb does not fit a job's mode.
type UnsupportedError struct {
	Verb, JobID string
	Mode        job.Mode
	Hint        string
}

// Error implements error.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("job %s is %s and cannot be told to %s: %s", e.JobID, e.Mode, e.Verb, e.Hint)
}

// Stop ends what a job does now: a continuous job ends for good, a one-shot or
// queued run is canceled, a waiting item leaves its queue. It returns once the
// request is taken; the handler then has its grace period. A recurring job's
// current run is canceled; its schedule goes on.
func (c *Client) Stop(ctx context.Context, jobID, reason string) error {
	live, err := c.Live(ctx, jobID)
	if err != nil {
		return err
	}
	switch {
	case live.Schedule != nil:
		return c.cancelScheduledRuns(ctx, live)
	case live.Waiting != nil:
		_, err := c.CancelItem(ctx, live.Waiting.Job.Queue(), jobID)
		return err
	case !live.Workflow.Open():
		return fmt.Errorf("job %s does not run: %w", jobID, ErrNotFound)
	case live.Workflow.Type == workflows.ContinuousJobType:
		_, err := send(ctx, c, workflows.MessageStop, jobID, workflows.StopRequest{Reason: reason})
		return err
	case live.Job.Mode() == job.ModeQueued:
		_, err := c.CancelItem(ctx, live.Job.Queue(), jobID)
		if err == nil {
			return nil
		}
		fallthrough // The run is not the queue's, or the queue has no worker.
	default:
		return explain("stop job "+jobID, c.temporal.CancelWorkflow(ctx, workflows.JobWorkflowID(jobID), live.Workflow.RunID))
	}
}

func (c *Client) cancelScheduledRuns(ctx context.Context, live *Live) error {
	running := live.Schedule.Info.RunningWorkflows
	if len(running) == 0 {
		return fmt.Errorf("job %s has no run now; pause it to keep it from starting more: %w", live.Job.ID, ErrNotFound)
	}
	var errs []error
	for _, execution := range running {
		errs = append(errs, explain("stop run "+execution.WorkflowID, c.temporal.CancelWorkflow(ctx, execution.WorkflowID, "")))
	}
	return errors.Join(errs...)
}

// Restart ends the current iteration of a continuous job and starts the next at
// once; a continuous job that was stopped, or is being stopped, is started again.
func (c *Client) Restart(ctx context.Context, jobID, reason string) error {
	live, err := c.Live(ctx, jobID)
	if err != nil {
		return err
	}
	if live.Workflow == nil || live.Workflow.Type != workflows.ContinuousJobType {
		return &UnsupportedError{"restart", jobID, live.Job.Mode(), "trigger it instead"}
	}
	if !live.Workflow.Open() {
		return c.StartContinuous(ctx, live.Job)
	}
	state, err := send(ctx, c, workflows.MessageRestart, jobID, workflows.RestartRequest{Reason: reason})
	if err != nil || !state.Stop {
		return err
	}
	// It was told to stop before, and is about to end.
	if err := c.awaitEnd(ctx, live); err != nil {
		return err
	}
	return c.StartContinuous(ctx, state.Job)
}

// Pause keeps a recurring or continuous job from running until it is resumed. A
// run that is under way: recurring, it goes on; continuous, it is ended gracefully.
func (c *Client) Pause(ctx context.Context, jobID, reason string) error {
	return c.setPaused(ctx, jobID, true, reason)
}

// Resume undoes Pause. What a recurring job missed meanwhile is not made up for.
func (c *Client) Resume(ctx context.Context, jobID, reason string) error {
	return c.setPaused(ctx, jobID, false, reason)
}

func (c *Client) setPaused(ctx context.Context, jobID string, paused bool, reason string) error {
	verb := map[bool]string{true: "pause", false: "resume"}[paused]
	live, err := c.Live(ctx, jobID)
	if err != nil {
		return err
	}
	switch {
	case live.Schedule != nil:
		err := c.setSchedulePaused(ctx, jobID, paused, reason)
		c.wakeProbe(ctx, jobID)
		return err
	case live.Workflow == nil || live.Workflow.Type != workflows.ContinuousJobType:
		return &UnsupportedError{verb, jobID, live.Job.Mode(), "stop it, or pause its queue"}
	case !live.Workflow.Open():
		return fmt.Errorf("job %s was stopped; restart it first: %w", jobID, ErrNotFound)
	case paused:
		_, err = send(ctx, c, workflows.MessagePause, jobID, workflows.PauseRequest{Reason: reason})
		return err
	default:
		_, err = send(ctx, c, workflows.MessageResume, jobID, workflows.ResumeRequest{Reason: reason})
		return err
	}
}

// setSchedulePaused asks until the schedule says so: the older schedule engine
// answers before it acts, and may lose a request to one that comes right after.
func (c *Client) setSchedulePaused(ctx context.Context, jobID string, paused bool, reason string) error {
	handle := c.temporal.ScheduleClient().GetHandle(ctx, workflows.ScheduleID(jobID))
	ask := func() error {
		if paused {
			return handle.Pause(ctx, client.SchedulePauseOptions{Note: reason})
		}
		return handle.Unpause(ctx, client.ScheduleUnpauseOptions{Note: reason})
	}
	const tries = 5
	for range tries {
		if err := ask(); err != nil {
			return explain("schedule of job "+jobID, err)
		}
		settled, err := c.settles(ctx, func() (bool, error) {
			description, err := handle.Describe(ctx)
			return err == nil && description.Schedule.State.Paused == paused, err
		})
		if settled || err != nil {
			return err
		}
	}
	return fmt.Errorf("the schedule of job %s did not take the change in %d tries", jobID, tries)
}

// settles polls for up to two seconds until the condition holds.
func (c *Client) settles(ctx context.Context, condition func() (bool, error)) (bool, error) {
	deadline := time.Now().Add(2 * time.Second)
	for {
		ok, err := condition()
		if ok || err != nil {
			return ok, err
		}
		if time.Now().After(deadline) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// sendTries bounds how often a workflow between two runs is asked.
const sendTries = 10

// notReady says that a workflow task failed under a message, as it does when the
// message comes in the moment in which the workflow continues as new: it was not
// taken, and may be sent again.
func notReady(err error) bool {
	var notReady *serviceerror.WorkflowNotReady
	return errors.As(err, &notReady)
}

// deliver sends a message to a workflow, again if it was not taken.
func deliver[In, Out any](ctx context.Context, c *Client, message workflows.Message[In, Out], workflowID string, in In) (Out, error) {
	for try := 1; ; try++ {
		out, err := message.Send(ctx, c.temporal, workflowID, in)
		if try == sendTries || !notReady(err) || ctx.Err() != nil {
			return out, err
		}
	}
}

// send sends a message to a continuous job and waits for a worker's answer.
func send[In, Out any](ctx context.Context, c *Client, message workflows.Message[In, Out], jobID string, in In) (Out, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	out, err := deliver(ctx, c, message, workflows.JobWorkflowID(jobID), in)
	return out, explain(fmt.Sprintf("%s job %s", string(message), jobID), err)
}

// SetContinuous gives a running continuous job a new definition, from the next
// iteration on, or at once if restart is set.
func (c *Client) SetContinuous(ctx context.Context, j job.Job, restart bool) error {
	_, err := send(ctx, c, workflows.MessageSetJob, j.ID, workflows.SetJobRequest{Job: j, Restart: restart})
	return err
}

// StartContinuous starts the loop of a continuous job. A loop that runs with the
// same definition is left alone; with another, or someone else's, is an error.
func (c *Client) StartContinuous(ctx context.Context, j job.Job) error {
	options, err := startOptions(j)
	if err != nil {
		return err
	}
	_, err = c.temporal.ExecuteWorkflow(ctx, options, workflows.ContinuousJobType, workflows.NewContinuousState(j))
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		_, err = c.sameDefinition(ctx, j)
		return err
	}
	return explain("start job "+j.ID, err)
}

// sameDefinition gives the workflow that holds a job's id, if it is the job's own
// and has the definition j.
func (c *Client) sameDefinition(ctx context.Context, j job.Job) (RunRef, error) {
	live, err := c.LiveWorkflow(ctx, j.ID)
	if err != nil {
		return RunRef{}, err
	}
	hash, err := j.SpecHash()
	if err != nil {
		return RunRef{}, err
	}
	if live == nil || live.SpecHash != hash {
		return RunRef{}, fmt.Errorf("job %s runs with another definition now; try again when that has ended", j.ID)
	}
	return RunRef{WorkflowID: workflows.JobWorkflowID(j.ID), RunID: live.Workflow.RunID}, nil
}

// StartRun starts a run of a job at once. If a run of the job with the same spec
// is under way, that one is given instead; with another spec is an error.
func (c *Client) StartRun(ctx context.Context, j job.Job, trigger workflows.Trigger) (RunRef, error) {
	options, err := startOptions(j)
	if err != nil {
		return RunRef{}, err
	}
	run, err := c.temporal.ExecuteWorkflow(ctx, options, workflows.RunJobType, workflows.RunInput{Job: j, Trigger: trigger})
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return c.sameDefinition(ctx, j)
	}
	if err != nil {
		return RunRef{}, explain("start job "+j.ID, err)
	}
	return RunRef{WorkflowID: run.GetID(), RunID: run.GetRunID()}, nil
}

// startOptions are those of a workflow that a job's id names.
func startOptions(j job.Job) (client.StartWorkflowOptions, error) {
	attributes, err := workflows.Attributes(j)
	if err != nil {
		return client.StartWorkflowOptions{}, err
	}
	return client.StartWorkflowOptions{
		ID:                    workflows.JobWorkflowID(j.ID),
		TaskQueue:             workflows.TaskQueue(j.Worker),
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: attributes,
		StaticSummary:         workflows.Summary(j),
		Memo:                  map[string]any{workflows.MemoJob: j},

		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, nil
}

// Triggered is what Trigger set off.
type Triggered struct {
	// Run is the run that was started; zero where a queue or a loop starts it.
	Run RunRef
	// Receipt is the place in the queue of a queued job.
	Receipt *workflows.EnqueueReceipt
}

// Trigger runs a job now: it starts a one-shot again, puts a queued job into its
// queue again, starts a continuous job's next iteration, and starts a run of a
// recurring job, which does not wait for its schedule and does not change it.
func (c *Client) Trigger(ctx context.Context, jobID string) (Triggered, error) {
	live, err := c.Live(ctx, jobID)
	if err != nil {
		return Triggered{}, err
	}
	return c.TriggerJob(ctx, live.Job)
}

// triggerLoop starts the next iteration of a continuous job.
func (c *Client) triggerLoop(ctx context.Context, jobID string) (workflows.ContinuousState, error) {
	state, err := send(ctx, c, workflows.MessageTrigger, jobID, workflows.TriggerRequest{})
	if errors.Is(err, ErrNotFound) {
		if live, liveErr := c.LiveWorkflow(ctx, jobID); liveErr == nil && live != nil && !live.Workflow.Open() {
			return state, fmt.Errorf("job %s was stopped; restart it first", jobID)
		}
	}
	return state, err
}

// TriggerJob is Trigger for a definition that may not be in Temporal yet.
func (c *Client) TriggerJob(ctx context.Context, j job.Job) (Triggered, error) {
	switch j.Mode() {
	case job.ModeContinuous:
		_, err := c.triggerLoop(ctx, j.ID)
		return Triggered{}, err
	case job.ModeQueued:
		receipt, err := c.Enqueue(ctx, j, true)
		return Triggered{Receipt: &receipt}, err
	case job.ModeRecurring:
		ref, err := c.triggerSchedule(ctx, j.ID)
		return Triggered{Run: ref}, err
	default:
		ref, err := c.StartRun(ctx, j, workflows.TriggerManual)
		return Triggered{Run: ref}, err
	}
}

// triggerSchedule asks the schedule itself, so that its overlap policy holds,
// and waits until the run is there.
func (c *Client) triggerSchedule(ctx context.Context, jobID string) (RunRef, error) {
	handle := c.temporal.ScheduleClient().GetHandle(ctx, workflows.ScheduleID(jobID))
	before, err := handle.Describe(ctx)
	if err != nil {
		return RunRef{}, explain("schedule of job "+jobID, err)
	}
	// By run: two runs within a second have the same workflow id.
	seen := map[string]bool{}
	for _, action := range before.Info.RecentActions {
		if action.StartWorkflowResult != nil {
			seen[action.StartWorkflowResult.FirstExecutionRunID] = true
		}
	}
	if err := handle.Trigger(ctx, client.ScheduleTriggerOptions{}); err != nil {
		return RunRef{}, explain("trigger job "+jobID, err)
	}
	var ref RunRef
	settled, err := c.settles(ctx, func() (bool, error) {
		now, err := handle.Describe(ctx)
		if err != nil {
			return false, explain("schedule of job "+jobID, err)
		}
		for _, action := range now.Info.RecentActions {
			if started := action.StartWorkflowResult; started != nil && !seen[started.FirstExecutionRunID] {
				ref = RunRef{WorkflowID: started.WorkflowID, RunID: started.FirstExecutionRunID}
				return true, nil
			}
		}
		if now.Info.NumActionsSkippedOverlap > before.Info.NumActionsSkippedOverlap {
			return false, fmt.Errorf("job %s was not started: a run of it is under way and its overlap policy is to skip", jobID)
		}
		return false, nil
	})
	if err == nil && !settled {
		err = fmt.Errorf("job %s was triggered, but its schedule has started no run within two seconds", jobID)
	}
	return ref, err
}
