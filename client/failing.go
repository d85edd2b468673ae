package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// latestRuns are the latest runs of recurring jobs, by job, as their Schedules know
// them.
type latestRuns map[string]scheduledRuns

// scheduledRuns are runs that a Schedule has started.
type scheduledRuns struct {
	// latest is the run id of the latest run.
	latest string
	// definition is the hash of the definition in force.
	definition string
	// ids are the run ids since the latest run that is known to have completed, the
	// latest first. A Schedule learns late how a run has ended.
	ids []string
}

func (l latestRuns) add(jobID, definition string, actions []*schedulepb.ScheduleActionResult) {
	runs := scheduledRuns{definition: definition}
	if n := len(actions); n > 0 {
		runs.latest = actions[n-1].GetStartWorkflowResult().GetRunId()
	}
	for _, action := range slices.Backward(actions) {
		if action.GetStartWorkflowStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			break
		}
		runs.ids = append(runs.ids, action.GetStartWorkflowResult().GetRunId())
	}
	if l != nil && runs.latest != "" {
		l[jobID] = runs
	}
}

// eachLatest goes through the latest run of each job that has the definition in force.
func (c *conn) eachLatest(ctx context.Context, latest latestRuns, visit func(*workflowpb.WorkflowExecutionInfo)) error {
	var ids []string
	definitions := map[string]string{}
	for _, runs := range latest {
		ids = append(ids, runs.latest)
		definitions[runs.latest] = runs.definition
	}
	found, err := c.runsByID(ctx, ids, "WorkflowType = "+quote(contract.RunJobType))
	for id, info := range found {
		if definitionHashOf(info.GetSearchAttributes()) == definitions[id] {
			visit(info)
		}
	}
	return err
}

// failingSchedule gives the failures in a row of a recurring job, nil if there are none.
func (c *conn) failingSchedule(ctx context.Context, live *Live) (*contract.Failing, error) {
	latest := latestRuns{}
	latest.add(live.Job.ID, live.DefinitionHash, live.Schedule.GetInfo().GetRecentActions())
	found, err := c.failing(ctx, latest, func(SeenRun) {})
	return found[live.Job.ID], err
}

// failing finds the jobs that are failing, see [LatestEnd]: those of which a run that has
// failed, or was canceled, has left failures, and no run since has completed. It visits the
// runs since the latest that is known to have completed.
func (c *conn) failing(ctx context.Context, latest latestRuns, visit func(SeenRun)) (map[string]*contract.Failing, error) {
	var ids []string
	for _, runs := range latest {
		ids = append(ids, runs.ids...)
	}
	found, err := c.runsByID(ctx, ids, "WorkflowType = "+quote(contract.RunJobType))
	if err != nil {
		return nil, err
	}
	failed := map[string]SeenRun{}
	for id, info := range found {
		run := newSeenRun(info)
		visit(run)
		switch info.GetStatus() {
		case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
			failed[id] = run
		}
	}
	ends := map[string]*LatestEnd{}
	var since time.Time
	for id, runs := range latest {
		n := slices.IndexFunc(runs.ids, func(run string) bool { return failed[run].JobID != "" })
		if n < 0 {
			continue
		}
		end := &LatestEnd{}
		end.Take(failed[runs.ids[n]])
		if end.Failing(runs.definition) != nil {
			if ends[id] = end; since.IsZero() || end.opened.Before(since) {
				since = end.opened
			}
		}
	}
	failing := map[string]*contract.Failing{}
	completed := fmt.Sprintf("WorkflowType = %s AND ExecutionStatus = 'Completed' AND StartTime >= %s AND %s IN",
		quote(contract.RunJobType), quote(since.UTC().Format(time.RFC3339Nano)), contract.AttributeJobID.GetName())
	err = c.listByIDs(ctx, completed, slices.Collect(maps.Keys(ends)), func(info *workflowpb.WorkflowExecutionInfo) {
		run := newSeenRun(info)
		ends[run.JobID].Take(run)
	})
	for id, end := range ends {
		if f := end.Failing(latest[id].definition); f != nil {
			failing[id] = f
		}
	}
	return failing, err
}

// failingEnd is what a run of a definition has left of failures, nil if it left none.
func failingEnd(info *workflowpb.WorkflowExecutionInfo, definition string) *contract.Failing {
	if temporalclient.Attribute(info.GetSearchAttributes(), contract.AttributeDefinitionHash.GetName()) != definition {
		return nil
	}
	var end contract.RunEnd
	if !temporalclient.MemoField(info.GetMemo(), contract.MemoEnd, &end) {
		return nil
	}
	return end.Failing
}

// maxIDs bounds the run ids of one query.
const maxIDs = 500

// runsByID lists the runs among those with the ids that match, by run id.
func (c *conn) runsByID(ctx context.Context, ids []string, matching string) (map[string]*workflowpb.WorkflowExecutionInfo, error) {
	runs := map[string]*workflowpb.WorkflowExecutionInfo{}
	return runs, c.listByIDs(ctx, matching+" AND RunId IN", ids, func(info *workflowpb.WorkflowExecutionInfo) {
		runs[info.GetExecution().GetRunId()] = info
	})
}

// listByIDs goes through the workflows that a query finds, which ends with the operator IN.
func (c *conn) listByIDs(ctx context.Context, query string, ids []string, visit func(*workflowpb.WorkflowExecutionInfo)) error {
	for some := range slices.Chunk(ids, maxIDs) {
		quoted := make([]string, len(some))
		for n, id := range some {
			quoted[n] = quote(id)
		}
		if err := c.listWorkflows(ctx, fmt.Sprintf("%s (%s)", query, strings.Join(quoted, ", ")), 0, visit); err != nil {
			return err
		}
	}
	return nil
}
