package workers_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workers"
)

// answers lets a heartbeat's answer take a while, or for ever if it is negative.
func answers(ctx context.Context, takes time.Duration) error {
	arrives := time.After(takes)
	if takes < 0 {
		arrives = nil
	}
	select {
	case <-arrives:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestHeartbeatsOutlastSlowAnswers has heartbeats that are answered late, then
// some that are never answered, and then none that is.
func TestHeartbeatsOutlastSlowAnswers(t *testing.T) {
	t.Parallel()
	const never = -1
	synctest.Test(t, func(t *testing.T) {
		now, _ := bubbleClock()
		var takes, sent, underWay, most atomic.Int64
		heartbeater := workers.NewHeartbeater(15*time.Second, now, func(ctx context.Context) error {
			most.Store(max(most.Load(), underWay.Add(1))) // They begin one after the other.
			defer underWay.Add(-1)
			n := sent.Add(1)
			if wait := takes.Load(); wait != never || n%5 != 0 {
				return answers(ctx, time.Duration(wait))
			}
			return answers(ctx, 0)
		})
		lease, ours := heartbeater.Begin(t.Context())
		require.True(t, ours)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			heartbeater.Keep(ctx)
		}()
		takes.Store(int64(7 * time.Second))
		after(2 * time.Minute)
		require.NoError(t, lease.Err(), "each is acknowledged")
		require.EqualValues(t, 4, most.Load(), "one every two seconds")
		takes.Store(int64(11 * time.Second))
		after(2 * time.Minute)
		require.NoError(t, lease.Err())
		takes.Store(never)
		after(2 * time.Minute)
		require.NoError(t, lease.Err(), "one in five is acknowledged")
		require.EqualValues(t, 7, most.Load(), "those that are worth nothing any more are given up")
		stop()
		<-ended
		require.Zero(t, underWay.Load(), "nothing is left behind")
	})
	synctest.Test(t, func(t *testing.T) {
		now, _ := bubbleClock()
		var began, acknowledged time.Duration
		heartbeater := workers.NewHeartbeater(15*time.Second, now, func(ctx context.Context) error {
			if now()-began < time.Minute {
				acknowledged = now()
				return nil
			}
			return answers(ctx, never)
		})
		lease, ours := heartbeater.Begin(t.Context())
		require.True(t, ours)
		go heartbeater.Keep(t.Context())
		<-lease.Done()
		require.Equal(t, 14*time.Second, (now() - acknowledged).Round(10*time.Millisecond))
	})
}

// TestOnlyTemporalSaysThatATaskIsLost begins attempts whose tasks may have lain
// about, with heartbeats that are not answered, fail, or say so.
func TestOnlyTemporalSaysThatATaskIsLost(t *testing.T) {
	t.Parallel()
	const timeout = 15 * time.Second
	unanswered := func(ctx context.Context) error { return answers(ctx, -1) }
	slow := func(ctx context.Context) error { return answers(ctx, 10*time.Second) }
	fails := func(context.Context) error { return serviceerror.NewUnavailable("not now") }
	taken := func(context.Context) error { return nil }
	canceled := func(context.Context) error { return temporal.NewCanceledError() }
	gone := func(context.Context) error { return serviceerror.NewNotFound("another has it") }
	type heartbeat = func(context.Context) error
	for name, it := range map[string]struct {
		heartbeats []heartbeat // the last one again and again
		ours       bool
		after      time.Duration
	}{
		"taken at once":       {[]heartbeat{taken}, true, 0},
		"wanted back":         {[]heartbeat{canceled}, true, 0},
		"not answered":        {[]heartbeat{unanswered, unanswered, taken}, true, 4 * time.Second},
		"failed":              {[]heartbeat{fails, fails, taken}, true, 2 * time.Second},
		"answered late":       {[]heartbeat{slow}, true, 10 * time.Second},
		"gone":                {[]heartbeat{gone}, false, 0},
		"gone after a while":  {[]heartbeat{unanswered, fails, gone}, false, 3 * time.Second},
		"never answered":      {[]heartbeat{unanswered}, false, timeout},
		"never to be reached": {[]heartbeat{fails}, false, timeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now, _ := bubbleClock()
				var sent atomic.Int64
				heartbeater := workers.NewHeartbeater(timeout, now, func(ctx context.Context) error {
					return it.heartbeats[min(int(sent.Add(1)), len(it.heartbeats))-1](ctx)
				})
				lease, ours := heartbeater.Begin(t.Context())
				require.Equal(t, it.ours, ours)
				require.Equal(t, it.after, now())
				if ours {
					require.NoError(t, lease.Err())
				}
			})
		})
	}
}

// slowServer delays the answers to the heartbeats of runs.
type slowServer struct {
	delay    time.Duration
	answered atomic.Int64
}

func (s *slowServer) intercept(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	err := invoke(ctx, method, request, reply, conn, options...)
	if !strings.HasSuffix(method, "/RecordActivityTaskHeartbeat") {
		return err
	}
	if late := answers(ctx, s.delay); late != nil {
		return late
	}
	s.answered.Add(1)
	return err
}

// TestSlowServerDoesNotLoseTheRun has each heartbeat of a run answered when the
// next has long been sent.
func TestSlowServerDoesNotLoseTheRun(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	server := &slowServer{delay: 3 * time.Second}
	workertest.Run(t, st, workers.Config{
		Worker: "testing", Types: testTypes(), ServiceTimeout: time.Minute,
		Temporal: temporalclient.Settings{Intercept: server.intercept},
	})
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	j := newJob(t, "Tick", "slow", oneShot(), tickSpec{Ledger: string(ledger), Gate: gate})
	j.Options.HeartbeatTimeout = job.Duration(12 * time.Second)
	ref := startRun(t, c, j)
	ledger.WaitFor(t, "tick", 1)
	before := server.answered.Load()
	stacktest.WaitFor(t, "heartbeats of longer than the timeout", func() (bool, error) { return server.answered.Load() >= before+6, nil })
	workertest.Open(t, gate)
	run := requireCompleted(t, c, ref)
	require.Equal(t, 1, run.Output.Attempts)
	require.Zero(t, ledger.Count(t, "stop"), "nobody asked it to stop")
	require.Equal(t, 1, ledger.Count(t, "start"))
}
