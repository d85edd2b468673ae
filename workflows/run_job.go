package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
)

const timeoutHeartbeat = enumspb.TIMEOUT_TYPE_HEARTBEAT

// RunJob is one run of a job: the activity of its job type, with the retries
// that the job's options ask for. A run that a draining worker hands back goes
// on at its cursor on another worker and uses up no retry. One whose worker died
// in the last attempt has another one, up to maxLostWorkers times.
//
// Canceling the workflow stops the run gracefully: the handler is asked to stop, has
// the stop grace period to save its position, and the workflow ends as canceled
// once the handler has really ended.
func RunJob(ctx workflow.Context, in contract.RunInput) (*contract.RunOutput, error) {
	r := &run{RunInput: in, taken: workflow.Now(ctx), attempts: attemptsOf(in.Job), binding: binding{Binding: &contract.Binding{}}}
	if err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.RunState, error) {
		return contract.RunState{Binding: *r.binding.Binding}, nil
	}); err != nil {
		return nil, fmt.Errorf("handle query %s: %w", contract.QueryState, err)
	}
	output, err := r.execute(ctx)
	if failed := r.keepEnd(ctx, output); failed != nil {
		return nil, failed
	}
	return output, err
}

type run struct {
	contract.RunInput
	taken     time.Time
	failure   error // of the activity; the run's own may wrap it
	binding   binding
	attempts  attempts
	handovers int
	state     string            // for people
	failing   *contract.Failing // of a run of a Schedule: the failures in a row, nil if there are none
}

func (r *run) execute(ctx workflow.Context) (*contract.RunOutput, error) {
	info := workflow.GetInfo(ctx)
	if r.StartedBy == contract.StartedBySchedule {
		r.failing = failingBefore(ctx)
	}
	if output := r.givesWay(ctx); output != nil {
		r.show(ctx, output.Message)
		return output, didNothing(ctx)
	}
	r.binding.show = func() { r.show(ctx, r.state) }
	for {
		r.show(ctx, "running: "+whereProgressIs)
		in := contract.ActivityInput{Job: r.Job, RunID: info.WorkflowExecution.RunID, Cursor: r.Cursor}
		output, err := r.binding.execute(ctx, r.Job, &r.attempts, &in)
		r.Cursor = in.Cursor
		if err == nil {
			r.attempts.made += output.Attempts
			r.show(ctx, "completed: "+output.Result.Message)
			done := &contract.RunOutput{
				Result:       output.Result,
				Attempts:     r.attempts.made,
				Worker:       output.Worker,
				Handovers:    r.handovers,
				Binding:      r.bound(),
				SupersededBy: output.SupersededBy,
			}
			if !done.SupersededBy.IsZero() {
				return done, didNothing(ctx)
			}
			r.failing = nil
			return done, nil
		}
		if handed, ok := handedBack(err); ok && ctx.Err() != nil {
			err = temporal.NewCanceledError(handed) // Canceled while its worker drained: the handler has ended.
		} else if last, ok := lostWhileCanceled(ctx, err); ok {
			err = temporal.NewCanceledError(last)
		} else if last, ok := r.failedWhileCanceled(ctx, err); ok {
			err = temporal.NewCanceledError(last)
		}
		if !r.passOn(ctx, err) {
			if temporal.IsCanceledError(err) {
				r.show(ctx, "canceled")
			} else {
				r.show(ctx, "failed: "+contract.ErrorReason(err))
			}
			r.failure = err
			return nil, r.fail(ctx, err)
		}
	}
}

// failedWhileCanceled reports whether an attempt failed that would have had another
// one if the run had not been canceled, and what it left behind. So such a run ends as
// canceled. It keeps the error as its message.
func (r *run) failedWhileCanceled(ctx workflow.Context, err error) (contract.ActivityOutput, bool) {
	var attempt *temporal.ActivityError
	var failure *temporal.ApplicationError
	if ctx.Err() == nil || !errors.As(err, &attempt) || attempt.RetryState() != enumspb.RETRY_STATE_CANCEL_REQUESTED ||
		!errors.As(err, &failure) || failure.NonRetryable() {
		return contract.ActivityOutput{}, false // The server gives this state to every failure after the request.
	}
	last := contract.LastOutput(err)
	last.Attempts = max(last.Attempts, 1)
	if most := r.attempts.next(); most != 0 && last.Attempts >= most {
		return contract.ActivityOutput{}, false
	}
	last.Result.Message = "canceled; the last attempt failed: " + contract.ErrorReason(err)
	return last, true
}

