package workers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// call runs the handler, unless the run of an earlier start is still at work: then the
// run does nothing.
//
// A Schedule with the overlap policy skip starts no run while it knows of one. But a
// server that hangs or dies between starting a run and noting it forgets that run.
func (h *host) call(ctx context.Context, t job.Type, r *run) (job.Result, error) {
	start, err := h.earlierRun(ctx, r)
	switch {
	case err != nil:
		return job.Result{}, err
	case start.IsZero():
		if err := h.checkSpec(r.Job()); err != nil {
			return job.Result{}, err
		}
		return r.callSafely(ctx, t)
	}
	r.mu.Lock()
	r.supersededBy = start
	r.mu.Unlock()
	return job.Result{Message: "nothing done: the run of the start of " + start.Format(time.RFC3339) + " was still at work"}, nil
}

// earlierRun is the start of the run that its Schedule started before this one, if that
// run is still at work; else zero. Of a run that did nothing itself, it is the one that
// this gave way to.
func (h *host) earlierRun(ctx context.Context, r *run) (time.Time, error) {
	for _, start := range r.earlierStarts(activity.GetInfo(ctx).WorkflowExecution.ID) {
		found, err := h.runOf(ctx, r, start)
		if found == nil && err == nil {
			continue
		}
		for by := supersededBy(found); err == nil && by.Before(start) && !by.IsZero(); by = supersededBy(found) {
			start = by
			found, err = h.runOf(ctx, r, start)
		}
		if err == nil && found.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return start, nil
		}
		return time.Time{}, err
	}
	return time.Time{}, nil
}

// runOf looks for the run of a start, nil if there is none. While Temporal does not
// answer it asks again: the error is that of a run which was asked to stop, or has ended.
func (h *host) runOf(ctx context.Context, r *run, start time.Time) (*workflowpb.WorkflowExecutionInfo, error) {
	for {
		described, err := h.client.DescribeWorkflowExecution(ctx, contract.ScheduledRunID(r.input.Job.ID, start), "")
		var notFound *serviceerror.NotFound
		switch {
		case err == nil:
			return described.GetWorkflowExecutionInfo(), nil
		case errors.As(err, &notFound):
			return nil, nil //nolint:nilnil // As documented.
		}
		r.logger.Warn("the run of an earlier start cannot be looked for", "start", start, "error", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-r.Stopping():
			return nil, job.ErrStopped
		case <-time.After(time.Second):
		}
	}
}

// supersededBy is the start that a run gave way to, zero if it did not.
func supersededBy(run *workflowpb.WorkflowExecutionInfo) time.Time {
	var end contract.RunEnd
	payload, ok := run.GetMemo().GetFields()[contract.MemoEnd]
	if !ok || converter.GetDefaultDataConverter().FromPayload(payload, &end) != nil {
		return time.Time{}
	}
	return end.SupersededBy
}

// The earlier starts that a run looks at: so many, as far as they lie within a time.
// Starts that had no run lie between them: skipped ones, or those of an outage.
const (
	earlierStarts = 60
	earlierWithin = 62 * 24 * time.Hour
)

// earlierStarts are the starts of the job before that of the run, the last one first;
// none if it is not a run of a Schedule that skips starts.
func (r *run) earlierStarts(workflowID string) []time.Time {
	recurring := r.input.Job.Recurring
	if recurring == nil || recurring.OverlapPolicy() != job.OverlapSkip {
		return nil
	}
	text, scheduled := strings.CutPrefix(workflowID, contract.JobWorkflowID(r.input.Job.ID)+"-")
	own, err := time.Parse(time.RFC3339, text)
	if !scheduled || err != nil {
		return nil
	}
	times, err := recurring.Times(r.input.Job.ID)
	if err != nil {
		return nil
	}
	var starts []time.Time
	for within := earlierStarts * recurring.Period().Std(); len(starts) < earlierStarts; within *= 8 {
		starts = nil
		for at := range times.After(own.Add(-min(within, earlierWithin) - time.Second)) {
			if !at.Before(own) {
				break
			}
			starts = append(starts, at)
		}
		if within >= earlierWithin {
			break
		}
	}
	slices.Reverse(starts)
	return starts[:min(len(starts), earlierStarts)]
}
