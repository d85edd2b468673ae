package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// awaitHandler waits until the handler of a run that ended without it has heard of it. It
// hears with its next heartbeat; after a heartbeat timeout without one its context
// has ended by itself.
func (q *queue) awaitHandler(ctx workflow.Context) {
	q.stopped = workflow.NewTimerWithOptions(ctx, max(q.Stopping.Until.Sub(workflow.Now(ctx)), 0), workflow.TimerOptions{
		Summary: "for the handler of the terminated run to hear",
	})
}

// endedWithoutHandler says that a run, awaited or watched, was ended over the head
// of its handler: someone terminated it, or the workflow itself timed out.
func endedWithoutHandler(err error) bool {
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.Type() == errorTypeRunCutOff {
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
