package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// EnqueueOptions say how jobs are put into a queue.
type EnqueueOptions struct {
	// AllowRerun runs a job although it has completed before.
	AllowRerun bool
	// RequestID is that of a request that may be made several times: as long as the queue
	// remembers it, the same one adds no second item. Defaults to a new one.
	RequestID string
}

// requestID is that of a batch of items, which begins with the n-th.
func (o EnqueueOptions) requestID(n int) string {
	switch {
	case o.RequestID == "":
		return newRequestID()
	case n == 0:
		return o.RequestID
	}
	return fmt.Sprintf("%s-%d", o.RequestID, n)
}

// Enqueue puts a queued job into its queue, which is made if it is not there,
// and gives its place. Once it returns without an error the job is part of the
// queue's durable state. It needs a live worker of any type.
func (c *QueueClient) Enqueue(ctx context.Context, j job.Job, options EnqueueOptions) (contract.EnqueueReceipt, error) {
	return c.enqueueItem(ctx, contract.EnqueueItem{Job: j, AllowRerun: options.AllowRerun}, options.requestID(0))
}

func (c *conn) enqueueItem(ctx context.Context, item contract.EnqueueItem, requestID string) (contract.EnqueueReceipt, error) {
	receipts, err := c.putIn(ctx, item.Job.Queue(), []contract.EnqueueItem{item}, requestID)
	if err != nil {
		return contract.EnqueueReceipt{}, err
	}
	return receipts[0], nil
}

// EnqueueAll puts jobs of one queue into it, in their order and in batches, and
// gives their places. It reports how many are in after each batch. At the first
// error it ends: what was put in until then, a first part of the jobs, stays in,
// and its places are given with the error. It needs a live worker of any type.
func (c *QueueClient) EnqueueAll(ctx context.Context, jobs []job.Job, options EnqueueOptions, report func(done int)) ([]contract.EnqueueReceipt, error) {
	items := make([]contract.EnqueueItem, len(jobs))
	for i, j := range jobs {
		if j.Queue() != jobs[0].Queue() {
			return nil, stateErrorf("jobs %s and %s belong to different queues", jobs[0].ID, j.ID)
		}
		items[i] = contract.EnqueueItem{Job: j, AllowRerun: options.AllowRerun}
	}
	receipts := make([]contract.EnqueueReceipt, 0, len(items))
	for len(items) > 0 {
		n := batchOf(items)
		put, err := c.putIn(ctx, items[0].Job.Queue(), items[:n], options.requestID(len(receipts)))
		if err != nil {
			return receipts, err
		}
		receipts = append(receipts, put...)
		items = items[n:]
		report(len(receipts))
	}
	return receipts, nil
}

// batchOf is how many of the items fit into one message.
func batchOf(items []contract.EnqueueItem) int {
	bytes := 0
	for n, item := range items {
		if bytes += item.Size(); n > 0 && bytes > contract.MaxBatchBytes || n == contract.MaxBatchItems {
			return n
		}
	}
	return len(items)
}

// Bounds of how often a queue is asked to take items in.
const (
	enqueueAttempts = 5   // while its workflow is between two runs, or has many updates under way
	enqueueWaits    = 600 // while it starts overflow pages: half a minute
)

// busyWait is how long a queue that starts overflow pages is left alone.
const busyWait = 50 * time.Millisecond

// isBusy reports whether a queue takes no items in for a moment.
func isBusy(err error) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && app.Type() == contract.ErrorTypeQueueBusy
}

// putIn puts a batch into a queue. The request has an id of its own, so that
// asking again cannot double it.
func (c *conn) putIn(ctx context.Context, queue string, items []contract.EnqueueItem, requestID string) ([]contract.EnqueueReceipt, error) {
	what := fmt.Sprintf("enqueue %d jobs in queue %s", len(items), queue)
	if len(items) == 1 {
		what = fmt.Sprintf("enqueue job %s in queue %s", items[0].Job.ID, queue)
	}
	if queue == "" {
		return nil, stateErrorf("job %s names no queue", items[0].Job.ID)
	}
	jobs := make([]job.Job, len(items))
	for n := range items {
		jobs[n] = items[n].Job
	}
	if err := c.checkBind(ctx, jobs...); err != nil {
		return nil, err
	}
	in := contract.EnqueueRequest{Items: items, RequestID: requestID}
	for attempts, waits := 0, 0; ; {
		receipts, err := c.enqueueOnce(ctx, queue, in)
		switch {
		case isBusy(err) && waits < enqueueWaits:
			waits++
			if err := pause(ctx, busyWait); err != nil {
				return nil, explain(what, err)
			}
		case retryEnqueue(ctx, err) && attempts < enqueueAttempts:
			attempts++
		default:
			return receipts, explainSent(what, c.orEnded(ctx, queue, err))
		}
	}
}

func (c *conn) enqueueOnce(ctx context.Context, queue string, in contract.EnqueueRequest) ([]contract.EnqueueReceipt, error) {
	c.enqueuing <- struct{}{}
	defer func() { <-c.enqueuing }()
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	answer, err := contract.MessageEnqueue.SendWithStart(ctx, c.temporal, c.startQueue(queue), in)
	if err == nil && len(answer.Receipts) != len(in.Items) {
		err = fmt.Errorf("the queue answered for %d of %d jobs", len(answer.Receipts), len(in.Items))
	}
	return answer.Receipts, err
}

// startQueue starts the workflow of a queue unless it runs. After one that has ended it
// refuses: a queue does not end by itself, and what waits in it would be out of sight.
func (c *conn) startQueue(name string) sdk.WithStartWorkflowOperation {
	return c.temporal.NewWithStartWorkflowOperation(sdk.StartWorkflowOptions{
		ID:                       contract.QueueWorkflowID(name),
		TaskQueue:                contract.QueuesTaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		TypedSearchAttributes:    contract.QueueAttributes(name),
		StaticSummary:            queueSummary(name),
	}, contract.JobQueueType, contract.QueueState{Name: name})
}

// retryEnqueue reports whether a queue was between two runs of its workflow, or busy.
func retryEnqueue(ctx context.Context, err error) bool {
	var unavailable *serviceerror.Unavailable
	var exhausted *serviceerror.ResourceExhausted
	var aborted *serviceerror.Aborted
	return ctx.Err() == nil &&
		(notReady(err) || errors.As(err, &unavailable) || errors.As(err, &exhausted) || errors.As(err, &aborted))
}
