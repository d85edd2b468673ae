package contract

import (
	"time"
)

// Memo keys.
const (
	MemoJob     = "job"     // the job's definition, a job.Job
	MemoPaused  = "paused"  // of a continuous job: a Pause
	MemoFailing = "failing" // of a continuous job: a Failing
	MemoProbe   = "probe"   // of a job's probe: a Probe
)

// Probe tells, in the memo of the workflow that tries a paused job, how that
// stands: it can be read without a worker.
type Probe struct {
	// Tries counts the runs that were started; NextAt is when the next is due.
	Tries  int       `json:"tries"`
	NextAt time.Time `json:"next_at,omitzero"`
	// LastError is the error of the last one, cut short.
	LastError string `json:"last_error,omitempty"`
}

// Pause tells, in the memo of a continuous job, whether it is paused: it can be
// read without a worker.
type Pause struct {
	Paused bool   `json:"paused"`
	Reason string `json:"reason,omitempty"`
}

// Failing tells, in the memo of a continuous job, whether its latest iterations
// failed: it can be read without a worker. It is written when the first one in a
// row fails, and when one succeeds or the failures are forgotten, so that it says
// nothing of those in between. A job that is paused may be failing as well.
type Failing struct {
	Failing bool `json:"failing"`
	// Since is the end of the first iteration in a row that failed.
	Since time.Time `json:"since,omitzero"`
	// Class and Error are those of that iteration, cut short.
	Class string `json:"class,omitempty"`
	Error string `json:"error,omitempty"`
}

// Memo keys of a run.
const (
	MemoEnd     = "end"      // how it ended, a RunEnd
	MemoRetryOf = "retry_of" // the run id of the run that it was started in place of
	MemoItem    = "item"     // of a queue's run: the number of its item, an int64
)

// RunEnd is how a run ended. It is in the run's memo, which lists of runs carry:
// so they need no history.
type RunEnd struct {
	// Taken is when a worker took the run.
	Taken time.Time `json:"taken"`
	// Attempts counts the tries over all workers; 0 if that is not known.
	Attempts  int    `json:"attempts,omitempty"`
	Handovers int    `json:"handovers,omitempty"`
	Worker    string `json:"worker,omitempty"`
	Message   string `json:"message,omitempty"`
	// Counts are those of the result, as many as fit in 4 KiB.
	Counts map[string]int64 `json:"counts,omitempty"`
	// Class and Error tell why a run failed.
	Class string `json:"class,omitempty"`
	Error string `json:"error,omitempty"`
	// SupersededBy is that of RunOutput.
	SupersededBy time.Time `json:"superseded_by,omitzero"`
}
