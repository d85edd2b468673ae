package client

import (
	"context"
	"errors"
	"fmt"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// RunPlace is where a list of runs goes on. The zero value is its beginning.
type RunPlace struct {
	// Server is Temporal's page, and Skip how many runs of it were looked at before.
	Server []byte `json:"server,omitempty"`
	Skip   int    `json:"skip,omitempty"`
	// Iteration is the number of the last iteration that was listed.
	Iteration int64 `json:"iteration,omitempty"`
}

// RunPage is a part of a list of runs.
type RunPage struct {
	Runs []Run
	// Next is where the list goes on, nil at its end.
	Next *RunPlace
}

// ErrPlace says that a place is not one of the list.
var ErrPlace = errors.New("it is not a place in this list")

const (
	// maxPageRuns bounds the runs of a page.
	maxPageRuns = 1000
	// maxPageCalls bounds the pages of Temporal that are looked through for one page.
	maxPageCalls = 10
)

// Page lists some of the runs that [RunClient.List] lists: from a place on, up to size of
// them, at most 1000. Keep, if it is set, says which runs count besides the filter, whose
// limit does not. A page may have fewer runs, or none, though the list goes on.
func (c *RunClient) Page(ctx context.Context, filter RunFilter, keep func(Run) bool, from RunPlace, size int) (RunPage, error) {
	size = min(max(size, 1), maxPageRuns)
	if keep == nil {
		keep = func(Run) bool { return true }
	}
	if filter.JobID != "" && (filter.Mode == "" || filter.Mode == job.ModeContinuous) {
		live, err := c.jobs().LiveWorkflow(ctx, filter.JobID)
		if err != nil && !errors.Is(err, ErrNotOurs) {
			return RunPage{}, err
		}
		if live != nil && live.Workflow.Type == contract.ContinuousJobType {
			return c.iterationPage(ctx, live, filter, keep, from, size)
		}
	}
	page := RunPage{}
	for range maxPageCalls {
		response, err := c.temporal.ListWorkflow(ctx, listRequest(c.namespace, filter.query(), from.Server, maxPageRuns))
		if err != nil && len(from.Server) > 0 && isInvalid(err) {
			return RunPage{}, fmt.Errorf("%w: %w", ErrPlace, err)
		}
		if err != nil {
			return RunPage{}, fmt.Errorf("list workflows: %w", ofServer(ctx, err))
		}
		found := response.GetExecutions()
		for n := min(from.Skip, len(found)); n < len(found); n++ {
			if len(page.Runs) == size {
				page.Next = &RunPlace{Server: from.Server, Skip: n}
				return page, nil
			}
			if run, ok := filter.take(found[n]); ok && keep(run) {
				page.Runs = append(page.Runs, run)
			}
		}
		if len(response.GetNextPageToken()) == 0 {
			return page, nil
		}
		from = RunPlace{Server: response.GetNextPageToken()}
		if len(page.Runs) == size {
			break
		}
	}
	page.Next = &from
	return page, nil
}

// take is the run of a workflow that a query has found, if it matches.
func (f RunFilter) take(info *workflowpb.WorkflowExecutionInfo) (Run, bool) {
	run := newRun(info)
	return run, !f.needsLook() || f.matches(run, info)
}

func (c *conn) iterationPage(ctx context.Context, live *Live, filter RunFilter, keep func(Run) bool, from RunPlace, size int) (RunPage, error) {
	filter.Limit = 0
	all, err := c.iterations(ctx, live, filter)
	page := RunPage{}
	for _, run := range all {
		if from.Iteration > 0 && run.Iteration >= from.Iteration || !keep(run) {
			continue
		}
		if len(page.Runs) == size {
			page.Next = &RunPlace{Iteration: page.Runs[size-1].Iteration}
			break
		}
		page.Runs = append(page.Runs, run)
	}
	return page, err
}
