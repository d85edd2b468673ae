package contract

import (
	"encoding/json"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// ErrorTypeDraining is the type of the error with which a worker that shuts
// down hands a run back. Its details are an ActivityOutput with the cursor.
const ErrorTypeDraining = "WorkerDraining"

// MaxReturnGrace bounds how long a worker waits for a handler that was cut off before
// it gives it up.
const MaxReturnGrace = 30 * time.Second

// ActivityInput is the input of every job type's activity.
type ActivityInput struct {
	Job job.Job `json:"job"`
	// RunID names the run in every attempt.
	RunID string `json:"run_id"`
	// Cursor is the position to go on from, if there is one.
	Cursor json.RawMessage `json:"cursor,omitempty"`
}

// ActivityOutput is the output of every job type's activity.
type ActivityOutput struct {
	Result job.Result `json:"result"`
	// Worker is the identity of the process that did the work.
	Worker string `json:"worker"`
	// Attempts is the number of the activity's attempt that ended it.
	Attempts int `json:"attempts"`
	// Stopped says that the handler ended early because it was asked to.
	Stopped bool `json:"stopped,omitempty"`
	// Kind is that of the error, if the handler failed.
	Kind errclass.Kind `json:"kind,omitempty"`
	// Progress is how far a handler was that did not succeed.
	Progress job.Progress `json:"progress,omitzero"`
	// SupersededBy is that of RunOutput.
	SupersededBy time.Time `json:"superseded_by,omitzero"`
	// EachAttempt are the attempts of the activity, if there was more than one.
	EachAttempt []Attempt `json:"each_attempt,omitempty"`
}

// Attempt is an attempt of an activity. Temporal's history has the last one alone: each passes
// on what it knows of those before it.
type Attempt struct {
	Number int       `json:"number"`
	Worker string    `json:"worker"`
	Start  time.Time `json:"start"`
	// End is when it failed. Zero of one under way, and of one whose worker did not tell.
	End time.Time `json:"end,omitzero"`
	// Class and Error say why; Error is one line.
	Class string `json:"class,omitempty"`
	Error string `json:"error,omitempty"`
	// Next is when the next attempt is due.
	Next time.Time `json:"next,omitzero"`
}

// KeptAttempts is how many attempts are passed on: the latest.
const KeptAttempts = 20

// Heartbeat is what the activity of a job type reports while it runs.
type Heartbeat struct {
	// Text is the progress for people: the Web UI shows heartbeats as they are.
	Text     string          `json:"text,omitempty"`
	Progress job.Progress    `json:"progress"`
	Cursor   json.RawMessage `json:"cursor,omitempty"`
	Worker   string          `json:"worker"`
	// EachAttempt are the attempts of the activity up to this one.
	EachAttempt []Attempt `json:"each_attempt,omitempty"`
}
