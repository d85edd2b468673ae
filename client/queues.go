package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// ListedQueue is a queue as a list of workflows has it: of several workflows, the latest.
type ListedQueue struct {
	Name  string
	RunID string
	// Status is that of the queue's workflow: it has ended unless it is running.
	Status RunStatus
	// Started and Closed are the times of that workflow. Closed is zero if it has not ended.
	Started time.Time
	Closed  time.Time
}

// List lists the queues that exist, by name, also those whose workflow has ended. A queue
// that was made within the last second may be missing: the list is eventually consistent.
// What is in a queue says [QueueClient.Get].
func (c *QueueClient) List(ctx context.Context) ([]ListedQueue, error) {
	latest := map[string]ListedQueue{}
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus != 'ContinuedAsNew'", contract.JobQueueType)
	err := c.listWorkflows(ctx, query, 0, func(info *workflowpb.WorkflowExecutionInfo) {
		name := temporalclient.Attribute(info.GetSearchAttributes(), contract.AttributeQueue.GetName())
		queue := ListedQueue{
			Name: name, RunID: info.GetExecution().GetRunId(), Status: runStatus(info.GetStatus()), Started: info.GetStartTime().AsTime(),
		}
		if name == "" || info.GetExecution().GetWorkflowId() != contract.QueueWorkflowID(name) || queue.Started.Before(latest[name].Started) {
			return
		}
		if closed := info.GetCloseTime(); closed != nil {
			queue.Closed = closed.AsTime()
		}
		latest[name] = queue
	})
	return slices.SortedFunc(maps.Values(latest), func(a, b ListedQueue) int { return strings.Compare(a.Name, b.Name) }), err
}

// Names lists the names of the queues of [QueueClient.List].
func (c *QueueClient) Names(ctx context.Context) ([]string, error) {
	queues, err := c.List(ctx)
	names := make([]string, len(queues))
	for n, queue := range queues {
		names[n] = queue.Name
	}
	return names, err
}

// State is the whole state of a queue's workflow. Most callers want [QueueClient.Get].
func (c *QueueClient) State(ctx context.Context, name string) (*contract.QueueState, error) {
	queue, err := c.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return queue.state, nil
}

// queryQueue asks a run of a queue for its state; "" is the latest. Without ended it
// gives nil if the queue's workflow has ended.
func (c *conn) queryQueue(ctx context.Context, name, runID string, ended bool) (*contract.QueueState, error) {
	state, err := queryState[contract.QueueState](ctx, c, contract.QueueWorkflowID(name), runID, ended)
	return state, explain("queue "+name, err)
}

// toQueue sends a message to a queue and waits for a worker's answer.
func toQueue[In, Out any](ctx context.Context, c *conn, message contract.Message[In, Out], queue, what string, in In) (Out, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	out, err := deliver(ctx, c, message, contract.QueueWorkflowID(queue), in)
	if isNotFound(err) {
		if ended := c.endedError(ctx, queue); ended != nil {
			return out, ended
		}
	}
	return out, explainSent(what, err)
}

// CancelItem removes a waiting job from its queue, with its repeats, or stops it
// while it runs.
func (c *QueueClient) CancelItem(ctx context.Context, queue, jobID string) (contract.CancelItemReceipt, error) {
	in := contract.CancelItemRequest{JobID: jobID}
	tail, found, err := c.locate(ctx, queue, jobID)
	if err != nil {
		return contract.CancelItemReceipt{}, err
	}
	in.Sequences = tail
	for _, item := range found {
		in.Sequences = append(in.Sequences, item.Sequence)
	}
	// An item that has left its page meanwhile is in the queue itself, which knows it.
	// One of the tail may have gone to a page: the queue leaves out what did not.
	return toQueue(ctx, c.conn, contract.MessageCancelItem, queue, fmt.Sprintf("cancel job %s in queue %s", jobID, queue), in)
}

// MoveToFront makes a waiting job the next one of its queue.
func (c *QueueClient) MoveToFront(ctx context.Context, queue, jobID string) (contract.QueueSummary, error) {
	in := contract.MoveItemRequest{JobID: jobID}
	_, found, err := c.locate(ctx, queue, jobID)
	if err != nil {
		return contract.QueueSummary{}, err
	}
	if len(found) > 0 {
		in.Item = &found[0]
	}
	return toQueue(ctx, c.conn, contract.MessageMoveItem, queue, fmt.Sprintf("move job %s in queue %s", jobID, queue), in)
}

