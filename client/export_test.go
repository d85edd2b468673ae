package client

import (
	"time"

	historypb "go.temporal.io/api/history/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// TriggerTime is the time of a trigger of a job.
func TriggerTime(jobID string, r *job.Recurring, now time.Time) time.Time {
	return triggerTime(jobID, r, now)
}

// PauseSpan is pauseSpan.
type PauseSpan = pauseSpan

// MaxPauseSpans is maxPauseSpans.
const MaxPauseSpans = maxPauseSpans

// What a Schedule keeps of its pauses.
var (
	PausesOf  = pausesOf
	SetPaused = setPaused
	AddReason = addReason
)

// QueueHistory is queueHistory.
type QueueHistory struct{ queueHistory }

// Add takes in the next event.
func (h *QueueHistory) Add(event *historypb.HistoryEvent) error { return h.add(event) }

// Input is the state that the run began with.
func (h *QueueHistory) Input() contract.QueueState { return h.input }

// Answers says that a worker has carried the run on.
func (h *QueueHistory) Answers() bool { return h.answers }

// Recover makes the state that the run left the input of another one.
func (h *QueueHistory) Recover(left contract.QueueState, now time.Time) (state contract.QueueState, orphans []string) {
	return h.recover(left, now)
}
