package stacktest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestNamespacesAreApart has a schedule start runs in one namespace, of which
// another sees nothing.
func TestNamespacesAreApart(t *testing.T) {
	t.Parallel()
	one, other := stacktest.StartNamespace(t).Dial(t), stacktest.StartNamespace(t).Dial(t)
	_, err := one.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID:     "every-second",
		Spec:   client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Second}}},
		Action: &client.ScheduleWorkflowAction{ID: "waits", Workflow: "NobodyServes", TaskQueue: "nobody"},
	})
	require.NoError(t, err)
	runs := func(c client.Client) int64 {
		found, err := c.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: "WorkflowType = 'NobodyServes'"})
		require.NoError(t, err)
		return found.GetCount()
	}
	stacktest.WaitFor(t, "a run of the schedule", func() (bool, error) { return runs(one) > 0, nil })
	require.Zero(t, runs(other))
}
