package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// sendTries bounds how often a workflow between two runs is asked.
const sendTries = 10

// notReady reports whether a workflow task failed under a message, as it does when the
// message comes in the moment in which the workflow continues as new: it was not
// taken, and may be sent again.
func notReady(err error) bool {
	var notReady *serviceerror.WorkflowNotReady
	return errors.As(err, &notReady)
}

// answered is the answer to a message. One that would have changed nothing was refused with it.
func answered[Out any](out Out, err error) (Out, error) {
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.Type() == contract.ErrorTypeUnchanged {
		err = app.Details(&out)
	}
	return out, err
}

// deliver sends a message to a workflow, again if it was not taken.
func deliver[In, Out any](ctx context.Context, c *conn, message contract.Message[In, Out], workflowID string, in In) (Out, error) {
	for try := 1; ; try++ {
		out, err := answered(message.Send(ctx, c.temporal, workflowID, in))
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

// triggerLoop starts the next iteration of a continuous job.
func (c *conn) triggerLoop(ctx context.Context, jobID string) (contract.ContinuousState, error) {
	state, err := send(ctx, c, contract.MessageTrigger, jobID, contract.TriggerRequest{})
	if errors.Is(err, ErrNotFound) {
		if live, liveErr := c.jobs().LiveWorkflow(ctx, jobID); liveErr == nil && live != nil && !live.Workflow.Open() {
			return state, &UnsupportedError{Action: "a trigger", JobID: jobID, Mode: job.ModeContinuous, Stopped: true}
		}
	}
	return state, err
}

// lastCursor is the position that a continuous job left behind when it was stopped or
// canceled, nil if there is none to go on from.
func (c *conn) lastCursor(ctx context.Context, j job.Job) (json.RawMessage, error) {
	live, err := c.jobs().LiveWorkflow(ctx, j.ID)
	if errors.Is(err, ErrNotOurs) {
		return nil, nil // If it runs, the start is refused.
	}
	if err != nil || live == nil || !live.leftCursor(j) {
		return nil, err
	}
	var output contract.ContinuousOutput
	err = c.temporal.GetWorkflow(ctx, contract.JobWorkflowID(j.ID), live.Workflow.RunID).Get(ctx, &output)
	if canceled, ok := errors.AsType[*temporal.CanceledError](err); ok {
		if err = nil; canceled.HasDetails() {
			err = canceled.Details(&output)
		}
	}
	return output.Cursor, explain("the last position of job "+j.ID, err)
}

// leftCursor reports whether the position at which a workflow ended is for the job: it was the
// job's own, and was not deleted since.
func (l *Live) leftCursor(j job.Job) bool {
	if l.Workflow.Type != contract.ContinuousJobType || l.Job.Type != j.Type || l.Job.Provider != j.Provider {
		return false
	}
	var stopped contract.Stopped
	temporalclient.MemoField(l.own.info.GetMemo(), contract.MemoStopped, &stopped)
	status := l.Workflow.RunStatus()
	return (status == RunCompleted || status == RunCanceled) && !stopped.Deleted
}

// awaitEnd waits until a continuous job that was asked to stop has ended.
func (c *conn) awaitEnd(ctx context.Context, live *Live) error {
	ctx, cancel := context.WithTimeout(ctx, live.Job.Options.StopGracePeriod.Std()+contract.MaxReturnGrace+10*time.Second)
	defer cancel()
	err := temporalclient.Await(ctx, c.temporal, contract.JobWorkflowID(live.Job.ID), "", nil)
	if unanswered(err) {
		return stateErrorf("job %s was asked to stop and has not ended yet", live.Job.ID)
	}
	return err
}
