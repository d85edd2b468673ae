package workers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
)

// An announcement that nobody can read does not keep bound runs from the others.
func TestAnUnreadableAnnouncementIsLeftOut(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	_, err := c.Temporal().ExecuteActivity(t.Context(), sdk.StartActivityOptions{
		ID: contract.ServiceID("testing", "odd"), TaskQueue: "odd", StartToCloseTimeout: time.Hour,
	}, contract.ServiceType, "not a service")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	task, err := c.Temporal().WorkflowService().PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{
		Namespace: st.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: "odd", Kind: enumspb.TASK_QUEUE_KIND_NORMAL}, Identity: "odd",
	})
	require.NoError(t, err)
	require.NotEmpty(t, task.GetTaskToken(), "it lives")
	w := startService(t, st, "whole", "--tag", "zone=north")
	stacktest.WaitFor(t, "both in the list", func() (bool, error) {
		services, err := c.Workers.Services(t.Context(), time.Time{})
		return services.Unreadable != nil && len(services.Live) == 1, err
	})
	services, err := c.Workers.Services(t.Context(), time.Time{})
	require.NoError(t, err)
	require.ErrorContains(t, services.Unreadable, "service/testing/odd does not announce a service: it cannot be read: ")
	require.Len(t, services.Live, 1)

	ledger := workertest.NewBook(t)
	j := bound(t, "bound", oneShot(), ledger, "", "")
	j.Options.FailoverAfter = 0 // The service has the default timeout.
	ref := startRun(t, c, j)
	run := requireCompleted(t, c, ref)
	require.Equal(t, "whole", run.Output.Binding.Service)
	w.WaitOutput("services are left out of the choice")
}
