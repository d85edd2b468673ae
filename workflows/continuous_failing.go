package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
)

// lostIteration says that an iteration ended since its worker failed, and not
// the job.
func lostIteration(err error) bool {
	_, lost := lostWorker(err)
	if !lost {
		_, lost = lostRun(err)
	}
	return lost
}

// tellFailing tells in the memo and in the log when the job goes over to failing,
// and when it does not fail any more: once for each. The log of a workflow is
// silent when it is replayed.
func (l *loop) tellFailing(ctx workflow.Context) error {
	failing := l.ConsecutiveFailures > 0
	if failing != l.FailingSince.IsZero() {
		return nil
	}
	logger := workflow.GetLogger(ctx)
	var memo contract.Failing
	switch {
	case failing:
		memo = l.latestFailure()
		if memo.Since.IsZero() {
			memo.Since = workflow.Now(ctx)
		}
		l.FailingSince = memo.Since
		logger.Error("the continuous job is failing", "alert", alertFailing,
			"JobID", l.Job.ID, "Failures", l.ConsecutiveFailures, "LastError", l.LastError)
	case l.LastSuccess.After(l.FailingSince):
		logger.Info("the continuous job has recovered", "alert", alertRecovered,
			"JobID", l.Job.ID, "FailingSince", l.FailingSince)
		l.FailingSince = time.Time{}
	default:
		logger.Info("the failures of the continuous job are forgotten: it was resumed or has a new definition",
			"JobID", l.Job.ID, "FailingSince", l.FailingSince)
		l.FailingSince = time.Time{}
	}
	if err := workflow.UpsertMemo(ctx, map[string]any{contract.MemoFailing: memo}); err != nil {
		return fmt.Errorf("publish that job %s fails: %w", l.Job.ID, err)
	}
	return nil
}

// Values of the attribute alert of log lines.
const (
	alertFailing   = "failing"
	alertRecovered = "recovered"
)

// latestFailure is the latest iteration that failed, if the state remembers it.
func (l *loop) latestFailure() contract.Failing {
	for _, it := range slices.Backward(l.Recent) {
		if it.Error != "" {
			return contract.Failing{Failing: true, Since: it.End(), Class: it.Class, Error: it.Error}
		}
	}
	return contract.Failing{Failing: true}
}
