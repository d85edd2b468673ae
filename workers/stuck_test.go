package workers_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// stuckJob makes a job whose handler, after its first step, ignores requests to stop
// and the end of its context, until the gate opens.
func stuckJob(t *testing.T, key string, schedule job.Trigger, ledger workertest.Book, gate string) job.Job {
	t.Helper()
	j := newJob(t, "RecordSteps", key, schedule, recordSpec{Ledger: string(ledger), Steps: 2, Gate: gate, IgnoreContext: true})
	j.Options.StopGracePeriod = job.Duration(time.Second)
	return j
}

// TestStopDoesNotWaitForAStuckHandler stops a continuous job whose handler does not
// hear. Its process has one slot, which the handler keeps until it returns.
func TestStopDoesNotWaitForAStuckHandler(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	w := startWorker(t, st, "--max-concurrent-runs", "1", "--health-address", "127.0.0.1:0")
	j := stuckJob(t, "loop", continuousEvery(time.Hour), ledger, gate)
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), j))
	ledger.WaitFor(t, "step", 1)
	require.NoError(t, c.Jobs.Stop(t.Context(), j.ID, "by test"))
	state := stoppedState(t, c, j.ID)
	require.Equal(t, "HandlerStuck", state.Recent[0].Class)
	require.Contains(t, state.Recent[0].Error, j.ID+": its handler ignored the end of its context and was given up")
	w.WaitOutput(`level=ERROR msg="the handler ignores its context and is given up; restart this process"`)

	livez := strings.Replace(healthAddress(w), "readyz", "livez", 1)
	code, health := getHealth(t, livez)
	require.Equal(t, http.StatusServiceUnavailable, code, "no slot is left")
	require.EqualValues(t, 1, health.StuckHandlers)
	require.EqualValues(t, 1, health.Running)
	require.True(t, health.RestartNeeded)

	after := newJob(t, "RecordSteps", "after", oneShot(), recordSpec{Ledger: string(ledger), Steps: 1})
	ref := startRun(t, c, after)
	workertest.Open(t, gate)
	requireCompleted(t, c, ref)
	w.WaitOutput("a handler that was given up has ended after all")
	require.Equal(t, 2, ledger.Count(t, "step"), "its second step was not done, but that of the other job")
	stacktest.WaitFor(t, "the process to be well again", func() (bool, error) {
		code, health := getHealth(t, livez)
		return code == http.StatusOK && health.StuckHandlers == 0 && health.Running == 0, nil
	})
}

// TestBoundRunsAvoidAServiceFullOfStuckHandlers has a service announce itself as
// serving whose only slot is held by a handler that was given up.
func TestBoundRunsAvoidAServiceFullOfStuckHandlers(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	startService(t, st, "stuck", "--tag", "zone=north", "--max-concurrent-runs", "1")
	j := stuckJob(t, "loop", continuousEvery(time.Hour), ledger, gate)
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), j))
	ledger.WaitFor(t, "step", 1)
	require.NoError(t, c.Jobs.Stop(t.Context(), j.ID, "by test"))
	stacktest.WaitFor(t, "the service to report its handler", func() (bool, error) {
		services, err := liveServices(t, c)
		return err == nil && len(services) == 1 && services[0].StuckHandlers == 1 && services[0].State == client.ServiceServing, err
	})

	startService(t, st, "well", "--tag", "zone=north")
	var runs []client.RunRef
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		j := bound(t, key, oneShot(), ledger, "", job.FailoverWait)
		j.Spec = newJob(t, "RecordSteps", key, oneShot(), recordSpec{Ledger: string(ledger), Steps: 1}).Spec
		ref := startRun(t, c, j)
		runs = append(runs, ref)
	}
	for _, ref := range runs {
		run := requireCompleted(t, c, ref)
		require.Equal(t, "well", run.Output.Binding.Service)
	}
	workertest.Open(t, gate)
}

