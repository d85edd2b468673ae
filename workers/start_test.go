package workers_test

import (
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dendrascience/dendra-jobs/internal/grpcproxy"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestTemporalGoesAwayWhileAWorkerStarts has the server answer what the worker asks as it
// connects, and nothing of what the SDK asks as it begins to poll.
func TestTemporalGoesAwayWhileAWorkerStarts(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	start := func(t *testing.T) (w *stacktest.Process, back func()) {
		var described atomic.Int64
		var isBack atomic.Bool
		proxy, err := grpcproxy.Start(t.Context(), st.Temporal, grpcproxy.Options{Refuse: func(method string) error {
			if method == "DescribeNamespace" && described.Add(1) > 1 && !isBack.Load() {
				return status.Error(codes.Unavailable, "the server is going away")
			}
			return nil
		}})
		require.NoError(t, err)
		t.Cleanup(proxy.Close)
		w = stacktest.StartProgram(t, st, workerProgram(t, proxy.Address))
		w.WaitOutput("cannot serve yet")
		require.Contains(t, w.Output(), "msg=connected")
		require.Contains(t, w.Output(), "Temporal went away while the worker started")
		require.NotContains(t, w.Output(), "msg=serving")
		return w, func() { isBack.Store(true) }
	}
	t.Run("and comes back", func(t *testing.T) {
		t.Parallel()
		w, back := start(t)
		back()
		w.WaitOutput("msg=serving")
		w.Signal(syscall.SIGTERM)
		require.Zero(t, w.Wait())
	})
	t.Run("and the worker is stopped", func(t *testing.T) {
		t.Parallel()
		w, _ := start(t)
		w.Signal(syscall.SIGTERM)
		require.Zero(t, w.Wait())
		require.NotContains(t, w.Output(), "msg=serving")
	})
}
