package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
)

// EndPause resumes a recurring job. It is started for the end of the pause, and tries until the
// job is resumed, or has another pause, or is there no more.
func EndPause(ctx workflow.Context, in contract.EndPauseInput) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{MaximumInterval: time.Minute},
		Summary:             in.JobID,
	})
	return workflow.ExecuteActivity(ctx, contract.EndPauseActivity, in).Get(ctx, nil)
}
