package workers_test

import (
	"context"
	"errors"
	"fmt"
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

// terminateQueue does what the Web UI does.
func terminateQueue(t *testing.T, c *client.Client, queue string) {
	t.Helper()
	require.NoError(t, c.Temporal().TerminateWorkflow(t.Context(), contract.QueueWorkflowID(queue), "", "by hand"))
}

// recoverAtOnce has several people recover a queue at once.
func recoverAtOnce(t *testing.T, c *client.Client, queue string) {
	t.Helper()
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() {
			if _, err := c.Queues.Recover(t.Context(), queue); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
}

func runOfQueue(t *testing.T, c *client.Client, queue string) string {
	t.Helper()
	response, err := c.Temporal().DescribeWorkflowExecution(t.Context(), contract.QueueWorkflowID(queue), "")
	require.NoError(t, err)
	return response.GetWorkflowExecutionInfo().GetExecution().GetRunId()
}

// TestQueueIsRecovered terminates a queue with an item at work and overflow pages, and
// recovers it: while the item is at work, and after it has ended.
func TestQueueIsRecovered(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	for name, endsBefore := range map[string]bool{"while-it-runs": false, "after-it-ran": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger := workertest.NewBook(t)
			gate := workertest.NewGate(t)
			jobs := recordJobs(t, name, "i", 40, ledger)
			jobs[2] = newJob(t, "RecordSteps", "gated", queuedIn(name),
				recordSpec{Ledger: string(ledger), Steps: 2, Gate: gate})
			startPaged(t, c, name, 4, contract.QueueState{})
			receipts, err := c.Queues.EnqueueAll(t.Context(), jobs, client.EnqueueOptions{}, func(int) {})
			require.NoError(t, err)
			promised := promise(nil, jobs, receipts)
			ledger.WaitFor(t, "step", 3)
			before := workertest.WaitQueue(t, c, name, "overflow pages", func(s *contract.QueueState) bool { return len(s.Overflow.Pages) > 3 && s.Running.RunID != "" })
			ended := runOfQueue(t, c, name)
			terminateQueue(t, c, name)

			q, err := c.Queues.Get(t.Context(), name)
			require.NoError(t, err)
			require.NotNil(t, q.Ended)
			require.Equal(t, client.RunTerminated, q.Ended.Status)
			require.Equal(t, "by hand", q.Ended.Reason)
			require.NotEmpty(t, q.Ended.By)
			require.Equal(t, ended, q.Ended.RunID)
			require.Equal(t, client.RunRunning, q.Ended.Running)
			require.Equal(t, jobs[2].ID, q.Running.JobID)
			require.Equal(t, before.Depth(), q.Waiting)
			stacktest.WaitFor(t, "the ended queue in the list", func() (bool, error) {
				queues, err := c.Queues.List(t.Context())
				for _, listed := range queues {
					if listed.Name == name {
						return listed.Status == client.RunTerminated && listed.RunID == ended && !listed.Closed.IsZero(), err
					}
				}
				return false, err
			})
			requireEnded(t, c, name, newJob(t, "RecordSteps", "late", jobs[0].Trigger, recordSpec{Ledger: string(ledger), Steps: 1}))
			require.Equal(t, ended, runOfQueue(t, c, name), "nothing has started it")

			if endsBefore {
				workertest.Open(t, gate)
				ledger.WaitFor(t, "end", 3)
			}
			recoverAtOnce(t, c, name)
			run := runOfQueue(t, c, name)
			require.NotEqual(t, ended, run)
			if !endsBefore {
				workertest.WaitQueue(t, c, name, "its item at work", func(s *contract.QueueState) bool { return s.Running != nil && s.Depth() == 37 })
				require.Equal(t, 2, ledger.Count(t, "end"), "nothing starts beside the item at work")
				workertest.Open(t, gate)
			}
			last := newJob(t, "RecordSteps", "last", jobs[0].Trigger, recordSpec{Ledger: string(ledger), Steps: 1})
			receipt, err := c.Queues.Enqueue(t.Context(), last, client.EnqueueOptions{})
			require.NoError(t, err)
			promised = append(promised, acknowledged{receipt.Sequence, last.ID})
			state := waitEmpty(t, c, name)
			require.EqualValues(t, 41, state.Completed)
			recoverAtOnce(t, c, name)
			require.Equal(t, run, runOfQueue(t, c, name), "there was nothing to recover")
			requireSerial(t, promised, ledger)
		})
	}
}

