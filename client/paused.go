package client

import (
	"context"
	"errors"

	"github.com/dendrascience/dendra-jobs/contract"
)

// Resumable is what there is for Resume to undo.
type Resumable int

// What Resume undoes.
const (
	// ResumableUnknown: it is not known, or Resume gives an error for the job.
	ResumableUnknown Resumable = iota
	// ResumableNothing: the job is not paused, and a continuous one not failing.
	ResumableNothing
	// ResumableFailures: a continuous job is not paused, but its latest iterations
	// failed, or lost their workers, which Resume forgets.
	ResumableFailures
	// ResumablePause: the job is paused.
	ResumablePause
)

// Resumable says what Resume would undo. Of a continuous job its worker is asked: Temporal
// knows of a pause only when the iteration under way has ended.
func (c *JobClient) Resumable(ctx context.Context, jobID string) (Resumable, error) {
	live, err := c.Live(ctx, jobID)
	switch {
	case err != nil:
		return ResumableUnknown, err
	case live.Paused:
		return ResumablePause, nil
	case live.Schedule != nil:
		return ResumableNothing, nil
	case !live.loops():
		return ResumableUnknown, nil
	}
	state, err := c.loopState(ctx, jobID)
	switch {
	case errors.Is(err, ErrNoWorker):
		return ResumableUnknown, nil
	case err != nil:
		return ResumableUnknown, err
	case state.Paused:
		return ResumablePause, nil
	case state.BacksOff():
		return ResumableFailures, nil
	}
	return ResumableNothing, nil
}

// Paused says whether a job is paused, and for what. Of a continuous job its worker is
// asked, as in Resumable; [ErrNoWorker] if it does not answer.
func (c *JobClient) Paused(ctx context.Context, jobID string) (paused bool, reason string, err error) {
	live, err := c.Live(ctx, jobID)
	if err != nil {
		return false, "", err
	}
	pause, err := c.paused(ctx, live)
	return pause.Paused, pause.Reason, err
}

// paused says whether and why a job is paused.
func (c *conn) paused(ctx context.Context, live *Live) (contract.Pause, error) {
	if !live.loops() {
		return contract.Pause{Paused: live.Paused, Reason: live.PauseReason}, nil
	}
	state, err := c.loopState(ctx, live.Job.ID)
	if err != nil {
		return contract.Pause{}, err
	}
	return contract.Pause{Paused: state.Paused, Reason: state.PauseReason, Itself: state.PausedItself}, nil
}
