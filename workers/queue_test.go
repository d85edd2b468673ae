package workers_test

import (
	"fmt"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// acknowledged is an item that a caller was promised.
type acknowledged struct {
	sequence int64
	jobID    string
}

// enqueueAll puts n items into one queue, by callers at once. A caller that gets
// an error asks again with the same job id, as a producer does.
func enqueueAll(t *testing.T, c *client.Client, queue string, n, callers int, ledger workertest.Book) []acknowledged {
	t.Helper()
	var mu sync.Mutex
	var promised []acknowledged
	var wait sync.WaitGroup
	for caller := range callers {
		wait.Go(func() {
			for i := caller; i < n; i += callers {
				j := withShortTimeout(newJob(t, "RecordSteps", fmt.Sprintf("i%04d", i), queuedIn(queue),
					recordSpec{Ledger: string(ledger), Steps: 1}))
				var receipt contract.EnqueueReceipt
				stacktest.WaitFor(t, "an acknowledgement of "+j.ID, func() (bool, error) {
					var err error
					receipt, err = c.Queues.Enqueue(t.Context(), j, client.EnqueueOptions{})
					return err == nil, nil
				})
				mu.Lock()
				promised = append(promised, acknowledged{receipt.Sequence, j.ID})
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	sort.Slice(promised, func(a, b int) bool { return promised[a].sequence < promised[b].sequence })
	return promised
}

// requireSerial checks the ledger against what was promised: every item ran, in
// one run only, in the promised order, and no two at once.
func requireSerial(t *testing.T, promised []acknowledged, ledger workertest.Book) {
	t.Helper()
	order := requireAlone(t, ledger)
	require.Len(t, order, len(promised))
	for i, item := range promised {
		require.EqualValues(t, i+1, item.sequence, "sequence numbers are without gaps")
		require.Equal(t, item.jobID, order[i])
	}
}

// requireAlone checks that every job of the ledger ran in one run only, to its end,
// and no two at once. It gives the jobs in the order in which they ran.
func requireAlone(t *testing.T, ledger workertest.Book) []string {
	t.Helper()
	var order []string
	runs := map[string]string{}
	ended := map[string]bool{}
	for _, e := range ledger.Read(t) {
		switch e.What {
		case "start":
			if run, seen := runs[e.JobID]; seen {
				require.Equal(t, run, e.RunID, "job %s ran twice", e.JobID)
				require.Equal(t, order[len(order)-1], e.JobID, "job %s started again after its turn", e.JobID)
				continue
			}
			if len(order) > 0 {
				require.True(t, ended[order[len(order)-1]], "job %s started before %s had ended", e.JobID, order[len(order)-1])
			}
			runs[e.JobID] = e.RunID
			order = append(order, e.JobID)
		case "end":
			ended[e.JobID] = true
		}
	}
	require.Len(t, ended, len(order))
	return order
}

// requireOrder checks that some of the jobs that ran did so in their order.
func requireOrder(t *testing.T, ran []string, some []acknowledged) {
	t.Helper()
	place := make(map[string]int, len(ran))
	for i, id := range ran {
		place[id] = i + 1
	}
	before := 0
	for _, item := range some {
		require.Greater(t, place[item.jobID], before, "job %s has not run in its place", item.jobID)
		before = place[item.jobID]
	}
}

func TestQueueSurvivesKillsOfWorkerAndStack(t *testing.T) {
	t.Parallel()
	const callers = 8
	items := stacktest.Size(100, 400)
	random := stacktest.Random(t)

	st := stacktest.StartOwn(t, "--only", "temporal")
	worker := startWorker(t, st)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	var promised []acknowledged
	var enqueuing sync.WaitGroup
	enqueuing.Go(func() { promised = enqueueAll(t, c, "killed", items, callers, ledger) })

	ledger.WaitFor(t, "end", 5+random.IntN(20))
	worker.Kill()
	worker = startWorker(t, st)
	ledger.WaitFor(t, "end", 30+random.IntN(20))
	st.Kill()
	st.Restart(t)
	ledger.WaitFor(t, "end", 55+random.IntN(20))
	worker.Kill()
	st.Kill()
	st.Restart(t)
	startWorker(t, st)
	enqueuing.Wait()
	stacktest.WaitWithin(t, 3*time.Minute, "the last item", func() (bool, error) {
		state, err := c.Queues.State(t.Context(), "killed")
		if err != nil {
			return false, nil //nolint:nilerr // The worker may not have the workflow yet.
		}
		return state.Completed == int64(items), nil
	})
	requireSerial(t, promised, ledger)
}

// TestQueueDoesNotWaitForATerminatedRun terminates the running item, which does
// not hear of it but by its heartbeat: the queue goes on, but not before.
func TestQueueDoesNotWaitForATerminatedRun(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	schedule := queuedIn("terminated")
	stuck := withShortTimeout(newJob(t, "RecordSteps", "stuck", schedule, recordSpec{
		Ledger: string(ledger), Steps: 2, Gate: workertest.NewGate(t), IgnoreStop: true, LogEnd: true,
	}))
	next := newJob(t, "RecordSteps", "next", schedule, recordSpec{Ledger: string(ledger), Steps: 1, LogEnd: true})
	enqueue(t, c, stuck, next)
	ledger.WaitFor(t, "step", 1)
	require.NoError(t, c.Temporal().TerminateWorkflow(t.Context(), contract.JobWorkflowID(stuck.ID), "", "by test"))
	workertest.WaitQueue(t, c, "terminated", "to wait for the handler", func(s *contract.QueueState) bool { return s.Stopping != nil && s.Stopping.JobID == stuck.ID })
	ledger.WaitFor(t, "end", 1)
	workertest.WaitQueue(t, c, "terminated", "its end", func(s *contract.QueueState) bool {
		return s.Running == nil && s.Failed == 1 && s.Completed == 1 && s.Stopping == nil
	})
	var order []string
	for _, e := range ledger.Read(t) {
		if e.What == "start" || e.What == "left" {
			order = append(order, e.What+" "+e.JobID)
		}
	}
	require.Equal(t, []string{"start " + stuck.ID, "left " + stuck.ID, "start " + next.ID, "left " + next.ID}, order,
		"never two handlers at once")
}

// TestQueueWaitsForTheHandlerOfADeletedRun has a queue, which has continued as new,
// watch a run that someone has deleted: its handler may be at work still.
func TestQueueWaitsForTheHandlerOfADeletedRun(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	deleted := newJob(t, "RecordSteps", "deleted", queuedIn("deleted"),
		recordSpec{Ledger: string(workertest.NewBook(t)), Steps: 1})
	deleted.Options.HeartbeatTimeout = job.Duration(time.Minute)
	startPaged(t, c, "deleted", 4, contract.QueueState{Accepted: 1, Running: &contract.RunningItem{
		QueueItem: contract.QueueItem{Sequence: 1, Job: deleted}, RunID: "00000000-0000-4000-8000-000000000000",
	}})
	state := workertest.WaitQueue(t, c, "deleted", "the wait for the handler", func(s *contract.QueueState) bool { return s.Stopping != nil })
	require.Equal(t, deleted.ID, state.Stopping.JobID)
	require.Nil(t, state.Running)
	require.EqualValues(t, 1, state.Failed)
	require.Contains(t, state.Recent[0].Error, "is not there any more")
}

// TestQueueKnowsARepeatedItem puts one job into a queue by fifty callers at once:
// while it runs, and with a handler so fast that it has run before many have called.
func TestQueueKnowsARepeatedItem(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	for _, gated := range []bool{true, false} {
		queue := map[bool]string{true: "repeated", false: "repeated-fast"}[gated]
		ledger := workertest.NewBook(t)
		spec := recordSpec{Ledger: string(ledger), Steps: 2}
		if gated {
			spec.Gate = workertest.NewGate(t)
		}
		j := newJob(t, "RecordSteps", queue, queuedIn(queue), spec)
		const callers = 50
		receipts := fromAll(t, callers, func() (contract.EnqueueReceipt, error) {
			receipt, err := c.Queues.Enqueue(t.Context(), j, client.EnqueueOptions{})
			return receipt, err
		})
		if gated {
			require.Equal(t, map[contract.EnqueueReceipt]int{
				{Sequence: 1}:                  1,
				{Sequence: 1, Duplicate: true}: callers - 1,
			}, receipts, "all callers are given the same place")
			workertest.Open(t, spec.Gate)
		}
		// One that has run is given a place again, and skipped at its turn.
		waitEmpty(t, c, queue)
		require.Len(t, runsIn(t, ledger), 1)
		stacktest.WaitFor(t, "the run in the list", func() (bool, error) {
			runs, err := c.Runs.List(t.Context(), client.RunFilter{JobID: j.ID})
			return err == nil && len(runs) == 1 && runs[0].RunID == ledger.Read(t)[0].RunID, err
		})
	}
}

// runsIn gives the runs in a ledger. The worker of another test may hand a
// run over, which then starts twice.
func runsIn(t *testing.T, ledger workertest.Book) map[string]bool {
	t.Helper()
	runs := map[string]bool{}
	for _, e := range ledger.Read(t) {
		runs[e.RunID] = true
	}
	return runs
}

// fromAll calls from so many at once, and counts what they are given. Who hears that Temporal
// does not answer in time asks again, as every caller may.
func fromAll[T comparable](t *testing.T, callers int, call func() (T, error)) map[T]int {
	t.Helper()
	var mu sync.Mutex
	given := map[T]int{}
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			value, err := call()
			for client.Busy(err) && t.Context().Err() == nil {
				value, err = call()
			}
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			given[value]++
		})
	}
	wait.Wait()
	return given
}

// TestCallersAtOnceAreGivenOneRun starts one job by fifty callers at once: while it
// runs, and with a handler so fast that it has run before many have called.
func TestCallersAtOnceAreGivenOneRun(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	for _, gated := range []bool{true, false} {
		ledger := workertest.NewBook(t)
		spec := recordSpec{Ledger: string(ledger), Steps: 2}
		if gated {
			spec.Gate = workertest.NewGate(t)
		}
		j := newJob(t, "RecordSteps", fmt.Sprintf("gated-%t", gated), oneShot(), spec)
		const callers = 50
		given := fromAll(t, callers, func() (client.RunRef, error) {
			once, err := c.Runs.StartOnce(t.Context(), j, contract.StartedByHand, time.Time{})
			return once.RunRef, err
		})
		require.Len(t, given, 1, "all callers are given the same run")
		if gated {
			workertest.Open(t, spec.Gate)
		}
		for ref, times := range given {
			require.Equal(t, callers, times)
			requireCompleted(t, c, ref)
			require.Equal(t, map[string]bool{ref.RunID: true}, runsIn(t, ledger))
		}
		once, err := c.Runs.StartOnce(t.Context(), j, contract.StartedByHand, time.Time{})
		require.NoError(t, err)
		require.Equal(t, client.Once{RunRef: once.RunRef, ExistedBefore: true, Status: client.RunCompleted}, once)
		require.Contains(t, given, once.RunRef)

		other := j
		other.Spec = job.EncodeJSON(recordSpec{Ledger: string(ledger), Steps: 3})
		_, err = c.Runs.StartOnce(t.Context(), other, contract.StartedByHand, time.Time{})
		require.ErrorIs(t, err, client.ErrOtherSpec)
		again, err := c.Runs.Start(t.Context(), other, contract.StartedByHand)
		require.NoError(t, err, "someone wants it again")
		require.NotContains(t, given, again)
		follow(t, c, again)
	}
}

// What failed is started again, what has completed is not.
func TestAFailedOneShotIsStartedAgain(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	j := newJob(t, "RecordSteps", "fails", oneShot(), recordSpec{Ledger: string(workertest.NewBook(t)), Fail: "Refused"})
	given := map[client.RunRef]bool{}
	for range 2 {
		once, err := c.Runs.StartOnce(t.Context(), j, contract.StartedByHand, time.Time{})
		require.NoError(t, err)
		require.False(t, once.ExistedBefore)
		given[once.RunRef] = true
		run := follow(t, c, once.RunRef)
		require.Equal(t, client.RunFailed, run.Status)
	}
	require.Len(t, given, 2)
}
