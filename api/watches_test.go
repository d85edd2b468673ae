package api_test

import (
	"context"
	"path"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// oneWatch watches a run by many streams. Temporal is asked for the first one alone, and twice
// a second after that.
func oneWatch(t *testing.T, w *world) {
	gate := workertest.NewGate(t)
	name := oneShot(t, w.transports()["in process"], "take_steps.one-watch", "gate", gate)
	var looks atomic.Int64
	settings := w.stack.Settings()
	settings.Intercept = func(
		ctx context.Context, method string, in, out any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		if path.Base(method) == "DescribeWorkflowExecution" {
			looks.Add(1)
		}
		return invoke(ctx, method, in, out, conn, options...)
	}
	temporal, err := temporalclient.Dial(t.Context(), settings)
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	server := api.New(api.Config{Client: client.New(temporal, w.stack.Namespace), Types: ownTypes(), Logger: newLogger(w.log)})
	t.Cleanup(server.Close)
	const count = 200
	var streams, open sync.WaitGroup
	seen := make([][]*jobsv1.WatchRunResponse, count)
	open.Add(count)
	for n := range count {
		streams.Go(func() {
			answered := sync.OnceFunc(open.Done)
			defer answered()
			stream, err := server.InProcess().Runs.WatchRun(t.Context(), &jobsv1.WatchRunRequest{Name: name})
			for err == nil {
				var response *jobsv1.WatchRunResponse
				if response, err = stream.Receive(); err == nil {
					seen[n] = append(seen[n], response)
				}
				answered()
			}
		})
	}
	open.Wait()
	require.Less(t, looks.Load(), int64(count/2))
	workertest.Open(t, gate)
	streams.Wait()
	for _, of := range seen {
		require.NotEmpty(t, of)
		require.Equal(t, jobsv1.RunStatus_RUN_STATUS_COMPLETED, of[len(of)-1].GetRun().GetStatus())
	}
}
