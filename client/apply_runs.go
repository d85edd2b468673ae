package client

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// ScheduledRuns are runs of a recurring job that are under way.
type ScheduledRuns struct {
	JobID string
	runs  []*commonpb.WorkflowExecution
	grace time.Duration // of the job's handler
}

// RunsLeft finds the runs under way of recurring jobs of a provider, by job, but for those
// of jobs to keep. One that began within the last second may be missing.
func (c *ApplyClient) RunsLeft(ctx context.Context, provider job.Provider, keep func(jobID string) bool) ([]ScheduledRuns, error) {
	byJob := map[string]*ScheduledRuns{}
	query := openScheduledRuns + " AND " + contract.AttributeProvider.GetName() + " = " + quote(string(provider))
	err := c.eachWorkflow(ctx, query, 0, func(info *workflowpb.WorkflowExecutionInfo) error {
		id := temporalclient.Attribute(info.GetSearchAttributes(), contract.AttributeJobID.GetName())
		if keep(id) {
			return nil
		}
		if byJob[id] == nil {
			byJob[id] = &ScheduledRuns{JobID: id}
		}
		of := byJob[id]
		of.runs = append(of.runs, info.GetExecution())
		if j, ok := temporalclient.MemoDefinition(info.GetMemo()); ok {
			of.grace = max(of.grace, j.Options.StopGracePeriod.Std())
		}
		return nil
	})
	var list []ScheduledRuns
	for _, id := range slices.Sorted(maps.Keys(byJob)) {
		of := byJob[id]
		of.runs = slices.DeleteFunc(of.runs, func(run *commonpb.WorkflowExecution) bool { return c.hasEnded(ctx, run) })
		if len(of.runs) > 0 {
			list = append(list, *of)
		}
	}
	return list, err
}

// hasEnded reports whether a run that a list shows as open has ended since.
func (c *conn) hasEnded(ctx context.Context, run *commonpb.WorkflowExecution) bool {
	description, err := c.temporal.DescribeWorkflowExecution(ctx, run.GetWorkflowId(), run.GetRunId())
	return isNotFound(err) ||
		err == nil && description.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// Runs are those that were under way when a schedule was described.
func (l *Live) Runs() ScheduledRuns {
	return ScheduledRuns{JobID: l.Job.ID, runs: l.Schedule.GetInfo().GetRunningWorkflows(), grace: l.Job.Options.StopGracePeriod.Std()}
}

// StopRuns cancels runs, and waits until they have ended: their handlers have their grace
// period.
func (c *ApplyClient) StopRuns(ctx context.Context, of ScheduledRuns) error {
	ctx, cancel := context.WithTimeout(ctx, of.grace+contract.MaxReturnGrace+10*time.Second)
	defer cancel()
	return temporalclient.Each(len(of.runs), temporalclient.CallLimit, func(i int) error { return c.stopRun(ctx, of.runs[i]) })
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
