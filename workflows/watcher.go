package workflows

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
)

// ActivityRegistry is the part of a Temporal worker that registers activities.
type ActivityRegistry interface {
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
}

// RegisterActivities registers the activities that workers of every type serve on
// QueuesTaskQueue. They need the client of their worker.
func RegisterActivities(r ActivityRegistry) {
	r.RegisterActivityWithOptions(newWatcher(maxWatched).WatchRun, activity.RegisterOptions{Name: contract.WatchRunActivity})
	r.RegisterActivityWithOptions(ReadPage, activity.RegisterOptions{Name: contract.ReadPageActivity})
	r.RegisterActivityWithOptions((&chooser{}).ChooseService, activity.RegisterOptions{Name: contract.ChooseServiceActivity})
}

// MaxActivities is how many of the activities of [RegisterActivities] a process
// carries out at once.
const MaxActivities = 1000

// maxWatched is how many of them may be those that watch runs: each lasts as long as
// its run, and a run that looks for a service must not wait for that.
const maxWatched = MaxActivities * 3 / 4

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
func (w *watcher) WatchRun(ctx context.Context, in WatchRunInput) error {
	select {
	case w.places <- struct{}{}:
		defer func() { <-w.places }()
		return WatchRun(ctx, in)
	default:
	}
	described, err := activity.GetClient(ctx).DescribeWorkflowExecution(ctx, in.WorkflowID, in.RunID)
	var gone *serviceerror.NotFound
	switch {
	case err != nil && !errors.As(err, &gone):
		return fmt.Errorf("look at run %s of %s: %w", in.RunID, in.WorkflowID, err) // Tried again.
	case described.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return temporal.NewApplicationErrorWithOptions("the run is under way, and is looked at again", errorTypeStillRuns, temporal.ApplicationErrorOptions{
			NextRetryDelay: watchAgain, Category: temporal.ApplicationErrorCategoryBenign,
		})
	}
	return WatchRun(ctx, in) // It has ended, or is not there: this takes no time.
}
