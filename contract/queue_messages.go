package contract

import (
	"encoding/json"

	"github.com/dendrascience/dendra-jobs/job"
)

// Messages of JobQueue.
const (
	// MessageEnqueue adds items, all or none, and answers with their places in the
	// order of the request.
	MessageEnqueue Message[EnqueueRequest, EnqueueReceipts] = "enqueue"
	// MessageCancelItem removes a waiting item, or stops the running one.
	MessageCancelItem Message[CancelItemRequest, CancelItemReceipt] = "cancel_item"
	// MessageMoveItem makes a waiting item the next to run.
	MessageMoveItem Message[MoveItemRequest, QueueSummary] = "move_item"
	// MessagePauseQueue lets the running item finish and starts no more.
	MessagePauseQueue Message[PauseRequest, QueueSummary] = "pause"
	// MessageResumeQueue lets a queue go on that was paused, drained or halted. An
	// item that halted the queue is tried again, first, from the position it left.
	MessageResumeQueue Message[ResumeRequest, QueueSummary] = "resume"
	// MessageSkip lets a halted queue go on with the next item.
	MessageSkip Message[SkipRequest, QueueSummary] = "skip"
	// MessageDrainQueue accepts no more items and runs those that wait.
	MessageDrainQueue Message[DrainRequest, QueueSummary] = "drain"
	// MessagePurge removes waiting items.
	MessagePurge Message[PurgeRequest, PurgeReceipt] = "purge"
	// MessageSetQueue sets what holds for the whole queue.
	MessageSetQueue Message[SetQueueRequest, QueueSummary] = "set"
	// MessageDropDead forgets dead letters.
	MessageDropDead Message[DropDeadRequest, DropDeadReceipt] = "drop_dead"
)

// Signals of queues.
const (
	// SignalEnqueue adds items to a queue without an answer, by the same checks as
	// MessageEnqueue. The payload is an EnqueueRequest. An item that is refused
	// shows among the latest items as failed; the others of its request are taken. A
	// MessageEnqueue with the id of such a request is refused.
	SignalEnqueue = "enqueue"
	// SignalReleasePage ends a JobQueuePage.
	SignalReleasePage = "release"
)

// Bounds of what a queue takes.
const (
	// MaxBatchItems is how many items a request may have.
	MaxBatchItems = 100
	// MaxBatchBytes bounds the sum of their sizes, see [EnqueueItem.Size]. One item
	// alone may be larger.
	MaxBatchBytes = 64 << 10
	// MaxCursorBytes bounds the cursor of an item, as workers bound those of runs.
	MaxCursorBytes = 32 << 10
	// MaxRequestIDBytes bounds the id of a request, and the run id of RetryOf.
	MaxRequestIDBytes = 200
)

// Requests to JobQueue.
type (
	// EnqueueRequest is the input of MessageEnqueue and SignalEnqueue.
	EnqueueRequest struct {
		// Items are 1 to MaxBatchItems, of at most MaxBatchBytes.
		Items []EnqueueItem `json:"items"`
		// RequestID makes a request safe to repeat when its answer was lost: it is the
		// same in every attempt. The queue knows its last 32 requests.
		RequestID string `json:"request_id,omitempty"`
	}
	// EnqueueItem is one item of a request.
	EnqueueItem struct {
		Job job.Job `json:"job"`
		// AllowRerun runs the job although it completed before.
		AllowRerun bool `json:"allow_rerun,omitempty"`
		// DeadLetter is the number of the dead letter that the item replaces.
		DeadLetter int64 `json:"dead_letter,omitempty"`
		// RetryOf is the run id of the run that the item is a retry of: dead letters of
		// the job with this spec go. Cursor is where the run starts, at most
		// MaxCursorBytes; without one it starts from the beginning.
		RetryOf string          `json:"retry_of,omitempty"`
		Cursor  json.RawMessage `json:"cursor,omitempty"`

		sent int // bytes of the item in its message, 0 before it is sent
	}
	// CancelItemRequest is the input of MessageCancelItem: all items of a job.
	CancelItemRequest struct {
		JobID string `json:"job_id"`
		// Sequences are the numbers of the job's items in overflow pages, as the caller
		// found them there. Items that the queue holds itself need no number.
		Sequences []int64 `json:"sequences,omitempty"`
		// WaitingOnly refuses to stop the item if it runs already.
		WaitingOnly bool `json:"waiting_only,omitempty"`
		// ExpectedSequence, unless 0, is the number of the one item that is meant.
		ExpectedSequence int64 `json:"expected_sequence,omitempty"`
	}
	// MoveItemRequest is the input of MessageMoveItem.
	MoveItemRequest struct {
		JobID string `json:"job_id"`
		// Item is the item as the caller found it in an overflow page.
		Item *QueueItem `json:"item,omitempty"`
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

// itemOverhead is what a queue adds to an item that it keeps: number, time, request
// id and size.
const itemOverhead = 150

// Size is what the item counts with in requests and queues: its bytes in the message
// plus a fixed overhead. Sender and queue count the same. It does not depend on the
// release that reads the message, so that a replay decides as the queue did.
func (i EnqueueItem) Size() int {
	if i.sent == 0 {
		text, err := json.Marshal(i)
		if err != nil {
			return 0 // It cannot be sent either.
		}
		i.sent = len(text)
	}
	return i.sent + itemOverhead
}

// UnmarshalJSON reads an item and notes its size.
func (i *EnqueueItem) UnmarshalJSON(text []byte) error {
	type plain EnqueueItem
	if err := json.Unmarshal(text, (*plain)(i)); err != nil {
		return err
	}
	i.sent = len(text)
	return nil
}

// IsRetry reports whether the item is one that ran, or failed, before.
func (i EnqueueItem) IsRetry() bool { return i.RetryOf != "" || i.DeadLetter != 0 }

// EnqueueReceipts is the answer to MessageEnqueue, in the order of the request.
type EnqueueReceipts struct {
	Receipts []EnqueueReceipt `json:"receipts"`
}

// EnqueueReceipt says that an item is part of the queue's durable state.
type EnqueueReceipt struct {
	// Sequence numbers the items of a queue in the order they were accepted, which
	// is the order they run in unless someone moves one to the front.
	Sequence int64 `json:"sequence"`
	// Ahead is how many items run before this one, the running one included.
	Ahead int `json:"ahead"`
	// Duplicate says that the queue itself held the job already: the numbers are those
	// of that item. A repeat of an item in an overflow page is not recognized here: it
	// gets a number, and is skipped at its turn.
	Duplicate bool `json:"duplicate,omitempty"`
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
	// Before is in the answer to a pause, a resume and a recovery.
	Before Before `json:"before,omitzero"`
}

// Types of the errors of a queue's messages.
const (
	// ErrorTypeNotInQueue is that of a job that neither runs nor waits, in the queue
	// itself or under the numbers that the caller has given.
	ErrorTypeNotInQueue = "NotInQueue"
	// ErrorTypeItemRefused says that one item of several is refused, and not all.
	ErrorTypeItemRefused = "ItemRefused"
	// ErrorTypeQueueBusy asks the caller to try again soon.
	ErrorTypeQueueBusy = "QueueBusy"
)
