package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// pauseTimer waits for the end of the queue's pause.
type pauseTimer struct {
	// end is that of the pause. Zero: there is no timer.
	end    time.Time
	over   workflow.Future
	cancel workflow.CancelFunc
}

func (q *queue) endPause() { q.Paused, q.PauseReason, q.PauseEnd = false, "", time.Time{} }

// mustTimePause reports whether the timer is that of another pause, or of one that is over.
func (q *queue) mustTimePause() bool { return !q.timer.end.Equal(q.PauseEnd) }

// timePause has the timer be that of the pause, if this one ends by itself.
func (q *queue) timePause(ctx workflow.Context) {
	if q.timer.cancel != nil {
		q.timer.cancel()
	}
	q.timer = pauseTimer{end: q.PauseEnd}
	if q.PauseEnd.IsZero() {
		return
	}
	var timing workflow.Context
	timing, q.timer.cancel = workflow.WithCancel(ctx)
	q.timer.over = workflow.NewTimerWithOptions(timing, max(q.PauseEnd.Sub(workflow.Now(ctx)), 0), workflow.TimerOptions{
		Summary: "until the pause ends",
	})
}
