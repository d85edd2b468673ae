package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
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
		err = app.Details(&out) // It is so already.
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

// triggerLoop starts the next iteration of a continuous job.
func (c *conn) triggerLoop(ctx context.Context, jobID string) (contract.ContinuousState, error) {
	state, err := send(ctx, c, contract.MessageTrigger, jobID, contract.TriggerRequest{})
	if errors.Is(err, ErrNotFound) {
		if live, liveErr := c.jobs().LiveWorkflow(ctx, jobID); liveErr == nil && live != nil && !live.Workflow.Open() {
			return state, stateErrorf("job %s was stopped; restart it first", jobID)
		}
	}
	return state, err
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