// lostWhileCanceled reports whether a run was canceled whose worker was lost, and what
// the worker had last reported. The handler has ended by then: its context holds for the
// heartbeat timeout, which has passed.
func lostWhileCanceled(ctx workflow.Context, err error) (contract.ActivityOutput, bool) {
	if ctx.Err() == nil {
		return contract.ActivityOutput{}, false
	}
	_, lost := lostWorker(err)
	if !lost {
		_, lost = lostRun(err)
	}
	if !lost {
		return contract.ActivityOutput{}, false
	}
	last := contract.LastOutput(err)
	last.Attempts = max(last.Attempts, 1) // A worker that fell silent has not counted.
	return last, true
}

// givesWay is the output of a run that has nothing to do: it gives way to a later
// start, or it is held back. It is nil if the run goes on.
func (r *run) givesWay(ctx workflow.Context) *contract.RunOutput {
	var output contract.RunOutput
	if later := r.givesWayTo(ctx); !later.IsZero() {
		output.SupersededBy = later
		output.Message = "nothing done: the start of " + later.Format(time.RFC3339) + " was due too"
		return &output
	}
	if held := r.heldUntil(ctx); !held.IsZero() {
		output.HeldUntil = held
		output.Message = heldBack(r.failing)
		return &output
	}
	return nil
}

// givesWayTo is the later start that the run of a recurring job gives way to,
// zero if there is none.
func (r *run) givesWayTo(ctx workflow.Context) time.Time {
	if r.StartedBy != contract.StartedBySchedule || r.Job.Recurring == nil || !r.Job.Recurring.GivesWay() {
		return time.Time{}
	}
	due, scheduled := workflow.GetTypedSearchAttributes(ctx).GetTime(scheduledStart)
	if !scheduled {
		return time.Time{}
	}
	started := workflow.GetInfo(ctx).WorkflowStartTime
	// Recorded, since zone data may change between a run and its replay.
	var later time.Time
	if err := workflow.SideEffect(ctx, func(workflow.Context) any {
		return r.Job.Recurring.GivesWayTo(r.Job.ID, due, started)
	}).Get(&later); err != nil {
		return time.Time{}
	}
	return later
}

// scheduledStart is the nominal time of a run that a schedule started.
var scheduledStart = temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")

// passOn reports whether the run goes on with another worker, and from where.
func (r *run) passOn(ctx workflow.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if output, ok := handedBack(err); ok {
		r.takeCursor(output.Result.Cursor)
		r.attempts.handBack(output.Attempts)
		r.handovers++
		return true
	}
	cursor, lost := lostWorker(err)
	if !lost {
		cursor, lost = lostRun(err)
	}
	// An activity ends with a lost worker only when it has no more attempts.
	if !lost || !r.attempts.lose(max(r.attempts.next(), 1)) {
		return false
	}
	r.takeCursor(cursor)
	r.handovers++
	return true
}

// bound is the binding of a bound job, for the result.
func (r *run) bound() *contract.Binding {
	if r.binding.Service == "" {
		return nil
	}
	return r.binding.Binding
}

func (r *run) takeCursor(cursor json.RawMessage) {
	if len(cursor) > 0 {
		r.Cursor = cursor
	}
}

// show sets what people see of the run.
func (r *run) show(ctx workflow.Context, state string) {
	r.state = state
	workflow.SetCurrentDetails(ctx, r.details())
}

func (r *run) details() string {
	text := fmt.Sprintf("**%s** · `%s` · %s\n\n%s", r.Job.ID, r.Job.Type, r.Job.Mode(), contract.Plain(r.state))
	if r.handovers > 0 {
		text += fmt.Sprintf("\n\npassed on to another worker %d times", r.handovers)
	}
	return text + r.binding.details()
}
