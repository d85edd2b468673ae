package workertest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
)

// Ledger is what handlers in the test's process did, apart from everything that Temporal
// records. Its zero value is empty.
type Ledger struct {
	mu    sync.Mutex
	calls []*Call
}

// Call is one call of a handler: one attempt.
type Call struct {
	JobID   string
	RunID   string
	Attempt int
	Spec    string
	Began   time.Time
	Ended   time.Time // zero while it is at work
	Err     error
}

// Noted is a handler whose calls the ledger has. Without handle it does nothing.
func Noted[S any](l *Ledger, handle job.Handler[S]) job.Handler[S] {
	return func(ctx context.Context, run job.Run, spec S) (result job.Result, err error) {
		call := &Call{JobID: run.Job().ID, RunID: run.ID(), Attempt: run.Attempt(), Spec: string(run.Job().Spec), Began: time.Now()}
		l.mu.Lock()
		l.calls = append(l.calls, call)
		l.mu.Unlock()
		if handle != nil {
			result, err = handle(ctx, run, spec)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		call.Ended, call.Err = time.Now(), err
		return result, err
	}
}

// Calls are those of a job in the order in which they began; of all jobs for "".
func (l *Ledger) Calls(jobID string) []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	var calls []Call
	for _, call := range l.calls {
		if jobID == "" || call.JobID == jobID {
			calls = append(calls, *call)
		}
	}
	return calls
}

// Runs are the ids of the runs of a job that have begun; of all jobs for "".
func (l *Ledger) Runs(jobID string) map[string]bool {
	ids := map[string]bool{}
	for _, call := range l.Calls(jobID) {
		ids[call.RunID] = true
	}
	return ids
}

// WaitRuns waits for so many runs of a job, or of all jobs for "".
func (l *Ledger) WaitRuns(t testing.TB, jobID string, n int) {
	t.Helper()
	stacktest.WaitFor(t, fmt.Sprintf("%d runs of %s", n, jobID), func() (bool, error) { return len(l.Runs(jobID)) >= n, nil })
}
