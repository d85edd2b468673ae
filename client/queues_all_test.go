package client_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// One queue's trouble is not that of the others; that of the server or of all workers is.
func TestAllQueuesAreAskedFor(t *testing.T) {
	t.Parallel()
	var names []string
	for n := range 20 {
		names = append(names, fmt.Sprintf("q%02d", n))
	}
	ask := func(errs map[string]error) (results []client.QueueResult, asked int64, err error) {
		var calls atomic.Int64
		c := answeredBy(t, func(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			query, ok := in.(*workflowservice.QueryWorkflowRequest)
			if !ok {
				return nil
			}
			calls.Add(1)
			name := strings.TrimPrefix(query.GetExecution().GetWorkflowId(), "queue/")
			if err := errs[name]; err != nil {
				return err
			}
			if err := errs["all"]; err != nil {
				return err
			}
			return new(givingUp).intercept(ctx, method, in, out, conn, invoke, options...)
		})
		results, err = c.Queues.GetAll(t.Context(), names)
		return results, calls.Load(), err
	}

	results, asked, err := ask(map[string]error{
		"q03": status.Error(codes.NotFound, "no such workflow"), "q05": status.Error(codes.InvalidArgument, "its history is too long"),
	})
	require.NoError(t, err)
	require.EqualValues(t, 20, asked)
	require.Len(t, results, 19, "one is not there")
	for n, name := range append(names[:3:3], names[4:]...) {
		require.Equal(t, name, results[n].Name)
		if name == "q05" {
			require.ErrorContains(t, results[n].Err, "its history is too long")
			continue
		}
		require.NoError(t, results[n].Err, name)
		require.NotNil(t, results[n].Queue, name)
	}

	results, asked, err = ask(map[string]error{"all": status.Error(codes.FailedPrecondition, "no poller seen for task queue recently, worker may be down")})
	require.NoError(t, err)
	require.LessOrEqual(t, asked, int64(temporalclient.CallLimit), "the others are not asked")
	require.Len(t, results, 20)
	for _, r := range results {
		require.ErrorIs(t, r.Err, client.ErrNoWorker, r.Name)
	}

	_, asked, err = ask(map[string]error{"all": status.Error(codes.PermissionDenied, "not yours")})
	var denied *serviceerror.PermissionDenied
	require.ErrorAs(t, err, &denied)
	require.LessOrEqual(t, asked, int64(temporalclient.CallLimit))
}
