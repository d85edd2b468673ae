package workers

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
)

// EndPause resumes a recurring job if its pause is the one that ends. A job that is there no more
// needs nothing.
func EndPause(ctx context.Context, in contract.EndPauseInput) error {
	resumed, err := client.New(activity.GetClient(ctx), activity.GetInfo(ctx).Namespace).Jobs.EndPause(ctx, in.JobID, in.End)
	if errors.Is(err, client.ErrNotFound) {
		err = nil
	}
	activity.GetLogger(ctx).Info("the pause of a job has ended", "job_id", in.JobID, "resumed", resumed)
	return err
}
