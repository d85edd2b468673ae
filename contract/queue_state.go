package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// MaxQueueBytes bounds the waiting items that a queue itself holds. The state of
// a queue is the input of its next run, which Temporal limits to 2 MiB.
const MaxQueueBytes = 1 << 20

// QueueState is everything a queue remembers: the input that continue-as-new
// carries on, and the answer to QueryState. A new queue needs its Name alone.
type QueueState struct {
	Name string `json:"name"`
	// Instance distinguishes this queue, its pages and its runs from those of an earlier
	// queue of the same name, which numbered its items from 1 as well.
	Instance string `json:"instance,omitempty"`
	// Waiting is the head of the queue: the items in the order they will run.
	Waiting []QueueItem `json:"waiting,omitempty"`
	// Tail holds the items that come after the overflow pages, in the order they
	// were accepted. It is empty as long as the head has room.
	Tail []QueueItem `json:"tail,omitempty"`
	// WaitingBytes is the size of the items in Waiting and Tail.
	WaitingBytes int `json:"waiting_bytes"`
	// PageSize bounds the head, the tail and each overflow page.
	// Defaults to DefaultPageSize.
	PageSize PageSize `json:"page_size,omitzero"`
	// Overflow describes the pages between Waiting and Tail.
	Overflow Overflow `json:"overflow,omitzero"`
	// Running is the item that runs. It is the lock of the queue: nothing else
	// starts before its run has really ended.
	Running *RunningItem `json:"running,omitempty"`
	// Stopping is set while the handler of a terminated run may still be at work.
	Stopping *StoppingHandler `json:"stopping,omitempty"`
	// Recent holds the last finished items, oldest first.
	Recent []FinishedItem `json:"recent,omitempty"`
	// Pace counts the items that ran in the last hour.
	Pace Pace `json:"pace,omitzero"`

	// Accepted counts the items ever accepted, and numbers them.
	Accepted int64 `json:"accepted"`
	// Completed, Failed, Canceled and Skipped count how items ended. A skipped
	// item is one whose job had run before, or since it was put in. Lost counts items
	// of pages that were deleted by hand, and that someone gave up.
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Canceled  int64 `json:"canceled"`
	Skipped   int64 `json:"skipped"`
	Lost      int64 `json:"lost,omitempty"`

	// DeadLetters are the latest items that failed, oldest first, and
	// DeadDropped counts those that made room for later ones.
	DeadLetters []DeadLetter `json:"dead_letters,omitempty"`
	DeadDropped int64        `json:"dead_dropped,omitempty"`

	Paused      bool   `json:"paused,omitempty"`
	PauseReason string `json:"pause_reason,omitempty"`
	// PauseEnd is when the pause ends by itself; zero for never.
	PauseEnd time.Time `json:"pause_end,omitzero"`
	// Draining says that the queue takes no more items, and runs what waits.
	Draining bool `json:"draining,omitempty"`
	// OnFailure is what the failure of an item does whose job does not say it.
	OnFailure job.OnFailure `json:"on_failure,omitempty"`
	// Halted is set while the queue waits for someone to look at a failure.
	Halted *Halt `json:"halted,omitempty"`

	// Answered are the latest requests that put items in.
	Answered []AnsweredRequest `json:"answered,omitempty"`

	// Generation counts the workflow runs, each continued as new.
	Generation int `json:"generation"`
	// SignalsRead counts the signals that this run of the workflow has taken in. Those
	// after them in its history are in no state yet.
	SignalsRead int `json:"signals_read,omitempty"`
	// UnreadSignals are those that the run before had not taken in when it was ended
	// from outside. This run takes them in first.
	UnreadSignals []EnqueueRequest `json:"unread_signals,omitempty"`
}

// QueueItem is a job that waits in a queue.
type QueueItem struct {
	Sequence int64     `json:"sequence"`
	Job      job.Job   `json:"job"`
	Accepted time.Time `json:"accepted"`
	// AllowRerun runs the job although it completed before.
	AllowRerun bool `json:"allow_rerun,omitempty"`
	// RequestID names the request that put the item in.
	RequestID string `json:"request_id,omitempty"`
	// RetryOf is the run id of the run that the item is a retry of, and Cursor the
	// position that this one left.
	RetryOf string          `json:"retry_of,omitempty"`
	Cursor  json.RawMessage `json:"cursor,omitempty"`
	// Bytes is the size that the item counts with, see [EnqueueItem.Size].
	Bytes int `json:"bytes"`
}

// Work is what the item asks for: the job and the hash of its spec. Items with the
// same work that wait at the same time make one run.
func (i QueueItem) Work() string { return Work(i.Job) }

// Work is that of an item of the job.
func Work(j job.Job) string {
	hash, err := j.DefinitionHash()
	if err != nil {
		hash = "" // Not JSON: no message brings it.
	}
	return j.ID + " " + hash
}

// RunningItem is the item that runs.
type RunningItem struct {
	QueueItem
	Started time.Time `json:"started"`
	// RunID is the run id of its RunJob workflow, once that has started.
	RunID string `json:"run_id,omitempty"`
	// Canceled says that someone asked the item to stop, and CancelSent that
	// its run has been asked.
	Canceled   bool `json:"canceled,omitempty"`
	CancelSent bool `json:"cancel_sent,omitempty"`
}

