package workflows

import (
	"encoding/json"
	"fmt"

	"github.com/dendrascience/dendra-jobs/contract"

	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
)

// Messages of JobQueue.
const (
	// MessageEnqueue adds an item and answers with its place.
	MessageEnqueue contract.Message[EnqueueRequest, EnqueueReceipt] = "enqueue"
	// MessageEnqueueBatch adds several items, all or none, and answers with their
	// places, in their order.
	MessageEnqueueBatch contract.Message[EnqueueBatchRequest, EnqueueBatchReceipt] = "enqueue_batch"
	// MessageCancelItem removes a waiting item, or stops the running one.
	MessageCancelItem contract.Message[CancelItemRequest, CancelItemReceipt] = "cancel_item"
	// MessageMoveItem makes a waiting item the next to run.
	MessageMoveItem contract.Message[MoveItemRequest, QueueSummary] = "move_item"
	// MessagePauseQueue lets the running item finish and starts no more.
	MessagePauseQueue contract.Message[contract.PauseRequest, QueueSummary] = "pause"
	// MessageResumeQueue lets a queue go on that was paused, drained or halted. The
	// item over which it was halted is tried again, first, at the position that it left.
	MessageResumeQueue contract.Message[contract.ResumeRequest, QueueSummary] = "resume"
	// MessageSkip lets a halted queue go on with the next item.
	MessageSkip contract.Message[SkipRequest, QueueSummary] = "skip"
	// MessageDrainQueue accepts no more items and runs those that wait.
	MessageDrainQueue contract.Message[DrainRequest, QueueSummary] = "drain"
	// MessagePurge removes waiting items.
	MessagePurge contract.Message[PurgeRequest, PurgeReceipt] = "purge"
	// MessageSetQueue sets what holds for the whole queue.
	MessageSetQueue contract.Message[SetQueueRequest, QueueSummary] = "set"
	// MessageDropDead forgets dead letters.
	MessageDropDead contract.Message[DropDeadRequest, DropDeadReceipt] = "drop_dead"
)

// Signals.
const (
	// SignalEnqueue adds an item to a queue without an answer: for producers that
	// cannot wait. The payload is an EnqueueRequest. A job that waits in a parked
	// page is not recognized: it is put in again, and skipped at its turn if it
	// has completed by then.
	SignalEnqueue = "enqueue"
	// SignalReleasePage ends a JobQueuePage.
	SignalReleasePage = "release"
)

// SignalProbe tells a job's probe what has become of the job. The payload is a
// ProbeNews; an empty one has the probe look at the schedule.
const SignalProbe = "news"

