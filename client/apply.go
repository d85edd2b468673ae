package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// NamespaceID is the id of the namespace: another cluster's namespace of the same
// name has another.
func (c *ApplyClient) NamespaceID(ctx context.Context) (string, error) {
	response, err := read(ctx, c.conn, c.temporal.WorkflowService().DescribeNamespace, &workflowservice.DescribeNamespaceRequest{
		Namespace: c.namespace,
	})
	return response.GetNamespaceInfo().GetId(), explain("namespace "+c.namespace, err)
}

// SetContinuous gives a running continuous job a new definition, from the next iteration
// on, or at once if restart is set. If the definition in force has another hash than was,
// and is not j already, it gives [ErrMoved]; "" expects nothing.
func (c *ApplyClient) SetContinuous(ctx context.Context, j job.Job, was string, restart bool) error {
	_, err := send(ctx, c.conn, contract.MessageSetJob, j.ID, contract.SetJobRequest{
		Job: j, Was: was, Restart: restart, EndFailurePause: true,
	})
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.Type() == contract.ErrorTypeOtherDefinition {
		return fmt.Errorf("job %s was changed by someone else meanwhile: %w", j.ID, ErrMoved)
	}
	return err
}

// StopContinuous stops a continuous job that is no more, and waits until it has ended: its
// handler has its grace period. One that is not as expected is left alone, and gives [ErrMoved]; nil
// expects nothing.
func (c *ApplyClient) StopContinuous(ctx context.Context, jobID, reason string, expected func(*Live) bool) error {
	live, err := c.jobs().LiveWorkflow(ctx, jobID)
	if err != nil {
		return err
	}
	if live == nil || !live.Workflow.Open() || live.Workflow.Type != contract.ContinuousJobType {
		return fmt.Errorf("continuous job %s: %w", jobID, ErrNotFound)
	}
	if expected != nil && !expected(live) {
		return fmt.Errorf("job %s was changed by someone else meanwhile: %w", jobID, ErrMoved)
	}
	if _, err := send(ctx, c.conn, contract.MessageStop, jobID, contract.StopRequest{Reason: reason, Delete: true}); err != nil {
		return err
	}
	return c.awaitEnd(ctx, live)
}

// EndWaiting ends the run of a one-shot that waits for its time. One that has
// begun meanwhile is left alone and gives [ErrMoved].
func (c *ApplyClient) EndWaiting(ctx context.Context, jobID, runID, reason string) error {
	live, err := c.jobs().LiveWorkflow(ctx, jobID)
	if err != nil {
		return err
	}
	if live == nil || live.Workflow.RunID != runID || !live.Workflow.Open() || !live.Workflow.Begins.After(time.Now()) {
		return fmt.Errorf("run %s of job %s does not wait any more: %w", runID, jobID, ErrMoved)
	}
	return c.runs().Terminate(ctx, RunRef{WorkflowID: contract.JobWorkflowID(jobID), RunID: runID}, reason)
}

// RemoveWaiting takes an item out of its queue that has not started, and refuses
// to stop it if it runs. An item of the job with another number is not meant.
func (c *ApplyClient) RemoveWaiting(ctx context.Context, queue, jobID string, sequence int64) error {
	_, err := toQueue(ctx, c.conn, contract.MessageCancelItem, queue, fmt.Sprintf("remove job %s from queue %s", jobID, queue),
		contract.CancelItemRequest{JobID: jobID, WaitingOnly: true, ExpectedSequence: sequence})
	return err
}
