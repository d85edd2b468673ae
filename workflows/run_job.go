package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
)

const timeoutHeartbeat = enumspb.TIMEOUT_TYPE_HEARTBEAT

// RunInput is the input of RunJob.
type RunInput struct {
	Job job.Job `json:"job"`
	// Trigger says what started the run.
	Trigger Trigger `json:"trigger"`
	// Cursor is the position to go on from, if there is one.
	Cursor json.RawMessage `json:"cursor,omitempty"`
	// KeepEnd has the run leave a RunEnd in its memo.
	KeepEnd bool `json:"keep_end,omitempty"`
	// RetryOf is the run id of the run that this one is started in place of, as in
	// the memo.
	RetryOf string `json:"retry_of,omitempty"`
}

// Trigger says what started a run.
type Trigger string

// The triggers.
const (
	TriggerSchedule Trigger = "schedule" // a recurring job was due
	TriggerApply    Trigger = "apply"    // a one-shot job was declared
	TriggerManual   Trigger = "manual"   // someone asked
	TriggerQueue    Trigger = "queue"    // its turn came in a queue
	TriggerRetry    Trigger = "retry"    // someone wanted a run that failed once more
)

// RunOutput is the result of RunJob.
type RunOutput struct {
	job.Result
	// Attempts counts the tries over all workers.
	Attempts int `json:"attempts"`
	// Worker is the identity of the process that finished the run.
	Worker string `json:"worker"`
	// Handovers counts the times that a worker that shut down or died passed
	// the run on, apart from ordinary retries.
	Handovers int `json:"handovers,omitempty"`
	// Binding is how a bound job's run came to its service.
	Binding *Binding `json:"binding,omitempty"`
	// SupersededBy is the start whose run this one gave way to without doing
	// anything: a later one, see [job.Recurring.GivesWay], or an earlier one that was
	// still at work.
	SupersededBy time.Time `json:"superseded_by,omitzero"`
}

// RunJob is one run of a job: the activity of its job type, with the retries
// that the job's options ask for. A run that a draining worker hands back goes
// on at its cursor on another worker and uses up no retry. One whose worker died
// on the last try has another one, up to maxLostWorkers times.
//
// Canceling the workflow stops the run gracefully: the handler is told, has the
// stop grace period to save its position, and the workflow ends as canceled
// once the handler has really ended.
func RunJob(ctx workflow.Context, in RunInput) (*RunOutput, error) {
	r := &run{RunInput: in, taken: workflow.Now(ctx), tries: triesOf(in.Job)}
	output, err := r.execute(ctx)
	if failed := r.keepEnd(ctx, output); failed != nil {
		return nil, failed
	}
	return output, err
}

type run struct {
	RunInput
	taken     time.Time
	failure   error // of the activity; the run's own may wrap it
	binding   Binding
	tries     tries
	handovers int
	state     string // for people
	progress  progress
}

func (r *run) execute(ctx workflow.Context) (*RunOutput, error) {
	info := workflow.GetInfo(ctx)
	if later := r.givesWayTo(ctx); !later.IsZero() {
		output := &RunOutput{SupersededBy: later}
		output.Message = "nothing done: the start of " + later.Format(time.RFC3339) + " was due too"
		r.show(ctx, output.Message)
		return output, r.passOnStreak(ctx)
	}
	r.progress.hear(ctx, func() string { return info.WorkflowExecution.RunID }, func() { r.show(ctx, r.state) })
	r.binding.tell = func() { r.show(ctx, r.state) }
	for {
		r.show(ctx, "running: "+whereProgressIs)
		in := ActivityInput{Job: r.Job, RunID: info.WorkflowExecution.RunID, Cursor: r.Cursor}
		output, err := r.binding.execute(ctx, r.Job, &r.tries, &in)
		r.Cursor = in.Cursor
		if err == nil {
			r.tries.made += output.Attempts
			r.progress = progress{}
			r.show(ctx, "completed: "+output.Result.Message)
			done := &RunOutput{
				Result:       output.Result,
				Attempts:     r.tries.made,
				Worker:       output.Worker,
				Handovers:    r.handovers,
				Binding:      r.bound(),
				SupersededBy: output.SupersededBy,
			}
			if !done.SupersededBy.IsZero() {
				return done, r.passOnStreak(ctx)
			}
			r.tellProbe(ctx)
			return done, nil
		}
		r.progress.learn(ctx, err)
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
				r.show(ctx, "failed: "+reason(err))
			}
			r.failure = err
			return nil, r.fail(ctx, err)
		}
	}
}

