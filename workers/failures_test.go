package workers_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workers"
)

// An attempt that fails leaves its cursor to the next one although none of its
// heartbeats arrives.
func TestCursorOfAFailedAttemptNeedsNoHeartbeat(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	withhold := func(
		ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		if strings.HasSuffix(method, "/RecordActivityTaskHeartbeat") {
			<-ctx.Done()
			return ctx.Err()
		}
		return invoke(ctx, method, request, reply, conn, options...)
	}
	cursors := make(chan int, 3)
	attempt := func(_ context.Context, run job.Run, _ struct{}) (job.Result, error) {
		cursor := 0
		if _, err := run.Cursor(&cursor); err != nil {
			return job.Result{}, err
		}
		cursors <- cursor
		if run.Attempt() == 3 {
			return job.Result{}, nil
		}
		run.Checkpoint(job.Progress{Done: int64(cursor + 7)}, cursor+7)
		return job.Result{}, errors.New("the vendor is away")
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- workers.Run(ctx, workers.Config{
			Worker: "unheard", Logger: slog.New(slog.DiscardHandler),
			Temporal: temporalclient.Settings{Address: st.Temporal, Namespace: st.Namespace, Intercept: withhold},
			Types:    []job.Type{job.NewType("FailTwice", "unheard", "Fails twice.", attempt)},
		})
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	c := newControl(t, st)
	j := newJob(t, "FailTwice", "unheard", oneShot(), struct{}{})
	j.Worker = "unheard"
	j.Options.RetryBackoff = job.Backoff{Initial: job.Duration(time.Millisecond), Max: job.Duration(time.Millisecond), Coefficient: 1}
	ref, err := c.Runs.Start(t.Context(), j, contract.StartedByHand)
	require.NoError(t, err)
	run, err := c.Runs.Follow(t.Context(), ref, func(*client.RunDetail) {})
	require.NoError(t, err)
	require.Equal(t, client.RunCompleted, run.Status, run.Error)
	for _, want := range []int{0, 7, 14} {
		require.Equal(t, want, <-cursors)
	}
}
