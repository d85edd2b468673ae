package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// UnsupportedError says that an action does not fit a job's mode, or a continuous job that was
// stopped.
type UnsupportedError struct {
	Action, JobID string
	Mode          job.Mode
	Stopped       bool
}

// Error implements error.
func (e *UnsupportedError) Error() string {
	if e.Stopped {
		return fmt.Sprintf("job %s was stopped: it does not support %s", e.JobID, e.Action)
	}
	return fmt.Sprintf("job %s: %s jobs do not support %s", e.JobID, e.Mode, e.Action)
}

// Stop ends what a job does now: a continuous job ends for good, a one-shot or
// queued run is canceled, a waiting item leaves its queue. It returns once the
// request is taken; the handler then has its grace period. A recurring job's
// current run is canceled; its schedule goes on.
func (c *JobClient) Stop(ctx context.Context, jobID, reason string) error {
	live, err := c.Live(ctx, jobID)
	if err != nil {
		return err
	}
	switch {
	case live.Schedule != nil:
		return c.cancelScheduledRuns(ctx, live)
	case live.Waiting != nil:
		_, err := c.queues().CancelItem(ctx, live.Waiting.Job.Queue(), jobID)
		return err
	case !live.Workflow.Open() && live.Unanswered != nil:
		return fmt.Errorf("job %s does not run, and %w", jobID, live.Unanswered)
	case !live.Workflow.Open():
		return absentErrorf("job %s does not run", jobID)
	case live.Workflow.Type == contract.ContinuousJobType:
		_, err := send(ctx, c.conn, contract.MessageStop, jobID, contract.StopRequest{Reason: reason})
		return err
	case live.Job.Mode() == job.ModeQueued:
		_, err := c.queues().CancelItem(ctx, live.Job.Queue(), jobID)
		if err == nil {
			return nil
		}
		fallthrough // The run is not the queue's, or the queue has no worker.
	default:
		return explain("stop job "+jobID, c.temporal.CancelWorkflow(ctx, contract.JobWorkflowID(jobID), live.Workflow.RunID))
	}
}

func (c *conn) cancelScheduledRuns(ctx context.Context, live *Live) error {
	running := map[string]bool{}
	for _, execution := range live.Schedule.GetInfo().GetRunningWorkflows() {
		running[execution.GetWorkflowId()] = true
	}
	// Runs that were not started by the schedule itself.
	listed, err := c.listRuns(ctx, RunFilter{JobID: live.Job.ID, Status: RunRunning, asListed: true})
	for _, run := range listed {
		running[run.WorkflowID] = true
	}
	if err == nil && len(running) == 0 {
		return absentErrorf("job %s has no run now; pause it to keep it from starting more", live.Job.ID)
	}
	for id := range running {
		err = errors.Join(err, explain("stop run "+id, c.temporal.CancelWorkflow(ctx, id, "")))
	}
	return err
}

// Restart ends the current iteration of a continuous job and starts the next at
// once; a continuous job that was stopped, or is being stopped, is started again.
func (c *JobClient) Restart(ctx context.Context, jobID, reason string) error {
	live, err := c.Live(ctx, jobID)
	if err != nil {
		return err
	}
	if live.Workflow == nil || live.Workflow.Type != contract.ContinuousJobType {
		return &UnsupportedError{Action: "restart", JobID: jobID, Mode: live.Job.Mode()}
	}
	if !live.Workflow.Open() {
		return c.StartContinuous(ctx, live.Job)
	}
	state, err := send(ctx, c.conn, contract.MessageRestart, jobID, contract.RestartRequest{Reason: reason})
	if errors.Is(err, ErrNotFound) {
		return c.restartEnded(ctx, jobID, err)
	}
	if err != nil || !state.Stop {
		return err
	}
	// It was asked to stop before, and is about to end.
	if err := c.awaitEnd(ctx, live); err != nil {
		return err
	}
	return c.StartContinuous(ctx, state.Job)
}

// restartEnded starts a continuous job again that was not there any more when it was asked
// to restart: it had been asked to stop, and ended between two looks.
func (c *conn) restartEnded(ctx context.Context, jobID string, missed error) error {
	live, err := c.jobs().LiveWorkflow(ctx, jobID)
	if err != nil {
		return err
	}
	if live == nil || live.Workflow.Open() || live.Workflow.Type != contract.ContinuousJobType {
		return missed
	}
	return c.jobs().StartContinuous(ctx, live.Job)
}

