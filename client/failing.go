package client

import (
	"context"
	"fmt"
	"slices"
	"strings"

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

// addFailing notes which recurring jobs are failing. It lists runs: one call for the runs
// of many jobs, and another one if some of them have failed.
func (c *conn) addFailing(ctx context.Context, rows map[string]JobRow, latest latestRuns) error {
	found, err := c.failing(ctx, latest)
	for id, failing := range found {
		row := rows[id]
		row.showAs(failing)
		rows[id] = row
	}
	return err
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
	found, err := c.failing(ctx, latest)
	return found[live.Job.ID], err
}

// failing finds the jobs that are failing: the latest of their runs that has ended, and
// that was not terminated, has left failures. Runs that did not complete leave those
// before them.
func (c *conn) failing(ctx context.Context, latest latestRuns) (map[string]*contract.Failing, error) {
	var ids []string
	for _, runs := range latest {
		ids = append(ids, runs.ids...)
	}
	ended, err := c.runsByID(ctx, ids, "ExecutionStatus IN ('Failed', 'Canceled')")
	if err != nil {
		return nil, err
	}
	failing := map[string]*contract.Failing{}
	later := map[string][]string{} // The runs after that one, by job.
	ids = nil
	for id, runs := range latest {
		n := slices.IndexFunc(runs.ids, func(run string) bool { return ended[run] != nil })
		if n < 0 {
			continue
		}
		if f := failingEnd(ended[runs.ids[n]], runs.definition); f != nil {
			failing[id], later[id] = f, runs.ids[:n]
			ids = append(ids, runs.ids[:n]...)
		}
	}
	completed, err := c.runsByID(ctx, ids, "ExecutionStatus = 'Completed'")
	for id, runs := range later {
		if slices.ContainsFunc(runs, func(run string) bool { return completed[run] != nil }) {
			delete(failing, id)
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
	for some := range slices.Chunk(ids, maxIDs) {
		query := fmt.Sprintf("%s AND RunId IN ('%s')", matching, strings.Join(some, "', '"))
		if err := c.listWorkflows(ctx, query, 0, func(info *workflowpb.WorkflowExecutionInfo) {
			runs[info.GetExecution().GetRunId()] = info
		}); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// progresses says that the run under way, or the iteration, has reported that something
// is done.
func (d *RunDetail) progresses() bool { return d.Progress != nil && d.Progress.Done > 0 }

// Progresses says that the present iteration of a continuous job has reported that
// something is done: then the job is not failing any more, whatever the iterations before
// were.
func (c *JobClient) Progresses(ctx context.Context, jobID string) (bool, error) {
	id := contract.JobWorkflowID(jobID)
	response, err := c.temporal.DescribeWorkflowExecution(ctx, id, "")
	switch {
	case isNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("describe workflow %s: %w", id, ofServer(ctx, err))
	}
	detail := RunDetail{Run: Run{Status: RunRunning}}
	detail.addPending(response)
	return detail.progresses(), nil
}
