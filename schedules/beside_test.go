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

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules/control"
)

// witness is what handlers saw of each other, apart from everything that Temporal
// records.
type witness struct {
	mu     sync.Mutex
	active map[string]int
	most   map[string]int         // handlers of a job at work at once
	begun  map[string][]time.Time // by job
}

// handle takes half of the job's interval.
func (w *witness) handle(ctx context.Context, run job.Run, _ anySpec) (job.Result, error) {
	id := run.Job().ID
	w.mu.Lock()
	w.active[id]++
	w.most[id] = max(w.most[id], w.active[id])
	w.begun[id] = append(w.begun[id], time.Now())
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.active[id]--
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

// beside are the jobs that had several handlers at work at once.
func (w *witness) beside() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for id, most := range w.most {
		if most > 1 {
			list = append(list, fmt.Sprintf("%s: %d at once", id, most))
		}
	}
	slices.Sort(list)
	return list
}

// TestNoRecurringJobRunsBesideItself has the servers hang, and then die and stay
// away, while jobs run that skip the starts at which they are under way.
func TestNoRecurringJobRunsBesideItself(t *testing.T) {
	t.Parallel()
	const (
		count  = 30
		every  = 2 * time.Second
		outage = 4 * every
		window = 10 * time.Second // for starts that come late
		slack  = 10 * time.Second // for a start under way when the window ends, on a busy machine
	)
	w := &witness{active: map[string]int{}, most: map[string]int{}, begun: map[string][]time.Time{}}
	st := stacktest.StartOwn(t, "--only", "temporal")
	f := startHandler(t, st, w.handle)
	var jobs []job.Job
	for n := range count {
		jobs = append(jobs, declare(fmt.Sprintf("j%02d", n), job.Schedule{Recurring: &job.Recurring{
			RecurEvery: job.Duration(every), CatchupWindow: job.Duration(window),
		}}))
	}
	f.apply(f.plan(false, jobs...))
	goOn := func(since time.Time) {
		stacktest.WaitWithin(t, patience, "two runs of each job", func() (bool, error) {
			return w.begunSince(jobs, since) >= 2, nil
		})
	}
	goOn(time.Time{})
	pass := func() {
		from := time.Now()
		stacktest.WaitFor(t, "the outage to end", func() (bool, error) { return time.Since(from) > outage, nil })
	}

	st.Signal(t, syscall.SIGSTOP)
	pass()
	st.Signal(t, syscall.SIGCONT)
	goOn(time.Now())
	require.Empty(t, w.beside(), "after the servers hung")

	st.Kill()
	pass()
	st.Restart(t)
	goOn(time.Now())
	require.Empty(t, w.beside(), "after the servers were away")

	runs, err := f.control.Runs(t.Context(), control.RunFilter{Limit: 10_000})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(runs), 3*count)
	for _, run := range runs {
		require.LessOrEqual(t, run.Started.Sub(run.Scheduled), window+slack, "%s of %s", run.WorkflowID, run.Scheduled)
	}
}
