package client_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// Services whose descriptions do not come keep no other from being known, and are
// asked for again.
func TestServicesAreKnownWithoutThoseThatAreNotDescribed(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "temporal")
	slow := contract.ServiceID("testing", "slow")
	ids := map[string]*atomic.Int64{} // how many of the looks at a service get no answer
	intercept := func(
		ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		if described, ok := request.(*workflowservice.DescribeActivityExecutionRequest); ok && ids[described.GetActivityId()].Add(-1) >= 0 {
			<-ctx.Done()
			return ctx.Err()
		}
		if described, ok := request.(*workflowservice.DescribeActivityExecutionRequest); ok && described.GetActivityId() == slow {
			select {
			case <-time.After(2500 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return invoke(ctx, method, request, reply, conn, options...)
	}
	c, err := sdk.Dial(sdk.Options{
		HostPort: st.Temporal, Namespace: st.Namespace, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		ConnectionOptions: sdk.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(intercept)}},
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	names := []string{"answered", "late", "silent", "slow"}
	for _, name := range names {
		ids[announce(t, c, st.Namespace, name)] = new(atomic.Int64)
	}
	ids[contract.ServiceID("testing", "late")].Store(1)
	ids[contract.ServiceID("testing", "silent")].Store(1000)
	stacktest.WaitFor(t, "the list", func() (bool, error) {
		found, err := c.CountActivities(t.Context(), sdk.CountActivitiesOptions{})
		return err == nil && found.Count == int64(len(names)), err
	})
	ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
	defer cancel()
	known, err := client.New(c, st.Namespace).Workers.Services(ctx, time.Now())
	require.NoError(t, known.Unreadable)
	require.ErrorContains(t, err, "1 of 4 services cannot be described: describe service/testing/silent: ")
	require.Empty(t, known.Lost)
	require.Len(t, known.Live, 3)
	require.Equal(t, "answered", known.Live[0].Name)
	require.Equal(t, "late", known.Live[1].Name)
	require.Equal(t, "slow", known.Live[2].Name)
}

// announce makes a service without a process, and gives its id.
func announce(t *testing.T, c sdk.Client, namespace, name string) string {
	t.Helper()
	id := contract.ServiceID("testing", name)
	_, err := c.ExecuteActivity(t.Context(), sdk.StartActivityOptions{
		ID: id, TaskQueue: name, StartToCloseTimeout: time.Hour,
	}, contract.ServiceType, contract.Service{Worker: "testing", Name: name})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	task, err := c.WorkflowService().PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{
		Namespace: namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: name}, Identity: name,
	})
	require.NoError(t, err)
	require.NotEmpty(t, task.GetTaskToken())
	return id
}