// Pause keeps a recurring or continuous job from running until it is resumed. A
// run that is under way: recurring, it goes on; continuous, it is ended gracefully.
// A job that is paused already keeps the reasons that it was paused for; one
// Resume undoes all.
func (c *JobClient) Pause(ctx context.Context, jobID, reason string) error {
	_, err := c.PauseSeeing(ctx, jobID, contract.PauseRequest{Reason: reason})
	return err
}

// PauseSeeing is Pause that says what it has found. With an end the job is resumed then, by a
// worker, whatever becomes of the caller. The end of a later pause takes its place, and a resume
// ends both. Ends are whole seconds.
func (c *JobClient) PauseSeeing(ctx context.Context, jobID string, in contract.PauseRequest) (contract.Before, error) {
	in.End = in.End.Truncate(time.Second)
	return c.setPaused(ctx, jobID, pauseChange{paused: true, PauseRequest: in})
}

// EndPause resumes a recurring job if it is still paused until the end, and reports whether it
// was. A continuous job ends its pause itself.
func (c *JobClient) EndPause(ctx context.Context, jobID string, end time.Time) (bool, error) {
	before, err := c.setSchedulePaused(ctx, jobID, pauseChange{only: end, PauseRequest: contract.PauseRequest{Reason: "the pause was over"}})
	return !before.Unchanged, err
}

// pauseChange is a pause, or its end.
type pauseChange struct {
	paused bool
	// only is the end of the pause to undo, zero for any.
	only time.Time
	contract.PauseRequest
}

// Resume undoes Pause. What a recurring job missed meanwhile is not made up for.
func (c *JobClient) Resume(ctx context.Context, jobID, reason string) error {
	_, err := c.ResumeSeeing(ctx, jobID, reason)
	return err
}

// ResumeSeeing is Resume that says what it has found.
func (c *JobClient) ResumeSeeing(ctx context.Context, jobID, reason string) (contract.Before, error) {
	return c.setPaused(ctx, jobID, pauseChange{PauseRequest: contract.PauseRequest{Reason: reason}})
}

func (c *conn) setPaused(ctx context.Context, jobID string, change pauseChange) (contract.Before, error) {
	verb := map[bool]string{true: "pause", false: "resume"}[change.paused]
	live, err := c.jobs().Live(ctx, jobID)
	if err != nil {
		return contract.Before{}, err
	}
	switch {
	case live.Schedule != nil:
		return c.setSchedulePaused(ctx, jobID, change)
	case live.Workflow == nil || live.Workflow.Type != contract.ContinuousJobType:
		return contract.Before{}, &UnsupportedError{Action: verb, JobID: jobID, Mode: live.Job.Mode()}
	case !live.Workflow.Open():
		return contract.Before{}, &UnsupportedError{Action: verb, JobID: jobID, Mode: job.ModeContinuous, Stopped: true}
	}
	var answer contract.ContinuousAnswer
	if change.paused {
		answer, err = send(ctx, c, contract.MessagePause, jobID, change.PauseRequest)
	} else {
		answer, err = send(ctx, c, contract.MessageResume, jobID, contract.ResumeRequest{Reason: change.Reason})
	}
	return answer.Before, err
}

// becomes polls for up to two seconds until the condition holds.
func (c *conn) becomes(ctx context.Context, condition func() (bool, error)) (bool, error) {
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

// Triggered is what Trigger set off.
type Triggered struct {
	// Run is the run that was started; zero where a queue or a loop starts it.
	Run RunRef
	// Receipt is the place in the queue of a queued job.
	Receipt *contract.EnqueueReceipt
}

// Trigger runs a job now: it starts a one-shot again, puts a queued job into its
// queue again, starts a continuous job's next iteration, and starts a run of a
// recurring job, which does not wait for its schedule and does not change it.
func (c *JobClient) Trigger(ctx context.Context, jobID string) (Triggered, error) {
	live, err := c.Live(ctx, jobID)
	if err != nil {
		return Triggered{}, err
	}
	return c.TriggerJob(ctx, live.Job)
}

// TriggerJob is Trigger for a definition that may not be in Temporal yet.
func (c *JobClient) TriggerJob(ctx context.Context, j job.Job) (Triggered, error) {
	switch j.Mode() {
	case job.ModeContinuous:
		_, err := c.triggerLoop(ctx, j.ID)
		return Triggered{}, err
	case job.ModeQueued:
		receipt, err := c.queues().Enqueue(ctx, j, EnqueueOptions{AllowRerun: true})
		return Triggered{Receipt: &receipt}, err
	case job.ModeRecurring:
		ref, err := c.triggerSchedule(ctx, j)
		return Triggered{Run: ref}, err
	default:
		ref, err := c.runs().Start(ctx, j, contract.StartedByHand)
		return Triggered{Run: ref}, err
	}
}