// Requests to JobQueue.
type (
	// EnqueueRequest is the input of MessageEnqueue and SignalEnqueue.
	EnqueueRequest struct {
		Job job.Job `json:"job"`
		// Again runs the job although it ran before.
		Again bool `json:"again,omitempty"`
		// RequestID, if set, makes asking again harmless when an answer was lost:
		// it is the same in every try of one request.
		RequestID string `json:"request_id,omitempty"`
		// RetryOf and Cursor are those of EnqueueItem.
		RetryOf string          `json:"retry_of,omitempty"`
		Cursor  json.RawMessage `json:"cursor,omitempty"`
		// Parked and Seen tell what the caller knows of parked pages.
		Parked []ParkedItem `json:"parked,omitempty"`
		Seen   *PagesSeen   `json:"seen,omitempty"`
	}
	// EnqueueBatchRequest is the input of MessageEnqueueBatch.
	EnqueueBatchRequest struct {
		// Items are 1 to MaxBatchItems, of at most MaxBatchBytes.
		Items []EnqueueItem `json:"items"`
		// RequestID is that of EnqueueRequest.
		RequestID string     `json:"request_id,omitempty"`
		Seen      *PagesSeen `json:"seen,omitempty"`
	}
	// EnqueueItem is one item of a batch.
	EnqueueItem struct {
		Job job.Job `json:"job"`
		// Again runs the job although it ran before.
		Again bool `json:"again,omitempty"`
		// Parked is where the caller has found the job, or looked for it in vain.
		Parked []ParkedItem `json:"parked,omitempty"`
		// DeadLetter is the number of the dead letter that the item replaces.
		DeadLetter int64 `json:"dead_letter,omitempty"`
		// RetryOf is the run id of the run that the item is a retry of: dead letters of
		// the job with this spec go. Cursor is where the run starts, at most
		// MaxCursorBytes; without one it starts from the beginning.
		RetryOf string          `json:"retry_of,omitempty"`
		Cursor  json.RawMessage `json:"cursor,omitempty"`
	}
	// PagesSeen says that the caller has looked for its jobs in the parked pages
	// whose numbers are below Before.
	PagesSeen struct {
		Epoch  string `json:"epoch"`
		Before int64  `json:"before"`
	}
	// ParkedItem is a job's item as it was found in a parked page. Sequence is 0
	// if the page does not have the job.
	ParkedItem struct {
		Page     int64  `json:"page"`
		Sequence int64  `json:"sequence,omitempty"`
		SpecHash string `json:"spec_hash,omitempty"`
	}
	// CancelItemRequest is the input of MessageCancelItem.
	CancelItemRequest struct {
		JobID string `json:"job_id"`
		// Sequence is the number that the job was found under in a parked page.
		Sequence int64 `json:"sequence,omitempty"`
		// WaitingOnly refuses to stop the item if it runs already.
		WaitingOnly bool `json:"waiting_only,omitempty"`
		// Only is the sequence number of the item that is meant: another one of the
		// job stays. 0 is any.
		Only int64 `json:"only,omitempty"`
	}
	// MoveItemRequest is the input of MessageMoveItem.
	MoveItemRequest struct {
		JobID string `json:"job_id"`
		// Parked is the item as it was found in a parked page.
		Parked *QueueItem `json:"parked,omitempty"`
	}
	// SkipRequest is the input of MessageSkip.
	SkipRequest struct{}
	// DrainRequest is the input of MessageDrainQueue.
	DrainRequest struct{}
	// PurgeRequest is the input of MessagePurge: the items with the numbers From
	// to To, both included. Zero means the first and the last.
	PurgeRequest struct {
		From int64 `json:"from,omitempty"`
		To   int64 `json:"to,omitempty"`
	}
	// SetQueueRequest is the input of MessageSetQueue.
	SetQueueRequest struct {
		OnFailure job.OnFailure `json:"on_failure"`
	}
	// DropDeadRequest is the input of MessageDropDead: the numbers of the dead
	// letters to forget, or all.
	DropDeadRequest struct {
		Sequences []int64 `json:"sequences,omitempty"`
		All       bool    `json:"all,omitempty"`
	}
)

// LookInPages is the detail of an error of type ErrorTypeLookInPages: the
// pages that may hold jobs that the caller wants to put in.
type LookInPages struct {
	Epoch string `json:"epoch"`
	// First is the number of the first page that is parked now.
	First int64 `json:"first"`
	// Chapters are the pages whose index tells of all pages below Before.
	Chapters []int64 `json:"chapters,omitempty"`
	Before   int64   `json:"before"`
	// Pages have one of the ids.
	Pages []int64 `json:"pages,omitempty"`
}

// EnqueueReceipt is the answer to MessageEnqueue: the item is part of the
// queue's durable state.
type EnqueueReceipt struct {
	// Sequence numbers the items of a queue in the order they were accepted, which
	// is the order they run in unless someone moves one to the front.
	Sequence int64 `json:"sequence"`
	// Ahead is how many items run before this one, the running one included.
	Ahead int `json:"ahead"`
	// Duplicate says that the job was in the queue already: the numbers are
	// those of the item that is there.
	Duplicate bool `json:"duplicate,omitempty"`
}

// EnqueueBatchReceipt is the answer to MessageEnqueueBatch, in the order of the
// request.
type EnqueueBatchReceipt struct {
	Receipts []EnqueueReceipt `json:"receipts"`
}

// PurgeReceipt is the answer to MessagePurge.
type PurgeReceipt struct {
	Removed int `json:"removed"`
}

// DropDeadReceipt is the answer to MessageDropDead.
type DropDeadReceipt struct {
	Dropped int `json:"dropped"`
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
	// Draining says that no more items are accepted, and Halted that the queue
	// waits for someone to look at a failure.
	Draining bool `json:"draining,omitempty"`
	Halted   bool `json:"halted,omitempty"`
}

// handle installs the handler of a message. It must not wait: an update that is
// accepted but unfinished would fail at continue-as-new. Validate may be nil; a
// message that it refuses leaves no trace in the history.
func handle[In, Out any](ctx workflow.Context, m contract.Message[In, Out], apply func(In) Out, validate func(In) error) error {
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
