package schedules_test

import (
	"context"
	"fmt"
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// halfway takes half of the job's interval.
func halfway(ctx context.Context, run job.Run, _ anySpec) (job.Result, error) {
	select {
	case <-time.After(run.Job().Recurring.RecurEvery.Std() / 2):
		return job.Result{}, nil
	case <-ctx.Done():
		return job.Result{}, ctx.Err()
	}
}

// begunSince is the least that any of the jobs has begun since a time.
func (f *fixture) begunSince(jobs []job.Job, since time.Time) int {
	least := math.MaxInt
	for _, j := range jobs {
		n := 0
		for _, call := range f.ledger.Calls(j.ID) {
			if call.Began.After(since) {
				n++
			}
		}
		least = min(least, n)
	}
	return least
}

// clashes are the calls that began while another of their job was at work.
func (f *fixture) clashes() []workertest.Call {
	var found []workertest.Call
	before := map[string]workertest.Call{}
	for _, call := range f.ledger.Calls("") {
		if other, ok := before[call.JobID]; ok && (other.Ended.IsZero() || call.Began.Before(other.Ended)) {
			found = append(found, call)
		}
		before[call.JobID] = call
	}
	return found
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
	st := stacktest.StartOwn(t, "--only", "temporal")
	f := startHandler(t, st, halfway)
	var jobs []job.Job
	for n := range count {
		jobs = append(jobs, declare(fmt.Sprintf("j%02d", n), job.Trigger{Recurring: &job.Recurring{
			RecurEvery: job.Duration(every), CatchupWindow: job.Duration(window),
		}}))
	}
	f.apply(f.plan(false, jobs...))
	goOn := func(since time.Time) {
		stacktest.WaitWithin(t, longWait, "two runs of each job", func() (bool, error) {
			return f.begunSince(jobs, since) >= 2, nil
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
		require.Empty(t, f.clashes(), "after %s", fault.what)
	}

	runs, err := f.client.Runs.List(t.Context(), client.RunFilter{})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(runs), 3*count)
	for _, run := range runs {
		require.LessOrEqual(t, run.Started.Sub(run.Scheduled), window+slack, "%s of %s", run.WorkflowID, run.Scheduled)
	}
}
