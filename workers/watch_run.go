package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// WatchRun waits until a run has ended. It succeeds if the run completed, fails
// for good if it was canceled, failed, was cut off from its handler or deleted, and is tried again for
// every other reason. The details of the error of a run that failed are an
// ActivityOutput with its cursor.
func WatchRun(ctx context.Context, in contract.WatchRunInput) error {
	done := make(chan error, 1)
	go func() {
		done <- temporalclient.Await(ctx, activity.GetClient(ctx), in.WorkflowID, in.RunID, nil)
	}()
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			activity.RecordHeartbeat(ctx)
		case <-activity.GetWorkerStopChannel(ctx):
			return errors.New("the worker that watched the run shuts down")
		case err := <-done:
			return watched(in, err)
		}
	}
}

func watched(in contract.WatchRunInput, err error) error {
	var notFound *serviceerror.NotFound
	var execution *temporal.WorkflowExecutionError
	switch {
	case err == nil:
		return nil
	case temporal.IsCanceledError(err):
		return temporal.NewNonRetryableApplicationError("the run was canceled", contract.ErrorTypeRunCanceled, nil)
	case errors.As(err, &notFound):
		// Someone deleted it: its handler hears of that no sooner than of a termination.
		return temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("run %s of %s is not there any more", in.RunID, in.WorkflowID), contract.ErrorTypeRunCutOff, nil)
	case contract.EndedWithoutHandler(err):
		return temporal.NewNonRetryableApplicationError(contract.ErrorReason(err), contract.ErrorTypeRunCutOff, nil)
	case errors.As(err, &execution):
		// The queue reads the cursor from it, as from the error of the run itself.
		last := contract.LastOutput(err)
		return temporal.NewNonRetryableApplicationError(contract.ErrorReason(err), contract.ErrorTypeRunFailed, nil,
			contract.ActivityOutput{Worker: last.Worker, Result: job.Result{Cursor: last.Result.Cursor}})
	}
	return err
}

// maxWatched is how many of them may be those that watch runs: each lasts as long as
// its run, and a run that looks for a service must not wait for that.
const maxWatched = maxActivities * 3 / 4

// watchAgain is how far apart a run is looked at that no process has room to watch.
const watchAgain = 5 * time.Second

// errorTypeStillRuns is the type of the error of a look at a run that is under way.
const errorTypeStillRuns = "StillRuns"

// watcher serves WatchRunActivity with a bound on the runs that are watched at once.
type watcher struct{ places chan struct{} }

func newWatcher(places int) *watcher { return &watcher{make(chan struct{}, places)} }

// WatchRun is [WatchRun] if there is room to watch another run. If not, the run is
// looked at: while it is under way the attempt fails and says when to look again, so
// that it holds no place and spends no history.
func (w *watcher) WatchRun(ctx context.Context, in contract.WatchRunInput) error {
	select {
	case w.places <- struct{}{}:
		defer func() { <-w.places }()
		return WatchRun(ctx, in)
	default:
	}
	described, err := activity.GetClient(ctx).DescribeWorkflowExecution(ctx, in.WorkflowID, in.RunID)
	var notFound *serviceerror.NotFound
	switch {
	case err != nil && !errors.As(err, &notFound):
		return fmt.Errorf("look at run %s of %s: %w", in.RunID, in.WorkflowID, err) // Tried again.
	case described.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return temporal.NewApplicationErrorWithOptions("the run is under way, and is looked at again", errorTypeStillRuns, temporal.ApplicationErrorOptions{
			NextRetryDelay: watchAgain, Category: temporal.ApplicationErrorCategoryBenign,
		})
	}
	return WatchRun(ctx, in) // It has ended, or is not there: this takes no time.
}
