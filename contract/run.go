package contract

import (
	"encoding/json"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// RunInput is the input of RunJob.
type RunInput struct {
	Job job.Job `json:"job"`
	// StartedBy says what started the run.
	StartedBy StartedBy `json:"started_by"`
	// Cursor is the position to go on from, if there is one.
	Cursor json.RawMessage `json:"cursor,omitempty"`
	// RetryOf is the run id of the run that this one is started in place of, as in
	// the memo.
	RetryOf string `json:"retry_of,omitempty"`
}

// StartedBy says what started a run.
type StartedBy string

// The triggers.
const (
	StartedBySchedule StartedBy = "schedule" // a recurring job was due
	StartedByApply    StartedBy = "apply"    // a one-shot job was declared
	StartedByHand     StartedBy = "manual"   // someone asked
	StartedByQueue    StartedBy = "queue"    // its turn came in a queue
	StartedByRetry    StartedBy = "retry"    // someone wanted a run that failed once more
)

// RunState is the answer of RunJob to QueryState.
type RunState struct {
	// Binding is the service of a bound job's run, and how the run came to it.
	Binding Binding `json:"binding,omitzero"`
}

// RunOutput is the result of RunJob.
type RunOutput struct {
	job.Result
	// Attempts counts the attempts over all workers.
	Attempts int `json:"attempts"`
	// Worker is the identity of the process that finished the run.
	Worker string `json:"worker"`
	// Handovers counts the times that a worker that shut down or died passed
	// the run on, apart from ordinary retries.
	Handovers int `json:"handovers,omitempty"`
	// Binding is how a bound job's run came to its service.
	Binding *Binding `json:"binding,omitempty"`
	// SupersededBy is the start whose run this one gave way to without doing
	// anything: a later one, see [job.Recurring.GivesWay], or an earlier one that was
	// still at work.
	SupersededBy time.Time `json:"superseded_by,omitzero"`
	// HeldUntil is the next run of a failing job: the run came before it, and was held
	// back without doing anything.
	HeldUntil time.Time `json:"held_until,omitzero"`
}
