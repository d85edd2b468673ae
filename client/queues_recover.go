package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job/wording"
)

// QueueEnd is how the workflow of a queue has ended.
type QueueEnd struct {
	RunID string `json:"run_id"`
	// Status is terminated, failed or timed_out, or what else somebody made of it.
	Status RunStatus `json:"status"`
	At     time.Time `json:"at"`
	// By is who terminated the workflow, and Reason why, or the error it failed with.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Running is the status of the run of the item that was at work.
	Running RunStatus `json:"running,omitempty"`
}

// QueueEndedError says that a queue neither runs nor takes anything, since its workflow
// has ended.
type QueueEndedError struct {
	Queue  string
	Status RunStatus
	At     time.Time
}

func (e *QueueEndedError) Error() string {
	return fmt.Sprintf("queue %s does not run, its workflow ended as %s at %s: starter queues recover %s starts it again with what waits",
		e.Queue, e.Status, wording.Stamp(e.At), e.Queue)
}

// Err gives a [QueueEndedError] if the queue's workflow has ended.
func (q *Queue) Err() error {
	if q.Ended == nil {
		return nil
	}
	return &QueueEndedError{Queue: q.Name, Status: q.Ended.Status, At: q.Ended.At}
}

// recoveryTimeout bounds how long the history of an ended queue is read, and replayed
// by a worker.
const recoveryTimeout = time.Minute

// Get asks a queue for its state, or finds out what that was when its workflow ended.
// It needs a live worker of any type.
func (c *QueueClient) Get(ctx context.Context, name string) (*Queue, error) {
	asked, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	state, err := c.queryQueue(asked, name, "", false)
	if err != nil {
		return nil, err
	}
	if state != nil {
		return newQueue(state, time.Now()), nil
	}
	return c.endedQueue(ctx, name)
}

// endedQueue reads the history of a queue whose workflow has ended.
func (c *conn) endedQueue(ctx context.Context, name string) (*Queue, error) {
	ctx, cancel := context.WithTimeout(ctx, recoveryTimeout)
	defer cancel()
	end, err := c.queueEnd(ctx, name)
	if err != nil {
		return nil, err
	}
	if end == nil {
		return c.queues().Get(ctx, name) // Someone has recovered it meanwhile.
	}
	var history queueHistory
	events := c.temporal.GetWorkflowHistory(ctx, contract.QueueWorkflowID(name), end.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err == nil {
			err = history.add(event)
		}
		if err != nil {
			return nil, explain("the history of queue "+name, err)
		}
		end.describe(event)
	}
	left := &history.input
	if history.answers {
		if left, err = c.queryQueue(ctx, name, end.RunID, true); err != nil {
			return nil, err
		}
	}
	state, orphans := history.recover(*left, end.At)
	if item := state.Running; item != nil {
		run, err := c.temporal.DescribeWorkflowExecution(ctx, contract.JobWorkflowID(item.Job.ID), item.RunID)
		if err != nil && !isNotFound(err) {
			return nil, explain("the run of job "+item.Job.ID, err)
		}
		end.Running = runStatus(run.GetWorkflowExecutionInfo().GetStatus())
	}
	queue := newQueue(&state, time.Now())
	queue.Status, queue.Ended, queue.orphans = QueueStatus(end.Status), end, orphans
	for _, in := range state.UnreadSignals {
		queue.Waiting += len(in.Items)
	}
	return queue, nil
}

// queueEnd is when and how the workflow of a queue has ended, nil if it runs.
func (c *conn) queueEnd(ctx context.Context, name string) (*QueueEnd, error) {
	response, err := c.temporal.DescribeWorkflowExecution(ctx, contract.QueueWorkflowID(name), "")
	if err != nil {
		return nil, explain("queue "+name, ofServer(ctx, err))
	}
	info := response.GetWorkflowExecutionInfo()
	switch {
	case info.GetType().GetName() != contract.JobQueueType:
		return nil, fmt.Errorf("workflow %s is no queue: %w", info.GetExecution().GetWorkflowId(), ErrNotOurs)
	case info.GetCloseTime() == nil:
		return nil, nil //nolint:nilnil // Documented: it runs.
	}
	return &QueueEnd{
		RunID: info.GetExecution().GetRunId(), Status: runStatus(info.GetStatus()), At: info.GetCloseTime().AsTime(),
	}, nil
}

