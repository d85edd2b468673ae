package contract

import (
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// Memo keys.
const (
	MemoJob     = "job"     // the job's definition, a job.Job
	MemoPauses  = "pauses"  // of the runs of a Schedule: when it was paused
	MemoPaused  = "paused"  // of a continuous job: a Pause
	MemoFailing = "failing" // of a continuous job: a Failing
	MemoLimits  = "limits"  // of a Schedule itself: Limits
	MemoStopped = "stopped" // of a continuous job: Stopped
)

// Stopped is in the memo of a continuous job that was stopped by a message.
type Stopped struct {
	Reason string `json:"reason,omitempty"`
	// Deleted says that the job is no more: it is not declared any longer.
	Deleted bool `json:"deleted,omitempty"`
}

// Pause is in the memo of a continuous job and says whether it is paused. It can be read
// without a worker.
type Pause struct {
	Paused bool   `json:"paused"`
	Reason string `json:"reason,omitempty"`
	// End is when the pause ends by itself; zero for never.
	End time.Time `json:"end,omitzero"`
	// Itself says that the job has paused itself after failures, and nobody else has.
	Itself bool `json:"itself,omitempty"`
}

// MaxPauseReason bounds the bytes of the reason of a pause. It is the server's limit on
// the note of a Schedule.
const MaxPauseReason = 1000

// AlsoFor stands between the reasons for which several have paused something, the
// first of them first.
const AlsoFor = "; also: "

// AddReason is the reason of a pause of what was paused already, bounded: whoever resumes it
// has to know of all. It is called where the reason is kept, so that of two who pause at once
// no reason is lost.
func AddReason(before, reason string) string {
	reason = job.Cut(reason, MaxPauseReason)
	if before == "" {
		return reason
	}
	// A reason may be several itself.
	if reason == "" || strings.Contains(AlsoFor+before+AlsoFor, AlsoFor+reason+AlsoFor) {
		return before
	}
	reasons := append(strings.Split(before, AlsoFor), reason)
	all := strings.Join(reasons, AlsoFor)
	for len(all) > MaxPauseReason && len(reasons) > 1 {
		reasons = reasons[1:] // There is room for the latest.
		all = "…" + AlsoFor + strings.Join(reasons, AlsoFor)
	}
	return job.Cut(all, MaxPauseReason)
}

// PauseText tells people of a pause: until when, if it ends by itself, and why. It is the note of
// a paused Schedule.
func PauseText(reason string, end time.Time) string {
	if end.IsZero() {
		return reason
	}
	return "until " + FormatPauseEnd(end) + ": " + reason
}

// FormatPauseEnd is the form of the search attribute that says when a pause ends.
func FormatPauseEnd(end time.Time) string { return end.UTC().Format(time.RFC3339) }

// PauseOf reads the pause of a Schedule from its note and the search attribute of its end. An end
// that the note does not begin with is that of an earlier pause: people change notes elsewhere.
func PauseOf(note, attribute string) (reason string, end time.Time) {
	end, err := time.Parse(time.RFC3339, attribute)
	if err != nil {
		return note, time.Time{}
	}
	reason, ours := strings.CutPrefix(note, PauseText("", end))
	if !ours {
		return note, time.Time{}
	}
	return reason, end
}

// Before says what a pause or a resume has found.
type Before struct {
	Paused bool   `json:"paused,omitempty"`
	Reason string `json:"reason,omitempty"`
	// End is when that pause would have ended by itself.
	End time.Time `json:"end,omitzero"`
	// BacksOff says that there were failures of a continuous job to forget.
	BacksOff bool `json:"backs_off,omitempty"`
	// Unchanged says that there was nothing to do.
	Unchanged bool `json:"unchanged,omitempty"`
}

// Failing says whether the latest runs, or iterations, of a job failed. It can be
// read without a worker: in the memo of a continuous job, and in how a run of a
// recurring job ended. A job that is paused may be failing as well.
//
// The memo of a continuous job is written when the first iteration in a row fails,
// and when one succeeds or the failures are forgotten: it says nothing of those in
// between.
type Failing struct {
	Failing bool `json:"failing"`
	// Failures counts the failed runs in a row of a recurring job.
	Failures int `json:"failures_in_a_row,omitempty"`
	// Since is the end of the first run, or iteration, in a row that failed.
	Since time.Time `json:"since,omitzero"`
	// Class and Error are those of the last run, or of the first iteration, that
	// failed; cut short.
	Class string `json:"class,omitempty"`
	Error string `json:"error,omitempty"`
	// NextRun is the next start that is not held back. It is zero if none is held
	// back, as without pause_after_failures.
	NextRun time.Time `json:"next_run,omitzero"`
}

// Limits are what the watchdog holds a recurring job to. They are in the memo of its
// Schedule, which lists of schedules carry, if the job has any.
type Limits struct {
	// Definition is the hash of the definition that they are of. A server that keeps the
	// memo as it was shows by it that they are of another one.
	Definition string        `json:"definition"`
	Freshness  job.Duration  `json:"freshness,omitzero"`
	Deadline   *job.Deadline `json:"deadline,omitempty"`
}

// Memo keys of a run.
const (
	MemoEnd     = "end"      // how it ended, a RunEnd
	MemoRetryOf = "retry_of" // the run id of the run that it was started in place of
	MemoItem    = "item"     // of a queue's run: an ItemOfRun
)

// RunEnd is how a run ended. It is in the run's memo, which lists of runs carry:
// so they need no history.
type RunEnd struct {
	// Taken is when a worker took the run.
	Taken time.Time `json:"taken"`
	// Attempts counts the attempts over all workers; 0 if that is not known.
	Attempts  int    `json:"attempts,omitempty"`
	Handovers int    `json:"handovers,omitempty"`
	Worker    string `json:"worker,omitempty"`
	Message   string `json:"message,omitempty"`
	// Counts are those of the result, as many as fit in 4 KiB.
	Counts map[string]int64 `json:"counts,omitempty"`
	// Class and Error say why a run failed.
	Class string `json:"class,omitempty"`
	Error string `json:"error,omitempty"`
	// SupersededBy and HeldUntil are those of RunOutput.
	SupersededBy time.Time `json:"superseded_by,omitzero"`
	HeldUntil    time.Time `json:"held_until,omitzero"`
	// Binding is how a bound job's run came to its service.
	Binding *Binding `json:"binding,omitempty"`
	// Failing has the failures in a row as the run leaves them; nil if there are
	// none, or if no Schedule started the run.
	Failing *Failing `json:"failing,omitempty"`
}

// ItemOfRun is in the memo of a run that a queue started and says which item it is.
type ItemOfRun struct {
	// Instance is that of the queue, and Sequence the number of the item in it.
	Instance string `json:"instance"`
	Sequence int64  `json:"sequence"`
	// Accepted is how many items the queue had accepted when the run started. An item
	// with the same work and a number up to it was put in before: it is a repeat.
	Accepted int64 `json:"accepted"`
	// Since is when the queue accepted the item.
	Since time.Time `json:"since,omitzero"`
}