// requireEnded checks that a queue whose workflow has ended takes nothing, and that the
// error says what to do.
func requireEnded(t *testing.T, c *client.Client, queue string, late job.Job) {
	t.Helper()
	refused := map[string]error{}
	_, refused["one job"] = c.Queues.Enqueue(t.Context(), late, client.EnqueueOptions{})
	other := late
	other.ID += "r"
	_, refused["several jobs"] = c.Queues.EnqueueAll(t.Context(), []job.Job{late, other}, client.EnqueueOptions{}, func(int) {})
	_, refused["set"] = c.Queues.SetOnFailure(t.Context(), queue, job.OnFailureHalt)
	_, refused["pause"] = c.Queues.Pause(t.Context(), queue, "lunch")
	_, refused["drain"] = c.Queues.Drain(t.Context(), queue)
	refused["empty"] = c.Queues.AwaitEmpty(t.Context(), queue, func(*client.Queue) {})
	_, refused["turn"] = c.Queues.AwaitTurn(t.Context(), late, 40, func(int) {})
	for what, err := range refused {
		var ended *client.QueueEndedError
		require.ErrorAs(t, err, &ended, what)
		require.Equal(t, client.RunTerminated, ended.Status)
		require.ErrorContains(t, err, fmt.Sprintf("starter queues recover %s starts it again", queue))
	}
}

// TestQueueIsRecoveredWhereverItEnds terminates a queue again and again while producers
// fill it, by messages and by signals, in whatever it does just then: it starts a run,
// starts pages, or has not read a signal yet. What was acknowledged runs once.
func TestQueueIsRecoveredWhereverItEnds(t *testing.T) {
	t.Parallel()
	const producers, items = 3, 15
	random := stacktest.Random(t)
	st := stacktest.StartOwn(t, "--only", "temporal", "--history-events", "100")
	worker := startWorker(t, st)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	const queue = "ended"
	startPaged(t, c, queue, 4, contract.QueueState{})

	var mu sync.Mutex
	var promised []acknowledged
	signaled := recordJobs(t, queue, "s", items, ledger)
	var producing sync.WaitGroup
	for producer := range producers {
		jobs := recordJobs(t, queue, fmt.Sprintf("p%d-", producer), items, ledger)
		producing.Go(func() {
			for _, j := range jobs {
				if receipt, ok := enqueueUntilAnswered(t, c, j); ok {
					mu.Lock()
					promised = append(promised, acknowledged{receipt.Sequence, j.ID})
					mu.Unlock()
				}
			}
		})
	}
	producing.Go(func() {
		for _, j := range signaled {
			stacktest.WaitFor(t, "a signal to be taken", func() (bool, error) {
				return c.Temporal().SignalWorkflow(t.Context(), contract.QueueWorkflowID(queue), "", contract.SignalEnqueue,
					contract.EnqueueRequest{Items: []contract.EnqueueItem{{Job: j}}}) == nil, nil
			})
		}
	})
	for range stacktest.Size(4, 12) {
		ledger.WaitFor(t, "end", min(ledger.Count(t, "end")+random.IntN(8), (producers+1)*items))
		terminateQueue(t, c, queue)
		recoverAtOnce(t, c, queue)
	}
	producing.Wait()
	worker.Kill()
	unread := recordJobs(t, queue, "u", 3, ledger)
	signalAll(t, c, queue, unread)
	signaled = append(signaled, unread...)
	terminateQueue(t, c, queue)
	startWorker(t, st)
	recoverAtOnce(t, c, queue)
	stacktest.WaitWithin(t, 2*time.Minute, "the last item", func() (bool, error) {
		state, err := c.Queues.State(t.Context(), queue)
		return err == nil && state.Running == nil && state.Depth() == 0, nil
	})
	state, err := c.Queues.State(t.Context(), queue)
	require.NoError(t, err)
	require.Nil(t, state.Halted)
	require.Zero(t, state.Failed, "%v", state.Recent)
	ran := requireAlone(t, ledger)
	require.Len(t, ran, producers*items+len(signaled))
	requireOrder(t, ran, bySequence(promised))
	for _, j := range signaled {
		require.Contains(t, ran, j.ID)
	}
}

// enqueueUntilAnswered asks until there is an answer, as a producer does.
func enqueueUntilAnswered(t *testing.T, c *client.Client, j job.Job) (receipt contract.EnqueueReceipt, ok bool) {
	t.Helper()
	stacktest.WaitFor(t, "an acknowledgement of "+j.ID, func() (bool, error) {
		var err error
		receipt, err = c.Queues.Enqueue(t.Context(), j, client.EnqueueOptions{RequestID: j.ID})
		ok = err == nil
		return ok || errors.Is(err, context.Canceled), nil
	})
	return receipt, ok
}
