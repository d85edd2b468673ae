package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
)

// lostIteration reports whether an iteration ended since its worker failed, and not
// the job.
func lostIteration(err error) bool {
	_, lost := lostWorker(err)
	if !lost {
		_, lost = lostRun(err)
	}
	return lost
}

// publishFailing writes to the memo and to the log when the job begins to fail, and
// when it does not fail any more: once for each. A replay writes no log.
func (c *continuous) publishFailing(ctx workflow.Context) error {
	failing := c.ConsecutiveFailures > 0
	if failing != c.FailingSince.IsZero() {
		return nil
	}
	logger := workflow.GetLogger(ctx)
	var memo contract.Failing
	switch {
	case failing:
		memo = c.latestFailure()
		if memo.Since.IsZero() {
			memo.Since = workflow.Now(ctx)
		}
		c.FailingSince = memo.Since
		logger.Error("the continuous job is failing", "alert", alertFailing,
			"JobID", c.Job.ID, "Failures", c.ConsecutiveFailures, "LastError", c.LastError)
	case c.LastSuccess.After(c.FailingSince):
		logger.Info("the continuous job has recovered", "alert", alertRecovered,
			"JobID", c.Job.ID, "FailingSince", c.FailingSince)
		c.FailingSince = time.Time{}
	default:
		logger.Info("the failures of the continuous job are forgotten: it was resumed or has a new definition",
			"JobID", c.Job.ID, "FailingSince", c.FailingSince)
		c.FailingSince = time.Time{}
	}
	if err := workflow.UpsertMemo(ctx, map[string]any{contract.MemoFailing: memo}); err != nil {
		return fmt.Errorf("publish that job %s fails: %w", c.Job.ID, err)
	}
	return nil
}

// Values of the attribute alert of log lines.
const (
	alertFailing   = "failing"
	alertRecovered = "recovered"
)

// latestFailure is the latest iteration that failed, if the state remembers it.
func (c *continuous) latestFailure() contract.Failing {
	for _, it := range slices.Backward(c.Recent) {
		if it.Error != "" {
			return contract.Failing{Failing: true, Since: it.End(), Class: it.Class, Error: it.Error}
		}
	}
	return contract.Failing{Failing: true}
}
