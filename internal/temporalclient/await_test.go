package temporalclient_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// deafPolls never answers the first long polls for history, as a server that misses
// to wake who waits.
type deafPolls struct {
	first  int32
	polled chan struct{} // gets an element for each of them
	polls  atomic.Int32
	looks  atomic.Int32
}

func (d *deafPolls) intercept(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	switch request := request.(type) {
	case *workflowservice.GetWorkflowExecutionHistoryRequest:
		if request.GetWaitNewEvent() && d.polls.Add(1) <= d.first {
			d.polled <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}
	case *workflowservice.DescribeWorkflowExecutionRequest:
		d.looks.Add(1)
	}
	return invoke(ctx, method, request, reply, conn, options...)
}

// A run whose end the long poll misses is awaited no longer for it, and one that was
// deleted is.
func TestAwaitDoesNotRestOnALongPoll(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	server := st.Dial(t)
	for name, it := range map[string]struct {
		end  func(id string) error
		want any
	}{
		"ended": {
			func(id string) error { return server.TerminateWorkflow(t.Context(), id, "", "test") }, new(*temporal.TerminatedError),
		},
		"deleted": {
			func(id string) error {
				_, err := server.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
					Namespace: st.Namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
				})
				return err
			}, new(*serviceerror.NotFound),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			polls := &deafPolls{first: 1, polled: make(chan struct{}, 1)}
			c, err := sdk.Dial(sdk.Options{
				HostPort: st.Temporal, Namespace: st.Namespace, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
				ConnectionOptions: sdk.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(polls.intercept)}},
			})
			require.NoError(t, err)
			t.Cleanup(c.Close)
			id := "awaited/" + name
			run, err := server.ExecuteWorkflow(t.Context(), sdk.StartWorkflowOptions{ID: id, TaskQueue: "nobody"}, "Nothing")
			require.NoError(t, err)
			// The long poll of the server takes 20 s.
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			awaited := make(chan error, 1)
			go func() { awaited <- temporalclient.Await(ctx, c, id, run.GetRunID(), nil) }()
			<-polls.polled
			require.NoError(t, it.end(id))
			require.ErrorAs(t, <-awaited, it.want)
			require.Less(t, polls.looks.Load(), int32(10), "each costs the server something")
		})
	}
}
