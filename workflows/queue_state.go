package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
)

// MaxQueueBytes bounds the waiting items of one queue. The state of a queue is
// the input of its next run, which Temporal limits to 2 MiB.
const MaxQueueBytes = 1 << 20

// recentItems is how many finished items a queue keeps to show.
const recentItems = 20

// QueueState is everything a queue remembers: the input that continue-as-new
// carries on, and the answer to QueryState.
type QueueState struct {
	Name string `json:"name"`
	// Waiting holds the items in the order they will run.
	Waiting []QueueItem `json:"waiting,omitempty"`
	// WaitingBytes is the size of the waiting specs and options.
	WaitingBytes int `json:"waiting_bytes"`
	// Running is the item that runs. It is the lock of the queue: nothing else
	// starts before its run has really ended.
	Running *RunningItem `json:"running,omitempty"`
	// Recent holds the last finished items, oldest first.
	Recent []FinishedItem `json:"recent,omitempty"`

	// Accepted counts the items ever accepted, and numbers them.
	Accepted int64 `json:"accepted"`
	// Completed, Failed, Canceled and Skipped count how items ended. A skipped
	// item is one whose job had run before.
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Canceled  int64 `json:"canceled"`
	Skipped   int64 `json:"skipped"`

	Paused      bool   `json:"paused,omitempty"`
	PauseReason string `json:"pause_reason,omitempty"`

	// Generation counts the workflow runs, each continued as new.
	Generation int `json:"generation"`
}

// QueueItem is a job that waits in a queue.
type QueueItem struct {
	Sequence int64     `json:"sequence"`
	Job      job.Job   `json:"job"`
	Accepted time.Time `json:"accepted"`
	// Again runs the job although it ran before.
	Again bool `json:"again,omitempty"`
	// RequestID names the request that put the item in.
	RequestID string `json:"request_id,omitempty"`
}

// RunningItem is the item that runs.
type RunningItem struct {
	QueueItem
	Started time.Time `json:"started"`
	// RunID is the run id of its RunJob workflow, once that has started.
	RunID string `json:"run_id,omitempty"`
	// Canceled says that someone asked the item to stop, and CancelSent that
	// its run has been told.
	Canceled   bool `json:"canceled,omitempty"`
	CancelSent bool `json:"cancel_sent,omitempty"`
}

// ItemStatus says how an item ended.
type ItemStatus string

// The ends of an item.
const (
	ItemCompleted ItemStatus = "completed"
	ItemFailed    ItemStatus = "failed"
	ItemCanceled  ItemStatus = "canceled"
	ItemSkipped   ItemStatus = "skipped" // the job had run before
)

// FinishedItem is an item that has left the queue.
type FinishedItem struct {
	Sequence int64      `json:"sequence"`
	JobID    string     `json:"job_id"`
	Status   ItemStatus `json:"status"`
	Accepted time.Time  `json:"accepted"`
	Started  time.Time  `json:"started,omitzero"`
	Ended    time.Time  `json:"ended"`
	RunID    string     `json:"run_id,omitempty"`
	Error    string     `json:"error,omitempty"`
	// RequestID names the request that put the item in.
	RequestID string `json:"request_id,omitempty"`
}

// find gives the place of a job among the waiting items, or -1.
func (s *QueueState) find(jobID string) int {
	for i, item := range s.Waiting {
		if item.Job.ID == jobID {
			return i
		}
	}
	return -1
}

// busy is 1 while an item runs.
func (s *QueueState) busy() int {
	if s.Running != nil {
		return 1
	}
	return 0
}

// enqueue appends an item unless its job is in the queue already.
func (s *QueueState) enqueue(in EnqueueRequest, now time.Time) EnqueueReceipt {
	if receipt, ok := s.answered(in.RequestID); ok {
		return receipt
	}
	if s.Running != nil && s.Running.Job.ID == in.Job.ID {
		return EnqueueReceipt{Sequence: s.Running.Sequence, Duplicate: true}
	}
	if i := s.find(in.Job.ID); i >= 0 {
		return EnqueueReceipt{Sequence: s.Waiting[i].Sequence, Ahead: i + s.busy(), Duplicate: true}
	}
	s.Accepted++
	item := QueueItem{Sequence: s.Accepted, Job: in.Job, Accepted: now, Again: in.Again, RequestID: in.RequestID}
	s.Waiting = append(s.Waiting, item)
	s.WaitingBytes += item.size()
	return EnqueueReceipt{Sequence: item.Sequence, Ahead: len(s.Waiting) - 1 + s.busy()}
}

// answered finds the item that a request put in before: its answer was lost on
// the way, and the caller asks again.
func (s *QueueState) answered(requestID string) (EnqueueReceipt, bool) {
	if requestID == "" {
		return EnqueueReceipt{}, false
	}
	if s.Running != nil && s.Running.RequestID == requestID {
		return EnqueueReceipt{Sequence: s.Running.Sequence}, true
	}
	for i, item := range s.Waiting {
		if item.RequestID == requestID {
			return EnqueueReceipt{Sequence: item.Sequence, Ahead: i + s.busy()}, true
		}
	}
	for _, item := range s.Recent {
		if item.RequestID == requestID {
			return EnqueueReceipt{Sequence: item.Sequence}, true
		}
	}
	return EnqueueReceipt{}, false
}

// size estimates the bytes of an item in the state.
func (i QueueItem) size() int {
	const fixed = 600 // Options and times, written out.
	size := fixed + len(i.Job.Spec) + len(i.Job.ID) + len(i.Job.Options.Description)
	for _, key := range workflow.DeterministicKeys(i.Job.Options.Tags) {
		size += len(key) + len(i.Job.Options.Tags[key]) + 6
	}
	return size
}

// take removes the waiting item at place i.
func (s *QueueState) take(i int) QueueItem {
	item := s.Waiting[i]
	s.Waiting = append(s.Waiting[:i:i], s.Waiting[i+1:]...)
	s.WaitingBytes -= item.size()
	return item
}

// finish records the end of an item.
func (s *QueueState) finish(item FinishedItem) {
	item.Error = shorten(item.Error)
	switch item.Status {
	case ItemCompleted:
		s.Completed++
	case ItemFailed:
		s.Failed++
	case ItemCanceled:
		s.Canceled++
	case ItemSkipped:
		s.Skipped++
	}
	s.Recent = append(s.Recent, item)
	if extra := len(s.Recent) - recentItems; extra > 0 {
		s.Recent = append([]FinishedItem(nil), s.Recent[extra:]...)
	}
}

func (s *QueueState) summary() QueueSummary {
	summary := QueueSummary{Waiting: len(s.Waiting), Paused: s.Paused}
	if s.Running != nil {
		summary.Running = s.Running.Job.ID
	}
	return summary
}

// details is the text that the Web UI shows for the running workflow.
func (s *QueueState) details() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**queue %s** · %d waiting · %d completed · %d failed · %d canceled\n", s.Name, len(s.Waiting), s.Completed, s.Failed, s.Canceled)
	if s.Paused {
		fmt.Fprintf(&b, "\nPaused: %s\n", s.PauseReason)
	}
	if r := s.Running; r != nil {
		fmt.Fprintf(&b, "\nRunning: #%d %s since %s\n", r.Sequence, r.Job.ID, r.Started.UTC().Format(time.RFC3339))
	}
	for i, item := range s.Waiting {
		if i == 5 {
			fmt.Fprintf(&b, "\n… and %d more\n", len(s.Waiting)-i)
			break
		}
		fmt.Fprintf(&b, "\n- #%d %s", item.Sequence, item.Job.ID)
	}
	return b.String()
}