// failedWhileCanceled reports whether an attempt failed that would have had another
// one if the run had not been canceled, and what it left behind. So such a run ends as
// canceled. It keeps the error as its message.
func (r *run) failedWhileCanceled(ctx workflow.Context, err error) (ActivityOutput, bool) {
	var attempt *temporal.ActivityError
	var failure *temporal.ApplicationError
	if ctx.Err() == nil || !errors.As(err, &attempt) || attempt.RetryState() != enumspb.RETRY_STATE_CANCEL_REQUESTED ||
		!errors.As(err, &failure) || failure.NonRetryable() {
		return ActivityOutput{}, false // The server gives this state to every failure after the request.
	}
	last := lastOutput(err)
	last.Attempts = max(last.Attempts, 1)
	if most := r.tries.next(); most != 0 && last.Attempts >= most {
		return ActivityOutput{}, false
	}
	last.Result.Message = "canceled; the last attempt failed: " + reason(err)
	return last, true
}

// canceledLostChange names the change by which a run that someone canceled ends as
// canceled, and not as failed, when its worker was lost before it could answer.
const canceledLostChange = "canceled-lost"

// lostWhileCanceled reports whether a run was canceled whose worker was lost, and what
// the worker had last told. The handler has ended by then: its context holds for the
// heartbeat timeout, which has passed.
func lostWhileCanceled(ctx workflow.Context, err error) (ActivityOutput, bool) {
	if ctx.Err() == nil {
		return ActivityOutput{}, false
	}
	_, lost := lostWorker(err)
	if !lost {
		_, lost = lostRun(err)
	}
	if !lost || workflow.GetVersion(ctx, canceledLostChange, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return ActivityOutput{}, false
	}
	last := lastOutput(err)
	last.Attempts = max(last.Attempts, 1) // A worker that fell silent could not tell.
	return last, true
}

// givesWayTo is the later start that the run of a recurring job gives way to,
// zero if there is none.
func (r *run) givesWayTo(ctx workflow.Context) time.Time {
	// Jobs from before there was a misfire policy give way to none.
	if r.Trigger != TriggerSchedule || r.Job.Recurring == nil || !r.Job.Recurring.GivesWay() {
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

// passOn says whether the run goes on with another worker, and from where.
func (r *run) passOn(ctx workflow.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if output, ok := handedBack(err); ok {
		r.takeCursor(output.Result.Cursor)
		r.tries.handBack(output.Attempts)
		r.handovers++
		return true
	}
	cursor, lost := lostWorker(err)
	if !lost {
		cursor, lost = lostRun(err)
		lost = lost && workflow.GetVersion(ctx, lostTriesChange, workflow.DefaultVersion, 1) != workflow.DefaultVersion
	}
	// An activity ends with a lost worker only when it has no more tries.
	if !lost || !r.tries.lose(max(r.tries.next(), 1)) {
		return false
	}
	r.takeCursor(cursor)
	r.handovers++
	return true
}

// bound is the binding of a bound job, to be told with the result.
func (r *run) bound() *Binding {
	if r.binding.Service == "" {
		return nil
	}
	return &r.binding
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
	text := fmt.Sprintf("**%s** · `%s` · %s\n\n%s", r.Job.ID, r.Job.Type, r.Job.Mode(), r.state) + r.progress.details()
	if r.handovers > 0 {
		text += fmt.Sprintf("\n\npassed on to another worker %d times", r.handovers)
	}
	return text + r.binding.details()
}
