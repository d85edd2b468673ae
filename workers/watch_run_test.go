package workers_test

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/workers"
)

// However many runs are watched, something else has its turn, and every end is seen.
func TestRunsAreWatchedWithoutHoldingEveryPlace(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	c := st.Dial(t)
	const queue = "watching"
	w := worker.New(c, queue, worker.Options{MaxConcurrentActivityExecutionSize: 3})
	w.RegisterActivityWithOptions(workers.NewWatcher(2), activity.RegisterOptions{Name: contract.WatchRunActivity})
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
		watched = append(watched, start(fmt.Sprintf("watch/%d", i), contract.WatchRunActivity,
			contract.WatchRunInput{WorkflowID: id, RunID: run.GetRunID()}))
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

// A run that cannot be looked at, since the server refuses to say how it stands, is not
// watched beyond the places that there are: it is looked at again.
func TestARunThatCannotBeLookedAtIsNotWatched(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	const denials = 3
	var looks, watches atomic.Int64
	c, err := client.Dial(client.Options{
		HostPort: st.Temporal, Namespace: st.Namespace, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(func(
			ctx context.Context, method string, in, out any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
		) error {
			switch path.Base(method) {
			case "DescribeWorkflowExecution":
				if looks.Add(1) <= denials {
					return serviceerror.NewPermissionDenied("for the test", "")
				}
			case "GetWorkflowExecutionHistory":
				if looks.Load() <= denials {
					watches.Add(1)
				}
			}
			return invoke(ctx, method, in, out, conn, options...)
		})}},
	})
	require.NoError(t, err)
	defer c.Close()
	const queue = "refused-looks"
	w := worker.New(c, queue, worker.Options{DisableWorkflowWorker: true})
	w.RegisterActivityWithOptions(workers.NewWatcher(0), activity.RegisterOptions{Name: contract.WatchRunActivity})
	require.NoError(t, w.Start())
	defer w.Stop()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue, TaskQueue: "nobody"}, "Nothing")
	require.NoError(t, err)
	require.NoError(t, c.TerminateWorkflow(t.Context(), queue, "", "test"))
	handle, err := c.ExecuteActivity(t.Context(), client.StartActivityOptions{
		ID: queue, TaskQueue: queue, StartToCloseTimeout: time.Hour, HeartbeatTimeout: 15 * time.Second,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 10 * time.Millisecond},
	}, contract.WatchRunActivity, contract.WatchRunInput{WorkflowID: queue, RunID: run.GetRunID()})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.ErrorContains(t, handle.Get(ctx, nil), "the run was terminated")
	require.Greater(t, looks.Load(), int64(denials))
	require.Zero(t, watches.Load(), "watched while nobody could say whether it runs")
}
