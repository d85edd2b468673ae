package temporalclient

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/job"
)

// awaitLooks spaces the looks at a run that is awaited: each costs the server a read.
var awaitLooks = job.Backoff{Initial: job.Duration(time.Second), Max: job.Duration(10 * time.Second), Coefficient: 1.5}

// errRunEnded is why the wait for a history was broken off.
var errRunEnded = errors.New("the run has ended")

// Await waits until a run of a workflow has ended, and decodes its result into what
// into points to, unless that is nil. Its errors are those of client.WorkflowRun.Get.
// A run id "" is the current run, and a run that continues as new goes on.
//
// Under load the server's long poll for history misses the end of one run in some
// hundred, and answers up to 20 seconds later. So Await also looks at the run, first
// after a second, then further and further apart, and at least every ten seconds.
func Await(ctx context.Context, c client.Client, workflowID, runID string, into any) error {
	for looks := 0; ; {
		polling, stop := context.WithCancelCause(ctx)
		looked := make(chan struct{})
		go func() {
			defer close(looked)
			looks = lookForEnd(polling, c, workflowID, runID, looks)
			stop(errRunEnded)
		}()
		err := c.GetWorkflow(polling, workflowID, runID).Get(polling, into)
		stop(nil)
		<-looked
		if err == nil || !errors.Is(context.Cause(polling), errRunEnded) {
			return err
		}
	}
}

// lookForEnd looks at a run until it has ended or ctx ends, and counts the looks on.
func lookForEnd(ctx context.Context, c client.Client, workflowID, runID string, looks int) int {
	for {
		looks++
		select {
		case <-time.After(awaitLooks.Wait(looks)):
		case <-ctx.Done():
			return looks
		}
		described, err := c.DescribeWorkflowExecution(ctx, workflowID, runID)
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) || described.GetWorkflowExecutionInfo().GetCloseTime() != nil {
			return looks
		}
	}
}
