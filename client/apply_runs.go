package client

import (
	"context"
	"errors"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/parallel"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// StopScheduledRuns cancels the runs that were under way when a schedule was described,
// and waits until they have ended: their handlers have their grace period.
func (c *ApplyClient) StopScheduledRuns(ctx context.Context, live *Live) error {
	running := live.Schedule.GetInfo().GetRunningWorkflows()
	ctx, cancel := context.WithTimeout(ctx, live.Job.Options.StopGracePeriod.Std()+contract.MaxReturnGrace+10*time.Second)
	defer cancel()
	return parallel.Each(len(running), parallel.Limit, func(i int) error { return c.stopRun(ctx, running[i]) })
}

func (c *conn) stopRun(ctx context.Context, run *commonpb.WorkflowExecution) error {
	err := c.temporal.CancelWorkflow(ctx, run.GetWorkflowId(), run.GetRunId())
	if isNotFound(err) {
		return nil // It has ended.
	}
	if err != nil {
		return explain("stop run "+run.GetWorkflowId(), err)
	}
	err = temporalclient.Await(ctx, c.temporal, run.GetWorkflowId(), run.GetRunId(), nil)
	var ended *temporal.WorkflowExecutionError
	switch {
	case err == nil, errors.As(err, &ended), isNotFound(err):
		return nil // However it ended.
	case unanswered(err):
		return stateErrorf("run %s was told to stop and has not ended yet", run.GetWorkflowId())
	}
	return err
}
