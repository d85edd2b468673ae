package workertest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// How long a run pauses between two looks at its gate: longer and longer, since hundreds wait in
// some tests.
const (
	gateFirst = 5 * time.Millisecond
	gateMost  = 100 * time.Millisecond
)

// NewGate is the name of a file that is not there. Handlers of all processes wait for it.
func NewGate(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "gate")
}

// Open makes the file of a gate.
func Open(t testing.TB, gate string) {
	t.Helper()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Pass waits until a gate is open. It ends early when the run should stop or its context
// ends, with the error that its handler returns then. A gate without a name is open.
func Pass(ctx context.Context, run job.Run, gate string) error {
	if gate == "" {
		return nil
	}
	for pause := gateFirst; ; pause = min(pause*5/4, gateMost) {
		if _, err := os.Stat(gate); err == nil {
			return nil
		}
		select {
		case <-run.Stopping():
			return job.ErrStopped
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// Wait is Pass for a gate within the test's process: a channel that is closed. Nobody
// opens nil.
func Wait(ctx context.Context, run job.Run, gate <-chan struct{}) error {
	select {
	case <-gate:
		return nil
	case <-run.Stopping():
		return job.ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Deaf is a run that hears no request to stop.
func Deaf(run job.Run) job.Run { return deaf{run} }

type deaf struct{ job.Run }

func (deaf) Stopping() <-chan struct{} { return nil }