// StoppingHandler says until when nothing starts, since the handler of a terminated
// run may still be at work.
type StoppingHandler struct {
	JobID string    `json:"job_id"`
	Until time.Time `json:"until"`
}

// ItemStatus says how an item ended.
type ItemStatus string

// The ends of an item.
const (
	ItemCompleted ItemStatus = "completed"
	ItemFailed    ItemStatus = "failed"
	ItemCanceled  ItemStatus = "canceled"
	ItemSkipped   ItemStatus = "skipped" // the job ran before, or since the item was put in
)

// FinishedItem is an item that has left the queue.
type FinishedItem struct {
	Sequence int64      `json:"sequence"`
	JobID    string     `json:"job_id"`
	Status   ItemStatus `json:"status"`
	Accepted time.Time  `json:"accepted,omitzero"`
	Started  time.Time  `json:"started,omitzero"`
	Ended    time.Time  `json:"ended"`
	RunID    string     `json:"run_id,omitempty"`
	Error    string     `json:"error,omitempty"`
	// RequestID names the request that put the item in.
	RequestID string `json:"request_id,omitempty"`
}

// Ran reports whether the item counts as one that ran.
func (i FinishedItem) Ran() bool { return !i.Started.IsZero() && i.Status != ItemSkipped }

// DeadLetter is an item that failed. The memo of its run has the definition of the job.
type DeadLetter struct {
	Sequence int64     `json:"sequence"`
	JobID    string    `json:"job_id"`
	Ended    time.Time `json:"ended"`
	Error    string    `json:"error,omitempty"`
	RunID    string    `json:"run_id,omitempty"`
	// DefinitionHash is that of the job.
	DefinitionHash string `json:"definition_hash,omitempty"`
}

// Halt is why a queue waits for someone to resume it or to skip what failed:
// an item that failed, or an overflow page that cannot be started or read.
type Halt struct {
	Since time.Time `json:"since"`
	Error string    `json:"error"`
	// Item is the one that failed, as it is tried again, and RunID its run.
	Item  *QueueItem `json:"item,omitempty"`
	RunID string     `json:"run_id,omitempty"`
	// Page is the number of the page that cannot be read, and Items how many
	// waiting items it held.
	Page  int64 `json:"page,omitempty"`
	Items int   `json:"items,omitempty"`
}

// Reason is one sentence that says why the queue is halted.
func (h *Halt) Reason() string {
	if h.Item != nil {
		return fmt.Sprintf("job %s failed: %s", h.Item.Job.ID, h.Error)
	}
	return h.Error
}

// AnsweredRequest is the outcome of a request that put items in, so that it can be
// answered again if the answer was lost.
type AnsweredRequest struct {
	ID string `json:"id"`
	// First is the number of the first new item.
	First int64 `json:"first"`
	// Known are the numbers of the items that were in the queue already, by their places
	// in the request.
	Known map[int]int64 `json:"known,omitempty"`
	// Refused is how many items of a signal were refused, while others were put in.
	Refused int `json:"refused,omitempty"`
}

// Depth is how many items wait, in the queue itself and in its pages.
func (s *QueueState) Depth() int {
	return len(s.Waiting) + s.Overflow.Count() + len(s.Tail)
}

// CountBetween counts the waiting items with the numbers from to to, both
// included; 0 means the first and the last.
func (s *QueueState) CountBetween(from, to int64) int {
	if to == 0 {
		to = s.Accepted
	}
	n := s.Overflow.CountBetween(from, to)
	for _, item := range slices.Concat(s.Waiting, s.Tail) {
		if item.Sequence >= from && item.Sequence <= to {
			n++
		}
	}
	return n
}

// Oldest is when the waiting item was accepted that waits for the longest time,
// or the zero time when none waits.
func (s *QueueState) Oldest() time.Time {
	items := s.Waiting
	if len(items) == 0 {
		items = s.Tail // What is in pages or in the tail is younger than the head.
	}
	var oldest time.Time
	for _, item := range items {
		if oldest.IsZero() || item.Accepted.Before(oldest) {
			oldest = item.Accepted
		}
	}
	return oldest
}

// Position is how many items run before the waiting one with a number, the
// running one included. It reports false if that does not wait.
func (s *QueueState) Position(sequence int64) (ahead int, waits bool) {
	number := func(item QueueItem) bool { return item.Sequence == sequence }
	if i := slices.IndexFunc(s.Waiting, number); i >= 0 {
		return i + s.Busy(), true
	}
	if s.Overflow.Waits(sequence) {
		return len(s.Waiting) + s.Overflow.CountBetween(0, sequence-1) + s.Busy(), true
	}
	if i := slices.IndexFunc(s.Tail, number); i >= 0 {
		return len(s.Waiting) + s.Overflow.Count() + i + s.Busy(), true
	}
	return 0, false
}

// Busy is 1 while an item runs, and else 0.
func (s *QueueState) Busy() int {
	if s.Running != nil {
		return 1
	}
	return 0
}

// Summary is the state in a few words.
func (s *QueueState) Summary() QueueSummary {
	summary := QueueSummary{Waiting: s.Depth(), Paused: s.Paused, Draining: s.Draining, Halted: s.Halted != nil}
	if s.Running != nil {
		summary.Running = s.Running.Job.ID
	}
	return summary
}
