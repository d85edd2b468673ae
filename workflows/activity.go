package workflows

import (
	"encoding/json"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
)

// ErrorTypeDraining is the type of the error with which a worker that shuts
// down hands a run back. Its details are an ActivityOutput with the cursor.
const ErrorTypeDraining = "WorkerDraining"

// ErrorTypeRunLost is the type of the error with which a worker ends a run that
// may have been given to another one, since Temporal did not hear from it for the
// heartbeat timeout. Its details are an ActivityOutput with the cursor.
const ErrorTypeRunLost = "RunLost"

// ActivityInput is the input of every job type's activity.
type ActivityInput struct {
	Job job.Job `json:"job"`
	// RunID names the run in every attempt.
	RunID string `json:"run_id"`
	// Cursor is the position to go on from, if there is one.
	Cursor json.RawMessage `json:"cursor,omitempty"`
}

// ActivityOutput is the output of every job type's activity.
type ActivityOutput struct {
	Result job.Result `json:"result"`
	// Worker is the identity of the process that did the work.
	Worker string `json:"worker"`
	// Attempts counts the tries that it took.
	Attempts int `json:"attempts"`
	// Stopped says that the handler ended early because it was asked to.
	Stopped bool `json:"stopped,omitempty"`
	// Progress is how far a handler was that did not succeed.
	Progress job.Progress `json:"progress,omitzero"`
	// SupersededBy is that of RunOutput.
	SupersededBy time.Time `json:"superseded_by,omitzero"`
}

// Heartbeat is what the activity of a job type reports while it runs.
type Heartbeat struct {
	// Text is the progress for people: the Web UI shows heartbeats as they are.
	Text     string          `json:"text,omitempty"`
	Progress job.Progress    `json:"progress"`
	Cursor   json.RawMessage `json:"cursor,omitempty"`
	Worker   string          `json:"worker"`
}

// whereProgressIs tells readers of the Web UI where the progress of a run is: in the
// heartbeats, which are not in the history.
const whereProgressIs = "see its pending activity for the progress"

// MaxReturnGrace bounds how long a worker waits for a handler that was cut off before
// it gives it up.
const MaxReturnGrace = 30 * time.Second

// longestAttempt is when Temporal takes an attempt for lost that still sends
// heartbeats. Its worker ends it before: it may take the run timeout, then the stop
// grace period, and then what it waits for a stuck handler. The worker counts from
// when the attempt begins there, up to twice the heartbeat timeout after it was
// given out, and then reports how it ended.
func longestAttempt(options job.Options) time.Duration {
	const report = 10 * time.Second
	return options.RunTimeout.Std() + options.StopGracePeriod.Std() + MaxReturnGrace + 2*options.HeartbeatTimeout.Std() + report
}

// withJobActivity sets the activity options of a job: maxAttempts 0 means no limit.
func withJobActivity(ctx workflow.Context, j job.Job, maxAttempts int) workflow.Context {
	options := j.Options
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           TaskQueue(j.Worker),
		StartToCloseTimeout: longestAttempt(options),
		HeartbeatTimeout:    options.HeartbeatTimeout.Std(),
		WaitForCancellation: true,
		Summary:             j.Options.Description,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:        options.RetryBackoff.Initial.Std(),
			MaximumInterval:        options.RetryBackoff.Max.Std(),
			BackoffCoefficient:     options.RetryBackoff.Coefficient,
			MaximumAttempts:        int32(min(maxAttempts, job.MaxRetryLimit+1)), //nolint:gosec // Bounded right here.
			NonRetryableErrorTypes: []string{ErrorTypeDraining},
		},
	})
}

// handedBack reports whether err is a worker's hand-over of a run it could not
// finish before it shut down, and the output so far.
func handedBack(err error) (ActivityOutput, bool) {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != ErrorTypeDraining {
		return ActivityOutput{}, false
	}
	var output ActivityOutput
	if app.HasDetails() {
		if err := app.Details(&output); err != nil {
			return ActivityOutput{}, true
		}
	}
	return output, true
}

// stoppedOutput is what a handler left behind that was stopped on request.
func stoppedOutput(err error) (ActivityOutput, bool) {
	var canceled *temporal.CanceledError
	if !errors.As(err, &canceled) {
		return ActivityOutput{}, false
	}
	output := ActivityOutput{Stopped: true}
	if canceled.HasDetails() {
		if err := canceled.Details(&output); err != nil {
			return ActivityOutput{Stopped: true}, true
		}
	}
	return output, true
}

// Cause gives the class and the sentence of a failed run's error.
func Cause(err error) (errorClass, message string) { return class(err), reason(err) }

// maxText bounds each text that a workflow's state carries on: the state is the
// input of its next run, which must stay far below Temporal's 2 MiB.
const maxText = 500

// shorten cuts a text to maxText bytes.
func shorten(text string) string { return job.Cut(text, maxText) }

// reason is the innermost sentence of an activity's failure, without the
// wrapping that repeats ids and event numbers.
func reason(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Message()
	}
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		switch timeout.TimeoutType() {
		case timeoutHeartbeat:
			return "the worker fell silent for longer than the heartbeat timeout"
		case enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
			return "the service did not take the run in time"
		}
		return "the run took longer than its run timeout"
	}
	var terminated *temporal.TerminatedError
	if errors.As(err, &terminated) {
		return "the run was terminated"
	}
	return err.Error()
}

// class is the error class of an activity's failure, as the Web UI shows it.
func class(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Type()
	}
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		return timeout.TimeoutType().String() + "Timeout"
	}
	return ""
}
