package workertest

import (
	"context"
	"testing"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// WaitListed waits until a worker is listed as live.
func WaitListed(t testing.TB, c *client.Client) {
	t.Helper()
	stacktest.WaitFor(t, "the worker to be listed", func() (bool, error) {
		listed, err := c.Workers.List(context.Background())
		return err == nil && len(listed.Services) > 0, err
	})
}

// WaitLoop waits for a state of a continuous job.
func WaitLoop(t testing.TB, c *client.Client, jobID, what string, reached func(*contract.ContinuousState) bool) *contract.ContinuousState {
	t.Helper()
	var state *contract.ContinuousState
	stacktest.WaitFor(t, "job "+jobID+": "+what, func() (bool, error) {
		detail, err := c.Jobs.Get(t.Context(), jobID)
		if err != nil || detail.Continuous == nil {
			return false, err
		}
		state = detail.Continuous
		return reached(state), nil
	})
	return state
}

// WaitQueue waits for a state of a queue.
func WaitQueue(t testing.TB, c *client.Client, queue, what string, reached func(*contract.QueueState) bool) *contract.QueueState {
	t.Helper()
	var state *contract.QueueState
	stacktest.WaitFor(t, "queue "+queue+": "+what, func() (bool, error) {
		var err error
		state, err = c.Queues.State(t.Context(), queue)
		return err == nil && reached(state), err
	})
	return state
}
