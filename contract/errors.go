package contract

import (
	"encoding/json"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Cause is what a failed run's handler returned, as far as the error of the run has it: its
// class, its kind, its wait and its sentence. Of errors that a workflow has made it holds
// what [LastOutput] says.
func Cause(err error) *job.Failure {
	var app *temporal.ApplicationError
	kind, retryAfter := errclass.Transient, time.Duration(0)
	if errors.As(err, &app) {
		if kind, retryAfter = LastOutput(err).Kind, app.NextRetryDelay(); app.NonRetryable() && !kind.Final() {
			kind = errclass.Permanent // Not of a handler: the service of a bound job is gone.
		}
	}
	return job.NewFailure(ErrorClass(err), kind, retryAfter, errors.New(ErrorReason(err)))
}

// ErrorReason is the innermost sentence of an activity's failure, without the
// wrapping that repeats ids and event numbers.
func ErrorReason(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Message()
	}
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		switch timeout.TimeoutType() {
		case enumspb.TIMEOUT_TYPE_HEARTBEAT:
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

// ErrorClass is the error class of an activity's failure, as the Web UI shows it.
func ErrorClass(err error) string {
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

// LastCursor is the position that a run which failed or was canceled left behind,
// as far as the error of the run has it; nil if it left none.
func LastCursor(err error) json.RawMessage { return LastOutput(err).Result.Cursor }

// LastOutput is what the last attempt of a run left behind that did not complete.
// In a workflow it takes errors of activities only: the details of those that the
// workflow itself has made are not encoded, and can be read as what they are alone.
func LastOutput(err error) ActivityOutput {
	for ; err != nil; err = errors.Unwrap(err) {
		if timeout, ok := err.(*temporal.TimeoutError); ok { //nolint:errorlint // Each error of the chain is looked at.
			return lastHeartbeat(timeout)
		}
		with, ok := err.(interface { //nolint:errorlint // As above.
			HasDetails() bool
			Details(into ...any) error
		})
		if !ok || !with.HasDetails() {
			continue
		}
		var output ActivityOutput
		if with.Details(&output) == nil && output.Worker != "" {
			return output
		}
	}
	return ActivityOutput{}
}

func lastHeartbeat(timeout *temporal.TimeoutError) ActivityOutput {
	var heartbeat Heartbeat
	if !timeout.HasLastHeartbeatDetails() || timeout.LastHeartbeatDetails(&heartbeat) != nil {
		return ActivityOutput{}
	}
	return ActivityOutput{Worker: heartbeat.Worker, Result: job.Result{Cursor: heartbeat.Cursor}, Progress: heartbeat.Progress}
}

// EndedWithoutHandler reports whether a run, awaited or watched, was ended without
// its handler: someone terminated it, or the workflow itself timed out.
func EndedWithoutHandler(err error) bool {
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.Type() == ErrorTypeRunCutOff {
		return true
	}
	var child *temporal.ChildWorkflowExecutionError
	var execution *temporal.WorkflowExecutionError
	if !errors.As(err, &child) && !errors.As(err, &execution) {
		return false
	}
	// A failed run has the error of its activity there, which may be a timeout too.
	var activity *temporal.ActivityError
	var terminated *temporal.TerminatedError
	var timeout *temporal.TimeoutError
	return errors.As(err, &terminated) || !errors.As(err, &activity) && errors.As(err, &timeout)
}
