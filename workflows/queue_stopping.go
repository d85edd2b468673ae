package workflows

import (
	"go.temporal.io/sdk/workflow"
)

// awaitHandler waits until the handler of a run that ended without it has stopped. It
// learns of the end by its next heartbeat; after a heartbeat timeout without one its
// context has ended by itself.
func (q *queue) awaitHandler(ctx workflow.Context) {
	q.stopped = workflow.NewTimerWithOptions(ctx, max(q.Stopping.Until.Sub(workflow.Now(ctx)), 0), workflow.TimerOptions{
		Summary: "for the handler of the terminated run to stop",
	})
}
