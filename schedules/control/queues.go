package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// queueNames lists the queues that exist. A queue that was made within the last
// second may be missing: the list is eventually consistent.
func (c *Client) queueNames(ctx context.Context) ([]string, error) {
	var names []string
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", workflows.JobQueueType)
	err := c.listWorkflows(ctx, query, 0, func(info *workflowpb.WorkflowExecutionInfo) {
		name := attribute(info.GetSearchAttributes(), workflows.AttributeQueue.GetName())
		if name != "" && info.GetExecution().GetWorkflowId() == workflows.QueueWorkflowID(name) {
			names = append(names, name)
		}
	})
	slices.Sort(names)
	return names, err
}

// Queues lists all queues with their states, by name.
func (c *Client) Queues(ctx context.Context) ([]workflows.QueueState, error) {
	names, err := c.queueNames(ctx)
	if err != nil {
		return nil, err
	}
	states := make([]workflows.QueueState, len(names))
	err = Each(len(names), func(i int) error {
		state, err := c.QueueState(ctx, names[i])
		if err != nil {
			return err
		}
		states[i] = *state
		return nil
	})
	return states, err
}

// QueueState asks a queue for its state. It needs a live worker of any type.
func (c *Client) QueueState(ctx context.Context, name string) (*workflows.QueueState, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	answer, err := c.temporal.QueryWorkflow(ctx, workflows.QueueWorkflowID(name), "", workflows.QueryState)
	if err != nil {
		return nil, explain("queue "+name, err)
	}
	var state workflows.QueueState
	if err := answer.Get(&state); err != nil {
		return nil, fmt.Errorf("queue %s: %w", name, err)
	}
	return &state, nil
}

// Enqueue puts a queued job into its queue, which is made if it is not there,
// and gives its place. Once it returns without an error the job is part of the
// queue's durable state. With again set, the job runs although it ran before.
// It needs a live worker of any type.
func (c *Client) Enqueue(ctx context.Context, j job.Job, again bool) (workflows.EnqueueReceipt, error) {
	return c.EnqueueOnce(ctx, j, again, NewRequestID())
}

// EnqueueOnce is Enqueue for a request that may be made several times: as long as
// the queue remembers it, the same request id adds no second item.
func (c *Client) EnqueueOnce(ctx context.Context, j job.Job, again bool, requestID string) (workflows.EnqueueReceipt, error) {
	name := j.Queue()
	if name == "" {
		return workflows.EnqueueReceipt{}, fmt.Errorf("job %s names no queue", j.ID)
	}
	in := workflows.EnqueueRequest{Job: j, Again: again, RequestID: requestID}
	for try := 1; ; try++ {
		receipt, err := c.enqueueOnce(ctx, name, in)
		if err == nil || try == enqueueTries || !retryEnqueue(ctx, err) {
			return receipt, explain(fmt.Sprintf("enqueue job %s in queue %s", j.ID, name), err)
		}
	}
}

// enqueueTries bounds how often a busy queue is asked.
const enqueueTries = 5

func (c *Client) enqueueOnce(ctx context.Context, name string, in workflows.EnqueueRequest) (workflows.EnqueueReceipt, error) {
	// The server aborts updates of a workflow beyond the tenth under way.
	c.enqueuing <- struct{}{}
	defer func() { <-c.enqueuing }()
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	start := c.temporal.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID:                       workflows.QueueWorkflowID(name),
		TaskQueue:                workflows.QueuesTaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		TypedSearchAttributes:    workflows.QueueAttributes(name),
		StaticSummary:            "queue " + name,
	}, workflows.JobQueueType, workflows.QueueState{Name: name})
	return workflows.MessageEnqueue.SendWithStart(ctx, c.temporal, start, in)
}

// retryEnqueue says that a queue was between two runs of its workflow, or busy.
// The request has an id of its own, so asking again cannot double the item.
func retryEnqueue(ctx context.Context, err error) bool {
	var unavailable *serviceerror.Unavailable
	var exhausted *serviceerror.ResourceExhausted
	var aborted *serviceerror.Aborted
	return ctx.Err() == nil &&
		(notReady(err) || errors.As(err, &unavailable) || errors.As(err, &exhausted) || errors.As(err, &aborted))
}

// RemoveWaiting takes an item out of its queue that has not started, and refuses
// to stop it if it runs. An item of the job with another number is not meant.
func (c *Client) RemoveWaiting(ctx context.Context, queue, jobID string, sequence int64) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	_, err := deliver(ctx, c, workflows.MessageCancelItem, workflows.QueueWorkflowID(queue),
		workflows.CancelItemRequest{JobID: jobID, WaitingOnly: true, Only: sequence})
	return explain(fmt.Sprintf("remove job %s from queue %s", jobID, queue), err)
}

// CancelItem removes a waiting job from its queue, or stops it while it runs.
func (c *Client) CancelItem(ctx context.Context, queue, jobID string) (workflows.CancelItemReceipt, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	receipt, err := deliver(ctx, c, workflows.MessageCancelItem, workflows.QueueWorkflowID(queue),
		workflows.CancelItemRequest{JobID: jobID})
	return receipt, explain(fmt.Sprintf("cancel job %s in queue %s", jobID, queue), err)
}

// PauseQueue lets the running item finish and starts no more.
func (c *Client) PauseQueue(ctx context.Context, queue, reason string) (workflows.QueueSummary, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	summary, err := deliver(ctx, c, workflows.MessagePauseQueue, workflows.QueueWorkflowID(queue),
		workflows.PauseRequest{Reason: reason})
	return summary, explain("pause queue "+queue, err)
}

// ResumeQueue lets a paused queue go on.
func (c *Client) ResumeQueue(ctx context.Context, queue string) (workflows.QueueSummary, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	summary, err := deliver(ctx, c, workflows.MessageResumeQueue, workflows.QueueWorkflowID(queue),
		workflows.ResumeRequest{})
	return summary, explain("resume queue "+queue, err)
}
