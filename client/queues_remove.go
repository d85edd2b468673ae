package client

import (
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/dendrascience/dendra-jobs/contract"
)

// Items counts what waits and runs in a queue, and its dead letters. A queue that is not
// there has none, and exists is false.
func (c *QueueClient) Items(ctx context.Context, queue string) (items int, exists bool, err error) {
	q, err := c.Get(ctx, queue)
	if errors.Is(err, ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	items = q.Waiting + q.DeadLetters
	if q.Running != nil {
		items++
	}
	return items, true, nil
}

// Remove removes a queue with everything in it: what waits goes, what runs is stopped
// gracefully and waited for, then the queue itself goes with its history. It is no error
// if there is no such queue. An item that is put in meanwhile may be lost, or make the
// queue anew.
func (c *QueueClient) Remove(ctx context.Context, queue string) error {
	q, err := c.Get(ctx, queue)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if q.Ended == nil {
		if err := c.empty(ctx, queue); err != nil {
			return err
		}
	}
	return c.deleteWorkflows(ctx, contract.QueueWorkflowID(queue))
}

// empty takes everything out of a queue, and waits until nothing runs in it.
func (c *QueueClient) empty(ctx context.Context, queue string) error {
	if _, err := c.Purge(ctx, queue, 0, 0); err != nil {
		return err
	}
	q, err := c.Get(ctx, queue)
	if err != nil {
		return err
	}
	if q.Halted != nil {
		if _, err := c.SkipFailed(ctx, queue); err != nil {
			return err
		}
	}
	if q.Running != nil {
		if _, err := c.CancelItem(ctx, queue, q.Running.JobID); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return c.AwaitEmpty(ctx, queue, func(*Queue) {})
}

// deleteWorkflows removes all executions of a workflow from Temporal; one that runs is
// terminated first. The list of them may lag, so that the latest is removed without it.
func (c *conn) deleteWorkflows(ctx context.Context, workflowID string) error {
	err := c.eachWorkflow(ctx, fmt.Sprintf("WorkflowId = %s AND ExecutionStatus != 'Running'", quote(workflowID)), 0, func(info *workflowpb.WorkflowExecutionInfo) error {
		return c.deleteWorkflow(ctx, workflowID, info.GetExecution().GetRunId())
	})
	if err != nil {
		return err
	}
	for { // The server deletes later, and may forget a request that comes while it is busy.
		if err := c.deleteWorkflow(ctx, workflowID, ""); err != nil {
			return err
		}
		gone, err := c.becomes(ctx, func() (bool, error) {
			_, err := c.temporal.DescribeWorkflowExecution(ctx, workflowID, "")
			if isNotFound(err) {
				return true, nil
			}
			return false, explain(workflowID, ofServer(ctx, err))
		})
		if gone || err != nil {
			return err
		}
	}
}

func (c *conn) deleteWorkflow(ctx context.Context, workflowID, runID string) error {
	_, err := call(ctx, c, c.temporal.WorkflowService().DeleteWorkflowExecution, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: c.namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: workflowID, RunId: runID},
	})
	if isNotFound(err) {
		return nil
	}
	return explain("delete "+workflowID, err)
}
