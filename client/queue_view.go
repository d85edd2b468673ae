package client

import (
	"time"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// Queue is a queue as it is.
type Queue struct {
	Name   string      `json:"name"`
	Status QueueStatus `json:"status"`
	// Waiting is how many items wait, and Oldest when the one was accepted that waits
	// for the longest time.
	Waiting int       `json:"waiting"`
	Oldest  time.Time `json:"oldest,omitzero"`
	// Running is the item that runs, and Next those that come after it: as many as the
	// queue itself holds. Peek gives all.
	Running *RunningItem  `json:"running,omitempty"`
	Next    []WaitingItem `json:"next,omitempty"`
	// Recent are the latest 20 items to leave the queue, oldest first.
	Recent []contract.FinishedItem `json:"recent,omitempty"`
	// LastMinute and LastHour are how many items ran in them, give or take ten seconds
	// or a minute.
	LastMinute int `json:"ran_last_minute"`
	LastHour   int `json:"ran_last_hour"`
	// RanSince is when the first of these began, zero if none ran.
	RanSince time.Time `json:"ran_since,omitzero"`

	// Accepted counts all items that were ever put in, the others how they ended. Lost
	// counts items of overflow pages that were deleted by hand.
	Accepted  int64 `json:"accepted"`
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Canceled  int64 `json:"canceled"`
	Skipped   int64 `json:"skipped"`
	Lost      int64 `json:"lost,omitempty"`
	// DeadLetters counts the latest items that failed, at most 100, and
	// DeadLettersDropped those that made room for them.
	DeadLetters        int   `json:"dead_letters"`
	DeadLettersDropped int64 `json:"dead_letters_dropped,omitempty"`

	// Paused says that someone has paused the queue, and PauseReason who and why.
	Paused      bool   `json:"paused,omitempty"`
	PauseReason string `json:"pause_reason,omitempty"`
	// PauseEnd is when the pause ends by itself.
	PauseEnd time.Time `json:"pause_end,omitzero"`
	// Draining says that the queue takes no more items, and runs what waits.
	Draining bool `json:"draining,omitempty"`
	// OnFailure is what the failure of an item does whose job does not say it.
	OnFailure job.OnFailure `json:"on_failure,omitempty"`
	// Halted is set while the queue waits for someone to look at a failure.
	Halted *QueueHalt `json:"halted,omitempty"`
	// Stopping is set while the handler of a terminated run may still be at work.
	Stopping *contract.StoppingHandler `json:"stopping,omitempty"`
	// Ended is set if the queue's workflow has ended. It does not end by itself. The
	// other fields are those with which QueueClient.Recover starts the queue again.
	Ended *QueueEnd `json:"ended,omitempty"`

	state   *contract.QueueState
	orphans []string
}

// QueueStatus is the status of a queue. Of one whose workflow has ended it is how that
// ended, a RunStatus.
type QueueStatus string

// The statuses of a queue.
const (
	QueueIdle     QueueStatus = "idle"
	QueueRunning  QueueStatus = "running"
	QueuePaused   QueueStatus = "paused"
	QueueHalted   QueueStatus = "halted"
	QueueDraining QueueStatus = "draining"
	QueueDrained  QueueStatus = "drained"
	QueueStopping QueueStatus = "stopping" // waits for the handler of a terminated run
)

// WaitingItem is an item that waits.
type WaitingItem struct {
	Sequence int64     `json:"sequence"`
	JobID    string    `json:"job_id"`
	Accepted time.Time `json:"accepted"`
}

// RunningItem is an item that runs.
type RunningItem struct {
	Sequence int64     `json:"sequence"`
	JobID    string    `json:"job_id"`
	Started  time.Time `json:"started"`
	// RunID is "" until the run has started.
	RunID string `json:"run_id,omitempty"`
}

// QueueHalt is why a queue waits for someone to resume it or to skip what failed.
type QueueHalt struct {
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
	// JobID and RunID are of the item that failed, "" if it is an overflow page that
	// cannot be started or read.
	JobID string `json:"job_id,omitempty"`
	RunID string `json:"run_id,omitempty"`
}

// newQueue is the queue with a state.
func newQueue(state *contract.QueueState, now time.Time) *Queue {
	q := &Queue{
		Name: state.Name, Status: queueStatus(state), Waiting: state.Depth(), Oldest: state.Oldest(), Recent: state.Recent,
		LastMinute: state.Pace.LastMinute(now), LastHour: state.Pace.LastHour(now), RanSince: state.RanSince(now),
		Accepted: state.Accepted, Completed: state.Completed, Failed: state.Failed, Canceled: state.Canceled,
		Skipped: state.Skipped, Lost: state.Lost, DeadLetters: len(state.DeadLetters), DeadLettersDropped: state.DeadDropped,
		Paused: state.Paused, PauseReason: state.PauseReason, PauseEnd: state.PauseEnd, Draining: state.Draining, OnFailure: state.OnFailure,
		Stopping: state.Stopping, state: state,
	}
	for _, item := range state.Waiting {
		q.Next = append(q.Next, WaitingItem{item.Sequence, item.Job.ID, item.Accepted})
	}
	if item := state.Running; item != nil {
		q.Running = &RunningItem{item.Sequence, item.Job.ID, item.Started, item.RunID}
	}
	if halt := state.Halted; halt != nil {
		q.Halted = &QueueHalt{Since: halt.Since, Reason: halt.Reason(), RunID: halt.RunID}
		if halt.Item != nil {
			q.Halted.JobID = halt.Item.Job.ID
		}
	}
	return q
}

func queueStatus(state *contract.QueueState) QueueStatus {
	switch {
	case state.Halted != nil:
		return QueueHalted
	case state.Paused:
		return QueuePaused
	case state.Draining && state.Running == nil && state.Depth() == 0:
		return QueueDrained
	case state.Draining:
		return QueueDraining
	case state.Running != nil:
		return QueueRunning
	case state.Stopping != nil:
		return QueueStopping
	}
	return QueueIdle
}

// CountBetween counts the waiting items with the numbers from to to, both included; 0
// means the first and the last.
func (q *Queue) CountBetween(from, to int64) int { return q.state.CountBetween(from, to) }

// Held are the waiting items that the queue itself holds, with their jobs.
func (q *Queue) Held() []contract.QueueItem { return q.state.Waiting }
