package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
)

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
	// SupersededBy and HeldUntil are those of RunOutput.
	SupersededBy time.Time `json:"superseded_by,omitzero"`
	HeldUntil    time.Time `json:"held_until,omitzero"`
	// Failing tells of the failures in a row as the run leaves them; nil if there are
	// none, or if no Schedule started the run.
	Failing *Failing `json:"failing,omitempty"`
}

// endInMemoChange names the change by which runs leave their end in the memo.
const endInMemoChange = "end-in-memo"

// keepEnd puts how the run ended into its memo.
func (r *run) keepEnd(ctx workflow.Context, output *RunOutput) error {
	// An input from before there was an end says nothing. Asking for the version
	// costs two more events, so that the others are not asked.
	if !r.KeepEnd && workflow.GetVersion(ctx, endInMemoChange, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return nil
	}
	if err := workflow.UpsertMemo(ctx, map[string]any{MemoEnd: r.end(output)}); err != nil {
		return fmt.Errorf("publish the end of the run of job %s: %w", r.Job.ID, err)
	}
	return nil
}

func (r *run) end(output *RunOutput) RunEnd {
	failure := r.failure
	end := RunEnd{Taken: r.taken, Attempts: r.tries.made, Handovers: r.handovers, Failing: r.failing}
	if output != nil {
		end.Attempts, end.Worker = output.Attempts, output.Worker
		end.Message, end.Counts = shorten(output.Message), boundCounts(output.Counts)
		end.SupersededBy, end.HeldUntil = output.SupersededBy, output.HeldUntil
		return end
	}
	last := lastOutput(failure)
	end.Worker = last.Worker
	end.Attempts += last.Attempts
	end.Message, end.Counts = shorten(last.Result.Message), boundCounts(last.Result.Counts)
	var activityError *temporal.ActivityError
	if errors.As(failure, &activityError) {
		if end.Worker == "" {
			end.Worker = activityError.Identity()
		}
		// A worker that was lost could not say how often it had tried.
		_, silent := lostWorker(failure)
		if last.Attempts == 0 && (silent || activityError.RetryState() == enumspb.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED) {
			end.Attempts += max(r.tries.next(), 1)
		}
	}
	if failure != nil && !temporal.IsCanceledError(failure) {
		end.Class, end.Error = class(failure), shorten(reason(failure))
	}
	return end
}

// maxCountsBytes bounds the names and values of the counts in a memo.
const maxCountsBytes = 4 << 10

// boundCounts leaves out what does not fit, in the order of the names.
func boundCounts(counts map[string]int64) map[string]int64 {
	const value = 24 // A number and what is around it.
	kept := map[string]int64{}
	size := 0
	for _, name := range workflow.DeterministicKeys(counts) {
		if size += len(name) + value; size > maxCountsBytes {
			break
		}
		kept[name] = counts[name]
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// LastCursor is the position that a run which failed or was canceled left behind,
// as far as the error of the run tells; nil if it left none.
func LastCursor(err error) json.RawMessage { return lastOutput(err).Result.Cursor }

// lastOutput is what the last attempt of a run left behind that did not complete.
// In a workflow it takes errors of activities only: the details of those that the
// workflow itself has made are not encoded, and can be read as what they are alone.
func lastOutput(err error) ActivityOutput {
	for ; err != nil; err = errors.Unwrap(err) {
		if timeout, ok := err.(*temporal.TimeoutError); ok { //nolint:errorlint // Each error of the chain is looked at.
			return lastBeat(timeout)
		}
		with, ok := err.(interface { //nolint:errorlint // As above.
			HasDetails() bool
			Details(into ...any) error
		})
		if !ok || !with.HasDetails() {
			continue
		}
		var output ActivityOutput
		if with.Details(&output) == nil && output.Worker != "" {
			return output
		}
	}
	return ActivityOutput{}
}

func lastBeat(timeout *temporal.TimeoutError) ActivityOutput {
	var beat Heartbeat
	if !timeout.HasLastHeartbeatDetails() || timeout.LastHeartbeatDetails(&beat) != nil {
		return ActivityOutput{}
	}
	return ActivityOutput{Worker: beat.Worker, Result: job.Result{Cursor: beat.Cursor}, Progress: beat.Progress}
}