// describe notes what the last event says of the end.
func (e *QueueEnd) describe(event *historypb.HistoryEvent) {
	if terminated := event.GetWorkflowExecutionTerminatedEventAttributes(); terminated != nil {
		e.By, e.Reason = terminated.GetIdentity(), terminated.GetReason()
	}
	if failed := event.GetWorkflowExecutionFailedEventAttributes(); failed != nil {
		e.Reason = failed.GetFailure().GetMessage()
	}
}

// endedError is a QueueEndedError if the workflow of a queue has ended, nil if it runs,
// and another error, as [ErrNotFound], if that is not known.
func (c *conn) endedError(ctx context.Context, name string) error {
	end, err := c.queueEnd(ctx, name)
	if err != nil {
		return err
	}
	if end == nil {
		return nil
	}
	return &QueueEndedError{Queue: name, Status: end.Status, At: end.At}
}

// orEnded turns the error of a message that would have started its queue, and was
// refused since the queue's workflow has ended, into one that says so.
func (c *conn) orEnded(ctx context.Context, name string, err error) error {
	var exists *serviceerror.WorkflowExecutionAlreadyStarted
	if !errors.As(err, &exists) {
		return err
	}
	if ended := c.endedError(ctx, name); ended != nil {
		return ended
	}
	return err // It has been recovered meanwhile.
}

// Recover starts a queue again whose workflow has ended: with what waited, and
// with the item that was at work as the one that runs, so that its end is awaited first.
// Of a queue that runs it gives the summary and changes nothing.
//
// It looks first, since the start needs what the ended workflow left. That is safe: the start is
// refused while a workflow runs, whatever was seen before, and its request id is that of the end
// that was seen. So of one end of the workflow, one start comes, for any number of callers.
func (c *QueueClient) Recover(ctx context.Context, name string) (contract.QueueSummary, error) {
	queue, err := c.Get(ctx, name)
	if err != nil {
		return contract.QueueSummary{}, err
	}
	if queue.Ended == nil {
		summary := queue.state.Summary()
		summary.Before.Unchanged = true
		return summary, nil
	}
	for _, id := range queue.orphans {
		if err := c.endOrphan(ctx, id, queue.Ended.RunID); err != nil {
			return contract.QueueSummary{}, err
		}
	}
	input, err := temporalclient.EncodePayload(queue.state)
	if err != nil {
		return contract.QueueSummary{}, err
	}
	attributes, err := temporalclient.EncodeAttributes(contract.QueueAttributes(name))
	if err != nil {
		return contract.QueueSummary{}, err
	}
	summary, err := temporalclient.EncodePayload(queueSummary(name))
	if err != nil {
		return contract.QueueSummary{}, err
	}
	_, err = call(ctx, c.conn, c.temporal.WorkflowService().StartWorkflowExecution, &workflowservice.StartWorkflowExecutionRequest{
		Namespace:        c.namespace,
		WorkflowId:       contract.QueueWorkflowID(name),
		WorkflowType:     &commonpb.WorkflowType{Name: contract.JobQueueType},
		TaskQueue:        &taskqueuepb.TaskQueue{Name: contract.QueuesTaskQueue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		Input:            &commonpb.Payloads{Payloads: []*commonpb.Payload{input}},
		Identity:         c.identity,
		RequestId:        "recover-" + queue.Ended.RunID,
		SearchAttributes: attributes, UserMetadata: &sdkpb.UserMetadata{Summary: summary},

		WorkflowIdReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIdConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
	})
	answer := queue.state.Summary()
	var exists *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &exists) { // It has been recovered meanwhile.
		answer.Before.Unchanged, err = true, nil
	}
	return answer, explain("recover queue "+name, err)
}

// queueSummary is the line that the Web UI shows for a queue.
func queueSummary(name string) string { return "queue " + name }

// endOrphan terminates a workflow that a queue's run had asked for and has not heard of:
// a page whose items wait in the queue itself, or the run of an item that waits. Such
// a run has not begun, and never will: the server gives it its first task only once
// the queue has heard of it.
func (c *conn) endOrphan(ctx context.Context, workflowID, queueRunID string) error {
	response, err := c.temporal.DescribeWorkflowExecution(ctx, workflowID, "")
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return explain("workflow "+workflowID, ofServer(ctx, err))
	}
	info := response.GetWorkflowExecutionInfo()
	if info.GetCloseTime() != nil || info.GetParentExecution().GetRunId() != queueRunID {
		return nil
	}
	err = c.temporal.TerminateWorkflow(ctx, workflowID, info.GetExecution().GetRunId(), "its queue ended before it was heard of")
	if isNotFound(err) {
		return nil
	}
	return explain("terminate workflow "+workflowID, err)
}
