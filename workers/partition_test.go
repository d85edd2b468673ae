package workers_test

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
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
	ledger := newLedger(t)
	gate := filepath.Join(t.TempDir(), "gate")
	cable := newCable(t, st.Temporal)
	first := startWorker(t, st, "--address", cable.Address)
	schedule := job.Trigger{Queued: &job.Queued{Queue: "partition"}}
	held := mortal(newJob(t, "Tick", "held", schedule, tickSpec{Ledger: string(ledger), Gate: gate, IgnoreStop: true}))
	held.Options.StopGracePeriod = job.Duration(time.Hour) // It is no use to ask this one.
	held.Options.MaxRetryCount = 20                        // A server may give it to the requests of a worker that is cut off.
	held.Options.RetryBackoff = job.Backoff{Initial: job.Duration(100 * time.Millisecond), Max: job.Duration(time.Second), Coefficient: 2}
	next := mortal(newJob(t, "RecordSteps", "next", schedule, recordSpec{Ledger: string(ledger), Steps: 1}))
	for _, j := range []job.Job{held, next} {
		_, err := c.Queues.Enqueue(t.Context(), j, client.EnqueueOptions{})
		require.NoError(t, err)
	}
	ledger.waitFor(t, "tick", 3)
	second := startWorker(t, st)
	cable.Cut()
	stacktest.WaitFor(t, "the second worker", func() (bool, error) { return ledger.doneBy(t, held.ID)[second.PID()], nil })
	cable.Mend()
	first.WaitOutput("RunLost") // The worker that was cut off hears of it, or of runs that lay about for it.
	open(t, gate)
	stacktest.WaitFor(t, "the queue to be empty", func() (bool, error) {
		state, err := c.Queues.State(t.Context(), "partition")
		return err == nil && state.Completed == 2 && state.Failed == 0, err
	})

	var order []string
	cutOff := 0
	for _, e := range ledger.read(t) {
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
	ref, err := c.Runs.Start(t.Context(), last, contract.StartedByHand)
	require.NoError(t, err)
	_, err = c.Runs.Follow(t.Context(), ref, func(*client.RunDetail) {})
	require.NoError(t, err)
	require.Equal(t, map[int]bool{first.PID(): true}, ledger.doneBy(t, last.ID))
}

// TestShortCutDoesNotLoseTheRun takes the connection away for less than the
// heartbeat timeout, but for longer than a heartbeat and its answer may take.
func TestShortCutDoesNotLoseTheRun(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	cable := newCable(t, st.Temporal)
	startWorker(t, st, "--address", cable.Address)
	for name, cut := range map[string]func(){"silent": cable.Cut, "refused": cable.Break} {
		ledger := newLedger(t)
		gate := filepath.Join(t.TempDir(), "gate")
		j := newJob(t, "Tick", name, oneShot(), tickSpec{Ledger: string(ledger), Gate: gate})
		j.Options.HeartbeatTimeout = job.Duration(15 * time.Second)
		ref, err := c.Runs.Start(t.Context(), j, contract.StartedByHand)
		require.NoError(t, err)
		ledger.waitFor(t, "tick", 1)
		cut()
		waitOut(t, 3500*time.Millisecond) // A heartbeat is sent every two seconds.
		cable.Mend()
		waitOut(t, 2*time.Second)
		ledger.waitFor(t, "tick", ledger.count(t, "tick")+1)
		open(t, gate)
		run, err := c.Runs.Follow(t.Context(), ref, func(*client.RunDetail) {})
		require.NoError(t, err)
		require.Equal(t, client.RunCompleted, run.Status, run.Error)
		require.Equal(t, 1, run.Output.Attempts, name)
		require.Zero(t, run.Output.Handovers, name)
		require.Zero(t, ledger.count(t, "stop"), "%s: nobody asked it to stop", name)
		require.Equal(t, 1, ledger.count(t, "start"), name)
	}
}
