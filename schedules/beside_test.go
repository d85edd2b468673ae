package schedules_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
)

// witness is what handlers saw of each other, apart from everything that Temporal
// records.
type witness struct {
	mu     sync.Mutex
	active map[string]string      // the id of the run of each job that is at work
	begun  map[string][]time.Time // by job
	beside []clash
}

// clash is a run that began beside another of its job.
type clash struct {
	jobID, run, other string // ids
	attempt           int
}

// handle takes half of the job's interval.
func (w *witness) handle(ctx context.Context, run job.Run, _ anySpec) (job.Result, error) {
	id, began := run.Job().ID, time.Now()
	w.mu.Lock()
	if other, ok := w.active[id]; ok {
		w.beside = append(w.beside, clash{jobID: id, run: run.ID(), other: other, attempt: run.Attempt()})
	}
	w.active[id] = run.ID()
	w.begun[id] = append(w.begun[id], began)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.active, id)
	}()
	select {
	case <-time.After(run.Job().Recurring.RecurEvery.Std() / 2):
		return job.Result{}, nil
	case <-ctx.Done():
		return job.Result{}, ctx.Err()
	}
}

// begunSince is the least that any of the jobs has begun since a time.
func (w *witness) begunSince(jobs []job.Job, since time.Time) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	least := -1
	for _, j := range jobs {
		n := len(w.begun[j.ID])
		if at := slices.IndexFunc(w.begun[j.ID], since.Before); at >= 0 {
			n -= at
		} else {
			n = 0
		}
		if least < 0 || n < least {
			least = n
		}
	}
	return least
}

// clashes are the runs that began beside another of their job.
func (w *witness) clashes() []clash {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.beside)
}

// TestNoRecurringJobRunsBesideItself has the servers hang, and then die and stay
// away, while jobs run that skip the starts at which they are under way. The servers
// may break off right after a start, and then know nothing of the run.
func TestNoRecurringJobRunsBesideItself(t *testing.T) {
	t.Parallel()
	const (
		every  = 2 * time.Second
		outage = 4 * every
		window = time.Minute      // for starts that come late
		slack  = 10 * time.Second // for a start under way when the window ends, on a busy machine
	)
	count := stacktest.Size(10, 30)
	w := &witness{active: map[string]string{}, begun: map[string][]time.Time{}}
	st := stacktest.StartOwn(t, "--only", "temporal")
	f := startHandler(t, st, w.handle)
	var jobs []job.Job
	for n := range count {
		jobs = append(jobs, declare(fmt.Sprintf("j%02d", n), job.Trigger{Recurring: &job.Recurring{
			RecurEvery: job.Duration(every), CatchupWindow: job.Duration(window),
		}}))
	}
	f.apply(f.plan(false, jobs...))
	goOn := func(since time.Time) {
		stacktest.WaitWithin(t, longWait, "two runs of each job", func() (bool, error) {
			return w.begunSince(jobs, since) >= 2, nil
		})
	}
	goOn(time.Time{})
	for _, fault := range []struct {
		what       string
		begin, end func()
	}{
		{"the servers hung", func() { st.Signal(t, syscall.SIGSTOP) }, func() { st.Signal(t, syscall.SIGCONT) }},
		{"the servers were away", st.Kill, func() { st.Restart(t) }},
	} {
		fault.begin()
		from := time.Now()
		stacktest.WaitFor(t, "the outage to end", func() (bool, error) { return time.Since(from) > outage, nil })
		fault.end()
		goOn(time.Now())
		require.Empty(t, w.clashes(), "after %s", fault.what)
	}

	runs, err := f.client.Runs.List(t.Context(), client.RunFilter{})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(runs), 3*count)
	for _, run := range runs {
		require.LessOrEqual(t, run.Started.Sub(run.Scheduled), window+slack, "%s of %s", run.WorkflowID, run.Scheduled)
	}
}
