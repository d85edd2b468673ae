package workers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
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
	workertest.Run(t, st, workers.Config{
		Worker:   "unheard",
		Temporal: temporalclient.Settings{Intercept: withhold},
		Types:    []job.Type{job.NewType("FailTwice", "unheard", "Fails twice.", attempt)},
	})
	c := newControl(t, st)
	j := newJob(t, "FailTwice", "unheard", oneShot(), struct{}{})
	j.Worker = "unheard"
	j.Options.RetryBackoff = job.Backoff{Initial: job.Duration(time.Millisecond), Max: job.Duration(time.Millisecond), Coefficient: 1}
	ref := startRun(t, c, j)
	requireCompleted(t, c, ref)
	for _, want := range []int{0, 7, 14} {
		require.Equal(t, want, <-cursors)
	}
}
