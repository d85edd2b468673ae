package temporal_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/devstack/internal/temporal"
)

// A task is not lost whose record takes longer than the matching service waits: the worker
// gets it, and no task times out.
func TestATaskThatIsRecordedLateIsNotLost(t *testing.T) {
	t.Parallel()
	late := temporal.NewLateRecords(1500 * time.Millisecond)
	c := dial(t, startWith(t, late.Option()))
	w := worker.New(c, "late", worker.Options{})
	once := func(context.Context) error { return nil }
	w.RegisterActivity(once)
	run := func(ctx workflow.Context) error {
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute, RetryPolicy: &sdk.RetryPolicy{MaximumAttempts: 1},
		}), once).Get(ctx, nil)
	}
	w.RegisterWorkflow(run)
	require.NoError(t, w.Start())
	defer w.Stop()

	execution, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "late"}, run)
	require.NoError(t, err)
	require.NoError(t, execution.Get(t.Context(), nil))
	require.Positive(t, late.Count(), "records that came late")
	events := c.GetWorkflowHistory(t.Context(), execution.GetID(), execution.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		require.NotEqual(t, enums.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT, event.GetEventType(), "a task was lost")
	}
}