// TestStuckHandlerHoldsUpNoQueueAndNoDrain has handlers that do not hear in the
// way of a queue, of a run timeout and of a draining worker.
func TestStuckHandlerHoldsUpNoQueueAndNoDrain(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	first := startWorker(t, st, "--drain-timeout", "10s")

	queue := queuedIn("blocked")
	stuck := stuckJob(t, "stuck", queue, ledger, gate)
	next := newJob(t, "RecordSteps", "next", queue, recordSpec{Ledger: string(ledger), Steps: 1})
	enqueue(t, c, stuck, next)
	slow := stuckJob(t, "slow", oneShot(), ledger, gate)
	slow.Options.RunTimeout = job.Duration(3 * time.Second)
	slow.Options.MaxRetryCount = 3
	timedOut := startRun(t, c, slow)
	drained := stuckJob(t, "drained", oneShot(), ledger, gate)
	drained.Options.StopGracePeriod = job.Duration(time.Hour)
	drained.Options.HeartbeatTimeout = job.Duration(10 * time.Minute) // Nobody waits for that.
	handedOver := startRun(t, c, drained)
	ledger.WaitFor(t, "step", 3)

	_, err := c.Queues.CancelItem(t.Context(), "blocked", stuck.ID)
	require.NoError(t, err)
	workertest.WaitQueue(t, c, "blocked", "the next item to run", func(s *contract.QueueState) bool { return s.Completed == 1 && s.Failed == 1 })
	run := follow(t, c, timedOut)
	require.Equal(t, client.RunFailed, run.Status)
	require.Equal(t, "HandlerStuck", run.Class, "%s: no retry runs beside it", run.Error)

	first.Signal(syscall.SIGTERM)
	require.Zero(t, first.Wait())
	require.Contains(t, first.Output(), "running=3", "all three are still there at the end")
	workertest.Open(t, gate)
	startWorker(t, st)
	run = requireCompleted(t, c, handedOver)
	require.Equal(t, 1, run.Output.Handovers)
	steps := stepsByJob(t, ledger)
	require.Equal(t, map[string]int{stuck.ID: 1, next.ID: 1, slow.ID: 1, drained.ID: 2}, steps, "nothing that needs the context is done after its end")
}

// TestHandlerThatEndsLateIsNotStuck has a handler that returns some time after it was
// cut off, and is tried again.
func TestHandlerThatEndsLateIsNotStuck(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t) // No other worker has its log.
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	w := startWorker(t, st)
	late := stuckJob(t, "late", oneShot(), ledger, gate)
	late.Options.RunTimeout = job.Duration(3 * time.Second)
	late.Options.MaxRetryCount = 1
	late.Options.RetryBackoff = job.Backoff{Initial: job.Duration(100 * time.Millisecond), Max: job.Duration(time.Second), Coefficient: 2}
	ref := startRun(t, c, late)
	w.WaitOutput("is cut off")
	waitOut(t, time.Second)
	workertest.Open(t, gate)
	run := requireCompleted(t, c, ref)
	require.Equal(t, 2, run.Output.Attempts)
	require.NotContains(t, w.Output(), "is given up")
	w.WaitOutput("took longer than its run timeout, PT3S")
}

// TestResultAfterTheRunTimeoutCounts has a handler that ends its work between the request
// to stop and the end of its grace period.
func TestResultAfterTheRunTimeoutCounts(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	startWorker(t, st)
	j := newJob(t, "RecordSteps", "over", oneShot(), recordSpec{Ledger: string(ledger), Steps: 2, Gate: gate, IgnoreStop: true})
	j.Options.RunTimeout = job.Duration(time.Second)
	j.Options.StopGracePeriod = job.Duration(time.Hour)
	j.Options.MaxRetryCount = 0
	ref := startRun(t, c, j)
	ledger.WaitFor(t, "step", 1)
	waitOut(t, 2*time.Second)
	workertest.Open(t, gate)
	run := requireCompleted(t, c, ref)
	require.Equal(t, 1, run.Output.Attempts)
	require.Equal(t, map[string]int{j.ID: 2}, stepsByJob(t, ledger))
}
