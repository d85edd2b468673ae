// Package workertest runs workers in the process of a test, and has what their handlers are
// made of:
//
//	stop := workertest.Start(t, st, types...) // a worker, until stop or the end of the test
//	workertest.WaitListed(t, c)               // until a worker is listed
//	ledger := &workertest.Ledger{}            // who ran what, and when
//	book := workertest.NewBook(t)             // the same of several processes, in a file
//	gate := workertest.NewGate(t)             // handlers wait: workertest.Pass(ctx, run, gate)
package workertest

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workers"
)

// Start runs a worker of the first type's worker type, until the end of the test, or
// until stop is called. stop waits for the worker, and may be called twice.
func Start(t testing.TB, st *stacktest.Stack, types ...job.Type) (stop func()) {
	t.Helper()
	return Run(t, st, workers.Config{Types: types})
}

// Run is Start with settings of the test's own. Temporal is that of the stack. Without a
// logger nothing is logged.
func Run(t testing.TB, st *stacktest.Stack, config workers.Config) (stop func()) {
	t.Helper()
	config.Temporal.Address, config.Temporal.Namespace = st.Temporal, st.Namespace
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Worker == "" {
		config.Worker = config.Types[0].Worker
	}
	_ = t.TempDir() // The test's files are removed after the worker has stopped to write them.
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- workers.Run(ctx, config) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(stop)
	return stop
}
