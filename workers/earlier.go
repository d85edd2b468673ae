package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// earlierStarts is how many starts before its own a run looks at.
const earlierStarts = 10

// call runs the handler, unless the run of an earlier start has not ended yet: then the
// run waits for that and does nothing.
//
// A Schedule with the overlap policy skip starts no run while it knows of one. But a
// server that hangs or dies between starting a run and noting it forgets that run.
func (h *host) call(ctx context.Context, t job.Type, r *run) (job.Result, error) {
	start, err := h.awaitEarlierRun(ctx, r)
	switch {
	case err != nil:
		return job.Result{}, err
	case start.IsZero():
		return r.callSafely(ctx, t)
	}
	r.mu.Lock()
	r.supersededBy = start
	r.mu.Unlock()
	return job.Result{Message: "nothing done: the run of the start of " + start.Format(time.RFC3339) + " was still at work"}, nil
}

// awaitEarlierRun waits until no run of an earlier start is at work. It returns the
// start of the last one that it has waited for, zero if there was none.
func (h *host) awaitEarlierRun(ctx context.Context, r *run) (waited time.Time, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-r.Stopping():
			cancel(job.ErrStopped)
		case <-ctx.Done():
		}
	}()
	for {
		start, err := h.earlierRun(ctx, r)
		if err == nil && !start.IsZero() {
			r.logger.Warn("the run of an earlier start is still at work and is waited for", "start", start)
			err = workflows.Await(ctx, h.client, workflows.ScheduledRunID(r.input.Job.ID, start), "", nil)
			if _, ended := errors.AsType[*temporal.WorkflowExecutionError](err); ended {
				err = nil // However it ended.
			}
			waited = start
		}
		switch {
		case ctx.Err() != nil:
			return waited, context.Cause(ctx)
		case err != nil:
			return waited, fmt.Errorf("look for an earlier run of job %s: %w", r.input.Job.ID, err)
		case start.IsZero():
			return waited, nil
		}
	}
}

// earlierRun is the start of the latest run that its Schedule started before this one,
// if that run is still at work; else zero.
func (h *host) earlierRun(ctx context.Context, r *run) (time.Time, error) {
	for _, start := range r.earlierStarts(activity.GetInfo(ctx).WorkflowExecution.ID) {
		described, err := h.client.DescribeWorkflowExecution(ctx, workflows.ScheduledRunID(r.input.Job.ID, start), "")
		var none *serviceerror.NotFound
		switch {
		case errors.As(err, &none):
			continue
		case err != nil:
			return time.Time{}, err
		case described.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
			return start, nil
		}
		break
	}
	return time.Time{}, nil
}

// earlierStarts are the starts of the job before that of the run, the last one first;
// none if it is not a run of a Schedule that skips starts.
func (r *run) earlierStarts(workflowID string) []time.Time {
	recurring := r.input.Job.Recurring
	if recurring == nil || recurring.OverlapPolicy() != job.OverlapSkip {
		return nil
	}
	text, scheduled := strings.CutPrefix(workflowID, workflows.JobWorkflowID(r.input.Job.ID)+"-")
	own, err := time.Parse(time.RFC3339, text)
	if !scheduled || err != nil {
		return nil
	}
	times, err := recurring.Times(r.input.Job.ID)
	if err != nil {
		return nil
	}
	var starts []time.Time
	for at := range times.After(own.Add(-earlierStarts*recurring.Period().Std() - time.Second)) {
		if !at.Before(own) {
			break
		}
		starts = append(starts, at)
	}
	slices.Reverse(starts)
	return starts
}
