package workflows

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
)

// Message is an update of a workflow: a request with a typed answer, which is
// given once the change is part of the workflow's state.
type Message[In, Out any] string

// Messages of ContinuousJob. Each answers with the state after the change.
const (
	// MessageStop ends the job: gracefully, after the current iteration heard it.
	MessageStop Message[StopRequest, ContinuousState] = "stop"
	// MessageRestart ends the current iteration and starts the next at once.
	MessageRestart Message[RestartRequest, ContinuousState] = "restart"
	// MessagePause ends the current iteration and starts no more until resumed.
	MessagePause Message[PauseRequest, ContinuousState] = "pause"
	// MessageResume lets a paused job go on, and forgets its failures.
	MessageResume Message[ResumeRequest, ContinuousState] = "resume"
	// MessageTrigger starts the next iteration without waiting for the interval.
	MessageTrigger Message[TriggerRequest, ContinuousState] = "trigger"
	// MessageSetJob takes over a new definition from the next iteration on.
	MessageSetJob Message[SetJobRequest, ContinuousState] = "set_job"
)

// Messages of JobQueue.
const (
	// MessageEnqueue adds an item and answers with its place.
	MessageEnqueue Message[EnqueueRequest, EnqueueReceipt] = "enqueue"
	// MessageCancelItem removes a waiting item, or stops the running one.
	MessageCancelItem Message[CancelItemRequest, CancelItemReceipt] = "cancel_item"
	// MessagePauseQueue lets the running item finish and starts no more.
	MessagePauseQueue Message[PauseRequest, QueueSummary] = "pause"
	// MessageResumeQueue lets a paused queue go on.
	MessageResumeQueue Message[ResumeRequest, QueueSummary] = "resume"
)

// SignalEnqueue adds an item to a queue without an answer: for producers that
// cannot wait. The payload is an EnqueueRequest.
const SignalEnqueue = "enqueue"

// SignalProbe tells a job's probe what has become of the job. The payload is a
// ProbeNews; an empty one has the probe look at the schedule.
const SignalProbe = "news"

// Queries.
const (
	QueryState = "state" // ContinuousState, QueueState or ProbeState
)

// Requests. Reason is a sentence for people, shown with the state.
type (
	// StopRequest is the input of MessageStop.
	StopRequest struct {
		Reason string `json:"reason,omitempty"`
	}
	// RestartRequest is the input of MessageRestart.
	RestartRequest struct {
		Reason string `json:"reason,omitempty"`
	}
	// PauseRequest is the input of MessagePause and MessagePauseQueue.
	PauseRequest struct {
		Reason string `json:"reason,omitempty"`
	}
	// ResumeRequest is the input of MessageResume and MessageResumeQueue.
	ResumeRequest struct {
		Reason string `json:"reason,omitempty"`
	}
	// TriggerRequest is the input of MessageTrigger.
	TriggerRequest struct{}
	// SetJobRequest is the input of MessageSetJob.
	SetJobRequest struct {
		Job job.Job `json:"job"`
		// Was is the spec hash of the definition to replace; with another in force
		// the message is refused. "" replaces every definition.
		Was string `json:"was,omitempty"`
		// Restart ends the current iteration instead of waiting for its end.
		Restart bool `json:"restart,omitempty"`
	}
	// EnqueueRequest is the input of MessageEnqueue and SignalEnqueue.
	EnqueueRequest struct {
		Job job.Job `json:"job"`
		// Again runs the job although it ran before.
		Again bool `json:"again,omitempty"`
		// RequestID, if set, makes asking again harmless when an answer was lost:
		// it is the same in every try of one request.
		RequestID string `json:"request_id,omitempty"`
	}
	// CancelItemRequest is the input of MessageCancelItem.
	CancelItemRequest struct {
		JobID string `json:"job_id"`
		// WaitingOnly refuses to stop the item if it runs already.
		WaitingOnly bool `json:"waiting_only,omitempty"`
		// Only is the sequence number of the item that is meant: another one of the
		// job stays. 0 is any.
		Only int64 `json:"only,omitempty"`
	}
)

// EnqueueReceipt is the answer to MessageEnqueue: the item is part of the
// queue's durable state.
type EnqueueReceipt struct {
	// Sequence numbers the items of a queue in the order they will run.
	Sequence int64 `json:"sequence"`
	// Ahead is how many items run before this one, the running one included.
	Ahead int `json:"ahead"`
	// Duplicate says that the job was in the queue already: the numbers are
	// those of the item that is there.
	Duplicate bool `json:"duplicate,omitempty"`
}

// CancelItemReceipt is the answer to MessageCancelItem.
type CancelItemReceipt struct {
	// Running says that the item runs and has been asked to stop.
	Running bool `json:"running,omitempty"`
}

// QueueSummary is the answer to messages that change a whole queue.
type QueueSummary struct {
	Waiting int    `json:"waiting"`
	Running string `json:"running,omitempty"` // job id
	Paused  bool   `json:"paused,omitempty"`
}

// Send sends the message to a running workflow and waits for its answer.
func (m Message[In, Out]) Send(ctx context.Context, c client.Client, workflowID string, in In) (Out, error) {
	var out Out
	handle, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID:   workflowID,
		UpdateName:   string(m),
		Args:         []any{in},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return out, err
	}
	return out, handle.Get(ctx, &out)
}

// SendWithStart sends the message, and starts the workflow first if it does not run.
func (m Message[In, Out]) SendWithStart(ctx context.Context, c client.Client, start client.WithStartWorkflowOperation, in In) (Out, error) {
	var out Out
	handle, err := c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateName:   string(m),
			Args:         []any{in},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err != nil {
		return out, err
	}
	return out, handle.Get(ctx, &out)
}

// handle installs the handler of a message. It must not wait: an update that is
// accepted but unfinished would fail at continue-as-new. Validate may be nil; a
// message that it refuses leaves no trace in the history.
func (m Message[In, Out]) handle(ctx workflow.Context, apply func(In) Out, validate func(In) error) error {
	options := workflow.UpdateHandlerOptions{}
	if validate != nil {
		options.Validator = func(_ workflow.Context, in In) error { return validate(in) }
	}
	err := workflow.SetUpdateHandlerWithOptions(ctx, string(m), func(_ workflow.Context, in In) (Out, error) {
		return apply(in), nil
	}, options)
	if err != nil {
		return fmt.Errorf("handle message %s: %w", string(m), err)
	}
	return nil
}
