package control

import (
	"context"
	"errors"

	"github.com/dendrascience/dendra-jobs/workflows"
)

// Resumable says whether there is something for Resume to undo. Of a loop its worker
// is asked: what else tells of a pause does so when the iteration under way has ended.
// It is true where nobody can tell, and of jobs that Resume gives an error for.
func (c *Client) Resumable(ctx context.Context, jobID string) (bool, error) {
	live, err := c.Live(ctx, jobID)
	switch {
	case err != nil:
		return false, err
	case live.Paused:
		return true, nil
	case live.Schedule != nil:
		return false, nil
	case live.Workflow == nil || live.Workflow.Type != workflows.ContinuousJobType || !live.Workflow.Open():
		return true, nil
	}
	state, err := c.loopState(ctx, jobID)
	if errors.Is(err, ErrNoWorker) {
		return true, nil
	}
	return state != nil && state.Paused, err
}
