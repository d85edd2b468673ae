package workflows_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// However many runs are watched, something else has its turn, and every end is seen.
func TestRunsAreWatchedWithoutHoldingEveryPlace(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	c := st.Dial(t)
	const queue = "watching"
	w := worker.New(c, queue, worker.Options{MaxConcurrentActivityExecutionSize: 3})
	w.RegisterActivityWithOptions(workflows.NewWatcher(2), activity.RegisterOptions{Name: workflows.WatchRunActivity})
	w.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: "Other"})
	require.NoError(t, w.Start())
	defer w.Stop()

	start := func(id, kind string, args ...any) client.ActivityHandle {
		handle, err := c.ExecuteActivity(t.Context(), client.StartActivityOptions{
			ID: id, TaskQueue: queue, StartToCloseTimeout: time.Hour, HeartbeatTimeout: 15 * time.Second,
		}, kind, args...)
		require.NoError(t, err)
		return handle
	}
	const runs = 6
	var watched []client.ActivityHandle
	for i := range runs {
		id := fmt.Sprintf("watched/%d", i)
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "nobody"}, "Nothing")
		require.NoError(t, err)
		watched = append(watched, start(fmt.Sprintf("watch/%d", i), workflows.WatchRunActivity,
			workflows.WatchRunInput{WorkflowID: id, RunID: run.GetRunID()}))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, start("other", "Other").Get(ctx, nil), "it does not wait for the end of a run")
	for i := range runs {
		require.NoError(t, c.TerminateWorkflow(t.Context(), fmt.Sprintf("watched/%d", i), "", "test"))
	}
	for _, handle := range watched {
		require.ErrorContains(t, handle.Get(ctx, nil), "the run was terminated")
	}
}
