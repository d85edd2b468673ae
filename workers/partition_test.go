package workers_test

import (
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

// TestCutOffWorkerStopsBeforeAnotherBegins cuts a worker off from Temporal in the
// middle of a queue's running item, lets another one take over, and mends the
// connection. The heartbeat timeout is four seconds, and the cut lasts as long as
// the other worker needs to begin: longer in any case.
func TestCutOffWorkerStopsBeforeAnotherBegins(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	proxy := newProxy(t, st.Temporal)
	first := startWorker(t, st, "--address", proxy.Address)
	schedule := queuedIn("partition")
	held := withShortTimeout(newJob(t, "Tick", "held", schedule, tickSpec{Ledger: string(ledger), Gate: gate, IgnoreStop: true}))
	held.Options.StopGracePeriod = job.Duration(time.Hour) // It is no use to ask this one.
	held.Options.MaxRetryCount = 20                        // A server may give it to the requests of a worker that is cut off.
	held.Options.RetryBackoff = job.Backoff{Initial: job.Duration(100 * time.Millisecond), Max: job.Duration(time.Second), Coefficient: 2}
	next := withShortTimeout(newJob(t, "RecordSteps", "next", schedule, recordSpec{Ledger: string(ledger), Steps: 1}))
	enqueue(t, c, held, next)
	ledger.WaitFor(t, "tick", 3)
	second := startWorker(t, st)
	proxy.Cut()
	stacktest.WaitFor(t, "the second worker", func() (bool, error) { return doneBy(t, ledger, held.ID)[second.PID()], nil })
	proxy.Restore()
	first.WaitOutput("RunLost") // The worker that was cut off hears of it, or of runs that lay about for it.
	workertest.Open(t, gate)
	workertest.WaitQueue(t, c, "partition", "its end", func(s *contract.QueueState) bool { return s.Completed == 2 && s.Failed == 0 })

	var order []string
	cutOff := 0
	for _, e := range ledger.Read(t) {
		who := e.JobID + map[int]string{first.PID(): " first", second.PID(): " second"}[e.PID]
		if len(order) == 0 || order[len(order)-1] != who {
			order = append(order, who)
		}
		if e.What == "cut off" {
			require.Equal(t, first.PID(), e.PID)
			cutOff++
		}
	}
	require.Equal(t, 1, cutOff)
	require.Equal(t, []string{held.ID + " first", held.ID + " second"}, order[:2], "never two at once")
	require.Len(t, order, 3)
	runs, err := c.Runs.List(t.Context(), client.RunFilter{JobID: held.ID})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	run, err := c.Runs.Get(t.Context(), runs[0].RunRef)
	require.NoError(t, err)
	require.Equal(t, "done", run.Output.Message, "not the late result of the first attempt")

	// The worker that came back works like any other.
	second.Signal(syscall.SIGTERM)
	require.Zero(t, second.Wait())
	last := newJob(t, "RecordSteps", "last", oneShot(), recordSpec{Ledger: string(ledger), Steps: 1})
	ref := startRun(t, c, last)
	follow(t, c, ref)
	require.Equal(t, map[int]bool{first.PID(): true}, doneBy(t, ledger, last.ID))
}

// TestShortCutDoesNotLoseTheRun takes the connection away for less than the
// heartbeat timeout, but for longer than a heartbeat and its answer may take.
func TestShortCutDoesNotLoseTheRun(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	proxy := newProxy(t, st.Temporal)
	startWorker(t, st, "--address", proxy.Address)
	for name, cut := range map[string]func(){"silent": proxy.Cut, "refused": proxy.Break} {
		ledger := workertest.NewBook(t)
		gate := workertest.NewGate(t)
		j := newJob(t, "Tick", name, oneShot(), tickSpec{Ledger: string(ledger), Gate: gate})
		j.Options.HeartbeatTimeout = job.Duration(15 * time.Second)
		ref := startRun(t, c, j)
		ledger.WaitFor(t, "tick", 1)
		cut()
		waitOut(t, 3500*time.Millisecond) // A heartbeat is sent every two seconds.
		proxy.Restore()
		waitOut(t, 2*time.Second)
		ledger.WaitFor(t, "tick", ledger.Count(t, "tick")+1)
		workertest.Open(t, gate)
		run := requireCompleted(t, c, ref)
		require.Equal(t, 1, run.Output.Attempts, name)
		require.Zero(t, run.Output.Handovers, name)
		require.Zero(t, ledger.Count(t, "stop"), "%s: nobody asked it to stop", name)
		require.Equal(t, 1, ledger.Count(t, "start"), name)
	}
}
