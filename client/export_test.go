package client

import (
	"time"

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