// locate finds the items of a job that wait in the pages of a queue, and the numbers
// of those in its tail, which is the next page. While the job runs none is looked for:
// they are skipped at their turn.
func (c *conn) locate(ctx context.Context, queue, jobID string) (tail []int64, found []contract.QueueItem, err error) {
	at, err := c.queues().Get(ctx, queue)
	switch {
	case err != nil:
		return nil, nil, err
	case at.Err() != nil:
		return nil, nil, at.Err()
	case at.state.Running != nil && at.state.Running.Job.ID == jobID:
		return nil, nil, nil
	}
	for _, item := range at.state.Tail {
		if item.Job.ID == jobID {
			tail = append(tail, item.Sequence)
		}
	}
	found, err = c.inPages(ctx, at.state, jobID)
	return tail, found, err
}

// Pause lets the running item finish and starts no more. A queue that is
// paused already keeps the reasons that it was paused for.
func (c *QueueClient) Pause(ctx context.Context, queue, reason string) (contract.QueueSummary, error) {
	return c.PauseWith(ctx, queue, contract.PauseRequest{Reason: reason})
}

// PauseWith is Pause that may end by itself, as [JobClient.PauseSeeing].
func (c *QueueClient) PauseWith(ctx context.Context, queue string, in contract.PauseRequest) (contract.QueueSummary, error) {
	in.End = in.End.Truncate(time.Second)
	return toQueue(ctx, c.conn, contract.MessagePauseQueue, queue, "pause queue "+queue, in)
}

// Resume lets a queue go on that was paused, drained or halted. The item over
// which it was halted is tried again, first, at the position that it left.
func (c *QueueClient) Resume(ctx context.Context, queue string) (contract.QueueSummary, error) {
	return toQueue(ctx, c.conn, contract.MessageResumeQueue, queue, "resume queue "+queue, contract.ResumeRequest{})
}

// SkipFailed lets a halted queue go on with the next item. The one over which it
// was halted becomes a dead letter.
func (c *QueueClient) SkipFailed(ctx context.Context, queue string) (contract.QueueSummary, error) {
	return toQueue(ctx, c.conn, contract.MessageSkip, queue, "skip in queue "+queue, contract.SkipRequest{})
}

// Drain accepts no more items and runs those that wait.
func (c *QueueClient) Drain(ctx context.Context, queue string) (contract.QueueSummary, error) {
	return toQueue(ctx, c.conn, contract.MessageDrainQueue, queue, "drain queue "+queue, contract.DrainRequest{})
}

// AwaitEmpty waits until nothing waits or runs in a queue, and reports its state
// as it goes, nil while no worker answers. A queue that is paused or halted does
// not get there by itself.
func (c *QueueClient) AwaitEmpty(ctx context.Context, queue string, report func(*Queue)) error {
	for {
		at, err := c.Get(ctx, queue)
		if err != nil && !errors.Is(err, ErrNoWorker) {
			return err
		}
		if at != nil && at.Running == nil && at.Waiting == 0 && at.Halted == nil {
			return nil
		}
		if at != nil && at.Ended != nil {
			return at.Err()
		}
		report(at)
		if err := pause(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// Purge removes the waiting items with the numbers from to to, both included; 0
// means the first and the last. What runs goes on.
func (c *QueueClient) Purge(ctx context.Context, queue string, from, to int64) (removed int, err error) {
	receipt, err := toQueue(ctx, c.conn, contract.MessagePurge, queue, "purge queue "+queue, contract.PurgeRequest{From: from, To: to})
	return receipt.Removed, err
}

// SetOnFailure says what the failure of an item does to a queue, which is made if
// it is not there. What an item's own job says comes first.
func (c *QueueClient) SetOnFailure(ctx context.Context, queue string, policy job.OnFailure) (contract.QueueSummary, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for try := 1; ; try++ {
		summary, err := answered(contract.MessageSetQueue.SendWithStart(ctx, c.temporal, c.startQueue(queue), contract.SetQueueRequest{OnFailure: policy}))
		if try == sendTries || !notReady(err) || ctx.Err() != nil {
			return summary, explainSent("set queue "+queue, c.orEnded(ctx, queue, err))
		}
	}
}

// DropDead forgets the dead letters with the given numbers, or all if none is
// given, and says how many there were.
func (c *QueueClient) DropDead(ctx context.Context, queue string, sequences []int64) (dropped int, err error) {
	receipt, err := toQueue(ctx, c.conn, contract.MessageDropDead, queue, "drop dead letters of queue "+queue,
		contract.DropDeadRequest{Sequences: sequences, All: len(sequences) == 0})
	return receipt.Dropped, err
}
