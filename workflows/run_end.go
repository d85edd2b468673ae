package workflows

import (
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
)

// keepEnd puts how the run ended into its memo.
func (r *run) keepEnd(ctx workflow.Context, output *contract.RunOutput) error {
	if err := workflow.UpsertMemo(ctx, map[string]any{contract.MemoEnd: r.end(output)}); err != nil {
		return fmt.Errorf("publish the end of the run of job %s: %w", r.Job.ID, err)
	}
	return nil
}

func (r *run) end(output *contract.RunOutput) contract.RunEnd {
	failure := r.failure
	end := contract.RunEnd{Taken: r.taken, Attempts: r.attempts.made, Handovers: r.handovers, Binding: r.bound(), Failing: r.failing}
	if output != nil {
		end.Attempts, end.Worker = output.Attempts, output.Worker
		end.Message, end.Counts = shorten(output.Message), boundCounts(output.Counts)
		end.SupersededBy, end.HeldUntil = output.SupersededBy, output.HeldUntil
		return end
	}
	last := contract.LastOutput(failure)
	end.Worker = last.Worker
	end.Attempts += last.Attempts
	end.Message, end.Counts = shorten(last.Result.Message), boundCounts(last.Result.Counts)
	var activityError *temporal.ActivityError
	if errors.As(failure, &activityError) {
		if end.Worker == "" {
			end.Worker = activityError.Identity()
		}
		// A worker that was lost has not counted its attempts.
		_, silent := lostWorker(failure)
		if last.Attempts == 0 && (silent || activityError.RetryState() == enumspb.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED) {
			end.Attempts += max(r.attempts.next(), 1)
		}
	}
	if failure != nil && !temporal.IsCanceledError(failure) {
		end.Class, end.Error = contract.ErrorClass(failure), shorten(contract.ErrorReason(failure))
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
