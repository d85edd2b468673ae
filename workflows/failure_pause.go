package workflows

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
)

// failureStreak is what a failed run of a schedule passes to the next one, in the
// details of its error: a schedule hands its runs the error of the last one. A run
// that is canceled passes on what it was given. Only jobs with
// pause_after_failures have it.
type failureStreak struct {
	// Failures counts the failed runs in a row.
	Failures int `json:"failures_in_a_row"`
	// SpecHash is that of the definition that failed: another one starts anew.
	SpecHash string `json:"spec_hash"`
	// Pause is the note of the pause that the failures led to, if they did.
	Pause string `json:"pause,omitempty"`
}

// guarded says that the run's failures may pause its schedule.
func (r *run) guarded() bool {
	return r.StartedBy == contract.StartedBySchedule && r.Job.Recurring != nil && r.Job.Recurring.PauseAfterFailures > 0
}

// ownSpecHash is the hash that marks the run. It is not computed anew: another
// version of the program might find another one when it replays the run.
func ownSpecHash(ctx workflow.Context) string {
	hash, _ := workflow.GetTypedSearchAttributes(ctx).GetKeyword(contract.AttributeSpecHash)
	return hash
}

// lastStreak is what the last run has passed on. It reports false if the last run
// failed, was canceled or terminated and passed nothing on.
func lastStreak(ctx workflow.Context) (failureStreak, bool) {
	fresh := failureStreak{SpecHash: ownSpecHash(ctx)}
	last := workflow.GetLastError(ctx)
	if last == nil {
		return fresh, true
	}
	for err := last; err != nil; err = errors.Unwrap(err) {
		with, ok := err.(interface { //nolint:errorlint // Each error of the chain is looked at.
			HasDetails() bool
			Details(into ...any) error
		})
		if !ok || !with.HasDetails() {
			continue
		}
		var streak failureStreak
		if with.Details(&streak) != nil || streak.SpecHash == "" {
			continue // Details of something else.
		}
		if streak.SpecHash != fresh.SpecHash {
			return fresh, true
		}
		return streak, true
	}
	return fresh, false
}

// fail gives the error with which the run ends. The run that is one failure too
// many pauses its schedule before it ends, so that no further run starts.
func (r *run) fail(ctx workflow.Context, err error) error {
	if !r.guarded() {
		return err
	}
	streak, _ := lastStreak(ctx)
	if temporal.IsCanceledError(err) {
		return temporal.NewCanceledError(streak, contract.LastOutput(err))
	}
	if ctx.Err() == nil { // Else someone asked it to stop, which does not count.
		streak.Failures++
		if streak.Pause != "" || streak.Failures >= r.Job.Recurring.PauseAfterFailures {
			streak = r.pauseSchedule(ctx, streak, err)
		}
	}
	return temporal.NewApplicationErrorWithOptions(contract.ErrorReason(err), contract.ErrorClass(err), temporal.ApplicationErrorOptions{
		Cause: err, Details: []any{streak},
	})
}

// passOnStreak gives the error with which a run that did nothing ends: as canceled,
// if there are failures before it to be passed on. After a run that completes the
// schedule would forget them.
func (r *run) passOnStreak(ctx workflow.Context) error {
	if !r.guarded() {
		return nil
	}
	streak, known := lastStreak(ctx)
	if known && streak.Failures == 0 && streak.Pause == "" {
		return nil
	}
	return temporal.NewCanceledError(streak)
}

// pauseSchedule has the schedule paused, or finds out that someone has had a hand
// in it. When that cannot be done the next failure tries again.
func (r *run) pauseSchedule(ctx workflow.Context, streak failureStreak, cause error) failureStreak {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	in := PauseFailingInput{
		Job: r.Job, SpecHash: streak.SpecHash, Failures: streak.Failures, Known: streak.Pause,
		Error: shorten(contract.ErrorReason(cause)), At: workflow.Now(ctx),
	}
	var out PauseFailingOutput
	future := workflow.ExecuteActivity(withScheduleActivity(ctx, maxPausing), contract.PauseFailingActivity, in)
	if err := future.Get(ctx, &out); err != nil {
		workflow.GetLogger(ctx).Warn("the schedule was not paused", "JobID", r.Job.ID, "Error", err)
		return streak
	}
	streak.Failures, streak.Pause = out.Failures, out.Pause
	return streak
}

// maxPausing bounds how long a failed run tries to pause its schedule.
const maxPausing = 5 * time.Minute

// withScheduleActivity sets the options of the activities that look at a schedule
// and change it. Longest is the most that they may take with all tries; 0 means
// no limit.
func withScheduleActivity(ctx workflow.Context, longest time.Duration) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              contract.QueuesTaskQueue,
		StartToCloseTimeout:    30 * time.Second,
		ScheduleToCloseTimeout: longest,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, MaximumInterval: time.Minute},
	})
}

// tellProbe tells the job's probe, if there is one, that a run has succeeded.
func (r *run) tellProbe(ctx workflow.Context) {
	if !r.guarded() {
		return
	}
	if streak, known := lastStreak(ctx); known && streak.Pause == "" {
		return // The schedule was not paused for failures when this run began.
	}
	told := workflow.SignalExternalWorkflow(ctx, contract.ProbeWorkflowID(r.Job.ID), "", SignalProbe, ProbeNews{Succeeded: true})
	if err := told.Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Info("no probe was told of the success", "JobID", r.Job.ID, "Error", err)
	}
}

// maxNoteBytes is the server's limit on the note of a schedule.
const maxNoteBytes = 1000

// noteTime is the layout of times in notes, fine enough to tell one pause from
// the next.
const noteTime = "2006-01-02T15:04:05.000Z07:00"

// pauseNote says why a schedule is paused. The time in it tells one such pause
// from the next.
func pauseNote(j job.Job, failures int, lastError string, at time.Time) string {
	note := fmt.Sprintf("%d runs in a row failed, the last one: ", failures)
	if failures == 1 {
		note = "a run failed: "
	}
	backoff := j.Recurring.ProbeBackoff()
	tail := fmt.Sprintf("; paused at %s, tried again after %s", at.UTC().Format(noteTime), backoff.Initial)
	if backoff.Max > backoff.Initial {
		tail += fmt.Sprintf(", then at most %s apart", backoff.Max)
	}
	tail += untilSuccess
	return note + job.Cut(lastError, maxNoteBytes-len(note)-len(tail)) + tail
}

// untilSuccess ends the note of a schedule that was paused for its failures.
const untilSuccess = ", until a run succeeds"

// iterationsFailed is in the reason of a continuous job that paused itself.
const iterationsFailed = " iterations in a row failed, the last one: "

// AlsoFor stands between the reasons for which several have paused something, the
// first of them first.
const AlsoFor = "; also: "

// pausedItself is how the reason of a continuous job that paused itself begins.
var pausedItself = regexp.MustCompile(`^\d+` + regexp.QuoteMeta(iterationsFailed))

// PausedForFailures says that it was the system alone that paused a job, since it
// failed too often in a row, by the note of the schedule or the reason of the loop.
func PausedForFailures(reason string) bool {
	return strings.HasSuffix(reason, untilSuccess) || pausedItself.MatchString(reason)
}

// resumeNote says why a schedule goes on.
func resumeNote(tries int, at time.Time) string {
	return fmt.Sprintf("resumed at %s: a run succeeded, after %s", at.UTC().Format(noteTime), count(tries, "try", "tries"))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
