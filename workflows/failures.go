package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
)

// A Schedule hands each of its runs the error of the latest run that failed, unless
// one has completed since: runs that were canceled or terminated change nothing. So a
// failed run counts the failures in a row, and passes the count on in the details of
// its error: a Failing, and the hash of the definition that failed.

// ownDefinitionHash is the hash that marks the run. It is not computed anew: another
// version of the program might find another one when it replays the run.
func ownDefinitionHash(ctx workflow.Context) string {
	hash, _ := workflow.GetTypedSearchAttributes(ctx).GetKeyword(contract.AttributeDefinitionHash)
	return hash
}

// failingBefore is the failures in a row before a run of a Schedule. It is nil if there
// are none, or none of the same definition.
func failingBefore(ctx workflow.Context) *contract.Failing {
	var app *temporal.ApplicationError
	if !errors.As(workflow.GetLastError(ctx), &app) || !app.HasDetails() {
		return nil
	}
	var before contract.Failing
	var hash string
	if app.Details(&before, &hash) != nil || !before.Failing || hash != ownDefinitionHash(ctx) {
		return nil
	}
	return &before
}

// heldUntil is the next run of a failing job if the run starts before it, and was not
// triggered by someone; else it is zero.
func (r *run) heldUntil(ctx workflow.Context) time.Time {
	if r.failing == nil || r.failing.NextRun.IsZero() {
		return time.Time{}
	}
	due, scheduled := workflow.GetTypedSearchAttributes(ctx).GetTime(scheduledStart)
	if !scheduled || !due.Before(r.failing.NextRun) {
		return time.Time{}
	}
	// Recorded, since zone data may change between a run and its replay.
	var start bool
	if err := workflow.SideEffect(ctx, func(workflow.Context) any {
		return r.Job.Recurring.IsStart(r.Job.ID, due)
	}).Get(&start); err != nil || !start {
		return time.Time{}
	}
	return r.failing.NextRun
}

// didNothing is the error with which a run ends that did nothing. Only a canceled run
// leaves the failures before it to the next one.
func didNothing(ctx workflow.Context) error {
	if workflow.GetLastError(ctx) == nil {
		return nil
	}
	return temporal.NewCanceledError()
}

// fail gives the error with which a run ends. That of a run of a Schedule carries the
// failures in a row. A run that someone has canceled does not count.
func (r *run) fail(ctx workflow.Context, err error) error {
	if r.StartedBy != contract.StartedBySchedule || r.Job.Recurring == nil || temporal.IsCanceledError(err) {
		return err
	}
	if ctx.Err() == nil {
		r.failing = r.oneMore(ctx, err)
	}
	if r.failing == nil {
		return err
	}
	return temporal.NewApplicationErrorWithOptions(contract.ErrorReason(err), contract.ErrorClass(err), temporal.ApplicationErrorOptions{
		Cause: err, Details: []any{*r.failing, ownDefinitionHash(ctx)},
	})
}

// oneMore counts a failure.
func (r *run) oneMore(ctx workflow.Context, err error) *contract.Failing {
	now := workflow.Now(ctx)
	failing := contract.Failing{Failing: true, Failures: 1, Since: now, Class: contract.ErrorClass(err), Error: shorten(contract.ErrorReason(err))}
	if r.failing != nil {
		failing.Failures, failing.Since = r.failing.Failures+1, r.failing.Since
	}
	if limit := r.Job.Recurring.PauseAfterFailures; limit == 0 || failing.Failures < limit {
		return &failing
	}
	// Recorded, as above.
	if err := workflow.SideEffect(ctx, func(workflow.Context) any {
		return r.Job.Recurring.NextRun(r.Job.ID, failing.Failures, now)
	}).Get(&failing.NextRun); err != nil {
		workflow.GetLogger(ctx).Warn("no start is held back", "JobID", r.Job.ID, "Error", err)
	}
	return &failing
}

// heldBack is the message of a run that was held back.
func heldBack(f *contract.Failing) string {
	runs := fmt.Sprintf("%d runs in a row have failed", f.Failures)
	if f.Failures == 1 {
		runs = "a run has failed"
	}
	return fmt.Sprintf("nothing done: %s, and the next run is at %s", runs, f.NextRun.UTC().Format(time.RFC3339))
}
