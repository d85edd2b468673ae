package client

import (
	"context"
	"errors"
	"fmt"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// RunPlace is where a list of runs goes on. The zero value is its beginning.
type RunPlace struct {
	// Server is Temporal's own place. Runs that begin meanwhile do not shift it.
	Server []byte `json:"server,omitempty"`
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
// limit does not. A page may have fewer runs, or none, though the list goes on. Those under
// way have their progress, see [RunClient.AddProgress].
func (c *RunClient) Page(ctx context.Context, filter RunFilter, keep func(Run) bool, from RunPlace, size int) (RunPage, error) {
	page, err := c.page(ctx, filter, keep, from, size)
	if err == nil && !filter.asksHowOpen() {
		err = c.AddProgress(ctx, page.Runs)
	}
	return page, err
}

func (c *RunClient) page(ctx context.Context, filter RunFilter, keep func(Run) bool, from RunPlace, size int) (RunPage, error) {
	size = min(max(size, 1), maxPageRuns)
	if filter.JobID != "" && (filter.Mode == "" || filter.Mode == job.ModeContinuous) {
		live, err := c.jobs().LiveWorkflow(ctx, filter.JobID)
		if err != nil && !errors.Is(err, ErrNotOurs) {
			return RunPage{}, err
		}
		if live != nil && live.Workflow.Type == contract.ContinuousJobType {
			return c.iterationPage(ctx, live, filter, keep, from, size)
		}
	}
	look := filter.needsLook() || keep != nil
	page := RunPage{}
	if filter.impossible() {
		return page, nil
	}
	for range maxPageCalls {
		left := size - len(page.Runs)
		limit := left
		switch {
		case filter.asksHowOpen():
			limit = MaxLooks
		case look:
			limit = maxPageRuns
		}
		var runs []Run
		var next []byte
		// Temporal's place is at the end of what it was asked for: where that is too much, it
		// is asked for less.
		for limit > 0 {
			response, err := c.runPage(ctx, filter, from, limit)
			if err != nil {
				return RunPage{}, err
			}
			next = response.GetNextPageToken()
			found, err := c.found(ctx, filter, response.GetExecutions())
			if err != nil {
				return RunPage{}, err
			}
			runs, limit = filter.takeSome(found, keep, left)
		}
		page.Runs = append(page.Runs, runs...)
		if len(next) == 0 {
			return page, nil
		}
		if from = (RunPlace{Server: next}); len(page.Runs) == size {
			break
		}
	}
	page.Next = &from
	return page, nil
}

// runPage is a page of Temporal. It is asked without the SDK, which would try again, until there
// is no more time, what comes of a place that Temporal cannot read.
func (c *conn) runPage(ctx context.Context, filter RunFilter, from RunPlace, limit int) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	response, err := read(ctx, c, c.temporal.WorkflowService().ListWorkflowExecutions, listRequest(c.namespace, filter.query(), from.Server, limit))
	if err != nil && len(from.Server) > 0 && isUnreadable(err) {
		return nil, fmt.Errorf("%w: %w", ErrPlace, err)
	}
	if err != nil {
		return nil, fmt.Errorf("list workflows: %w", err)
	}
	return response, nil
}

// takeSome are the runs that match among those that a query has found. If more than most
// could be, limit is how many of the found have so many; else it is 0.
func (f RunFilter) takeSome(found []foundRun, keep func(Run) bool, most int) (runs []Run, limit int) {
	for n, is := range found {
		if len(runs) == most {
			return nil, n
		}
		if (!f.needsLook() || f.matches(is.Run, is.info)) && (keep == nil || keep(is.Run)) {
			runs = append(runs, is.Run)
		}
	}
	return runs, 0
}

// foundRun is a run that a query has found.
type foundRun struct {
	Run
	info *workflowpb.WorkflowExecutionInfo
}

// found are the runs of workflows that a query has found. Those under way are looked at if the
// filter asks for more than that.
func (c *RunClient) found(ctx context.Context, filter RunFilter, list []*workflowpb.WorkflowExecutionInfo) ([]foundRun, error) {
	runs := make([]Run, len(list))
	for n, info := range list {
		runs[n] = newRun(info)
	}
	if filter.asksHowOpen() {
		if err := c.AddProgress(ctx, runs); err != nil {
			return nil, err
		}
	}
	found := make([]foundRun, len(list))
	for n, info := range list {
		found[n] = foundRun{runs[n], info}
	}
	return found, nil
}

func (c *conn) iterationPage(ctx context.Context, live *Live, filter RunFilter, keep func(Run) bool, from RunPlace, size int) (RunPage, error) {
	filter.Limit = 0
	all, err := c.iterations(ctx, live, filter)
	page := RunPage{}
	for _, run := range all {
		if from.Iteration > 0 && run.Iteration >= from.Iteration || keep != nil && !keep(run) {
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
