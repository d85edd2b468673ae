package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// settlingChange names the change by which a queue starts nothing, after a run
// that someone terminated, until its handler has heard of it.
const settlingChange = "settling"

// settles asks only where it matters, since the answer costs two events.
func settles(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, settlingChange, workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// settle waits until the handler of a run that ended without it has heard of it. It
// hears with its next heartbeat; after a heartbeat timeout without one its context
// has ended by itself.
func (q *queue) settle(ctx workflow.Context) {
	q.settled = workflow.NewTimerWithOptions(ctx, max(q.Settling.Until.Sub(workflow.Now(ctx)), 0), workflow.TimerOptions{
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
