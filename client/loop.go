package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

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
func deliver[In, Out any](ctx context.Context, c *conn, message contract.Message[In, Out], workflowID string, in In) (Out, error) {
	for try := 1; ; try++ {
		out, err := message.Send(ctx, c.temporal, workflowID, in)
		if try == sendTries || !notReady(err) || ctx.Err() != nil {
			return out, err
		}
	}
}

// stillOn is added to the error of a message that was not answered: the server may
// hand it over when a worker comes.
const stillOn = "(it may still be done when one answers)"

// send sends a message to a continuous job and waits for a worker's answer.
func send[In, Out any](ctx context.Context, c *conn, message contract.Message[In, Out], jobID string, in In) (Out, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	out, err := deliver(ctx, c, message, contract.JobWorkflowID(jobID), in)
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.Type() == contract.ErrorTypeUnchanged {
		err = app.Details(&out) // It stands so already.
		return out, err
	}
	return out, explainSent(fmt.Sprintf("%s job %s", string(message), jobID), err)
}

// explainSent is explain for a message.
func explainSent(what string, err error) error {
	err = explain(what, err)
	if errors.Is(err, ErrNoWorker) {
		return fmt.Errorf("%w %s", err, stillOn)
	}
	return err
}

// SetContinuous gives a running continuous job a new definition, from the next
// iteration on, or at once if restart is set.
func (c *JobClient) SetContinuous(ctx context.Context, j job.Job, restart bool) error {
	return c.ReplaceContinuous(ctx, j, "", restart)
}

// ReplaceContinuous is SetContinuous if the definition in force has the hash was,
// or is j already. Otherwise it gives [ErrMoved].
func (c *JobClient) ReplaceContinuous(ctx context.Context, j job.Job, was string, restart bool) error {
	_, err := send(ctx, c.conn, contract.MessageSetJob, j.ID, contract.SetJobRequest{
		Job: j, Was: was, Restart: restart, EndFailurePause: true,
	})
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.Type() == contract.ErrorTypeOtherDefinition {
		return fmt.Errorf("job %s was changed by someone else meanwhile: %w", j.ID, ErrMoved)
	}
	return err
}

// triggerLoop starts the next iteration of a continuous job.
func (c *conn) triggerLoop(ctx context.Context, jobID string) (contract.ContinuousState, error) {
	state, err := send(ctx, c, contract.MessageTrigger, jobID, contract.TriggerRequest{})
	if errors.Is(err, ErrNotFound) {
		if live, liveErr := c.jobs().LiveWorkflow(ctx, jobID); liveErr == nil && live != nil && !live.Workflow.Open() {
			return state, fmt.Errorf("job %s was stopped; restart it first", jobID)
		}
	}
	return state, err
}

// StopLoop ends the loop of a continuous job and waits until it has ended: its
// handler has its grace period. One that is not as expected is left alone, and
// gives [ErrMoved]; nil expects nothing.
func (c *JobClient) StopLoop(ctx context.Context, jobID, reason string, expected func(*Live) bool) error {
	live, err := c.LiveWorkflow(ctx, jobID)
	if err != nil {
		return err
	}
	if live == nil || !live.Workflow.Open() || live.Workflow.Type != contract.ContinuousJobType {
		return fmt.Errorf("loop of job %s: %w", jobID, ErrNotFound)
	}
	if expected != nil && !expected(live) {
		return fmt.Errorf("job %s was changed by someone else meanwhile: %w", jobID, ErrMoved)
	}
	if _, err := send(ctx, c.conn, contract.MessageStop, jobID, contract.StopRequest{Reason: reason}); err != nil {
		return err
	}
	return c.awaitEnd(ctx, live)
}

// awaitEnd waits until a loop that was told to stop has ended.
func (c *conn) awaitEnd(ctx context.Context, live *Live) error {
	ctx, cancel := context.WithTimeout(ctx, live.Job.Options.StopGracePeriod.Std()+contract.MaxReturnGrace+10*time.Second)
	defer cancel()
	err := Await(ctx, c.temporal, contract.JobWorkflowID(live.Job.ID), "", nil)
	if unanswered(err) {
		return fmt.Errorf("job %s was told to stop and has not ended yet", live.Job.ID)
	}
	return err
}
