package workers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// TestFailedRunIsInTheHistoryAndRetried has a run fail, be canceled and be
// terminated, each after its first step, and go on where it was.
func TestFailedRunIsInTheHistoryAndRetried(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t) // No other worker takes its runs and hands them over.
	startWorker(t, st)
	c := newControl(t, st)
	for status, end := range map[client.RunStatus]func(client.RunRef) error{
		client.RunFailed:     func(client.RunRef) error { return nil },
		client.RunCanceled:   func(ref client.RunRef) error { return c.Runs.Cancel(t.Context(), ref, "by test") },
		client.RunTerminated: func(ref client.RunRef) error { return c.Runs.Terminate(t.Context(), ref, "by test") },
	} {
		t.Run(string(status), func(t *testing.T) {
			ledger := workertest.NewBook(t)
			gate, broken := workertest.NewGate(t), filepath.Join(t.TempDir(), "broken")
			if status == client.RunFailed {
				workertest.Open(t, broken)
			}
			j := newJob(t, "RecordSteps", "a", oneShot(), recordSpec{Ledger: string(ledger), Steps: 3, Gate: gate, Broken: broken})
			j.Options.Tags = map[string]string{"test": string(status)}
			ref := startRun(t, c, j)
			if status != client.RunFailed {
				waitFirstStep(t, c, ref)
				_, err := c.Runs.Retry(t.Context(), ref)
				require.ErrorIs(t, err, client.ErrNotRetried, "it has not ended")
			}
			require.NoError(t, end(ref))
			detail := follow(t, c, ref)
			require.Equal(t, status, detail.Status)
			require.JSONEq(t, "1", string(detail.Cursor))

			row := listed(t, c, ref, status)
			require.False(t, row.LastUpdate.IsZero())
			if status != client.RunTerminated { // Which nothing can say more of than Temporal itself.
				require.Equal(t, 1, row.Attempts)
				require.Contains(t, row.Worker, "testing@")
				require.False(t, row.Taken.Before(row.Started))
			}
			if status == client.RunFailed {
				require.Equal(t, "Broken", row.Class)
				require.Equal(t, "broken after step 1", row.Error)
				require.NoError(t, os.Remove(broken))
			} else {
				require.Empty(t, row.Error)
			}
			if status == client.RunTerminated {
				require.Regexp(t, `^terminated by \S+: by test$`, detail.Error)
			}
			tagged, err := c.Runs.List(t.Context(), client.RunFilter{Tags: map[string]string{"test": string(status)}})
			require.NoError(t, err)
			require.Equal(t, ref, tagged[len(tagged)-1].RunRef)

			workertest.Open(t, gate)
			retried, err := c.Runs.Retry(t.Context(), ref)
			require.NoError(t, err)
			again, err := c.Runs.Retry(t.Context(), ref)
			require.NoError(t, err)
			require.Equal(t, retried.Run, again.Run, "asked twice, it runs once")
			require.Equal(t, client.RunCompleted, follow(t, c, retried.Run).Status)
			require.Equal(t, []int{2, 3}, steps(t, ledger, retried.Run.RunID), "it goes on at the cursor")
			done := listed(t, c, retried.Run, client.RunCompleted)
			require.Equal(t, ref.RunID, done.RetryOf)
			require.Equal(t, map[string]int64{"steps": 3}, done.Counts)
			require.Equal(t, "all steps done", done.Message)
			_, err = c.Runs.Retry(t.Context(), retried.Run)
			require.ErrorIs(t, err, client.ErrNotRetried, "it completed")
		})
	}
}

func TestQueuedRunIsRetriedInItsQueue(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	broken := filepath.Join(t.TempDir(), "broken")
	workertest.Open(t, broken)
	j := newJob(t, "RecordSteps", "a", queuedIn("retried"),
		recordSpec{Ledger: string(ledger), Steps: 2, Broken: broken})
	receipt, err := c.Queues.Enqueue(t.Context(), j, client.EnqueueOptions{})
	require.NoError(t, err)
	turn, err := c.Queues.AwaitTurn(t.Context(), j, receipt.Sequence, func(int) {})
	require.NoError(t, err)
	failed := follow(t, c, *turn.Run)
	require.Equal(t, client.RunFailed, failed.Status)

	require.NoError(t, os.Remove(broken))
	dead := func(n int) { // The queue hears of the end a moment after it.
		workertest.WaitQueue(t, c, "retried", fmt.Sprintf("%d dead letters", n), func(s *contract.QueueState) bool { return len(s.DeadLetters) == n })
	}
	dead(1)
	retried, err := c.Runs.Retry(t.Context(), failed.RunRef)
	require.NoError(t, err)
	require.Equal(t, receipt.Sequence+1, retried.Receipt.Sequence)
	dead(0) // What is tried again is no dead letter any more.
	turn, err = c.Queues.AwaitTurn(t.Context(), j, retried.Receipt.Sequence, func(int) {})
	require.NoError(t, err)
	done := follow(t, c, *turn.Run)
	require.Equal(t, client.RunCompleted, done.Status)
	require.Equal(t, failed.RunID, done.RetryOf)
	require.Equal(t, []int{2}, steps(t, ledger, done.RunID), "it goes on at the cursor")
	again, err := c.Runs.Retry(t.Context(), failed.RunRef)
	require.NoError(t, err)
	require.True(t, again.ExistedBefore)
	require.Equal(t, done.RunRef, again.Run)
}

// TestDeadLetterGoesOnAtItsCursor retries an item that failed from the list of
// dead letters.
func TestDeadLetterGoesOnAtItsCursor(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	broken := filepath.Join(t.TempDir(), "broken")
	workertest.Open(t, broken)
	j := newJob(t, "RecordSteps", "a", queuedIn("dead"),
		recordSpec{Ledger: string(ledger), Steps: 3, Broken: broken})
	var letters []contract.DeadLetter
	for n := range 2 {
		_, err := c.Queues.Enqueue(t.Context(), j, client.EnqueueOptions{AllowRerun: true})
		require.NoError(t, err)
		stacktest.WaitFor(t, "a dead letter", func() (bool, error) {
			state, err := c.Queues.State(t.Context(), "dead")
			if err == nil {
				letters = state.DeadLetters
			}
			return len(letters) == n+1, err
		})
	}
	require.NoError(t, os.Remove(broken))
	outcome, err := c.Queues.RetryDead(t.Context(), "dead", letters, func(int, int) {})
	require.NoError(t, err)
	require.Len(t, outcome.Receipts, 1, "of two letters of one job and spec the latest counts")
	state := waitEmpty(t, c, "dead")
	require.Empty(t, state.DeadLetters)
	require.EqualValues(t, 1, state.Completed)
	require.Equal(t, []int{1, 1, 2, 3}, steps(t, ledger, ""))
}

// TestHaltedQueueGoesOnAtTheCursor resumes a queue over an item that failed, whether
// the queue awaited its run, or watches it since it has continued as new.
func TestHaltedQueueGoesOnAtTheCursor(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	for name, begin := range map[string]func(job.Job){
		"halts-awaited": func(j job.Job) {
			enqueue(t, c, j)
		},
		"halts-watched": func(j job.Job) {
			attributes, err := contract.Attributes(j)
			require.NoError(t, err)
			run, err := c.Temporal().ExecuteWorkflow(t.Context(), sdk.StartWorkflowOptions{
				ID: contract.JobWorkflowID(j.ID), TaskQueue: contract.TaskQueue(j.Worker), TypedSearchAttributes: attributes,
			}, contract.RunJobType, contract.RunInput{Job: j, StartedBy: contract.StartedByQueue})
			require.NoError(t, err)
			startPaged(t, c, j.Queue(), 4, contract.QueueState{Accepted: 1, Running: &contract.RunningItem{
				QueueItem: contract.QueueItem{Sequence: 1, Job: j}, RunID: run.GetRunID(),
			}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			ledger := workertest.NewBook(t)
			broken := filepath.Join(t.TempDir(), "broken")
			workertest.Open(t, broken)
			j := newJob(t, "RecordSteps", name, job.Trigger{Queued: &job.Queued{Queue: name, OnFailure: job.OnFailureHalt}},
				recordSpec{Ledger: string(ledger), Steps: 3, Broken: broken})
			begin(j)
			halted := func(failed int64) *contract.QueueState {
				return workertest.WaitQueue(t, c, name, "a halt", func(s *contract.QueueState) bool { return s.Halted != nil && s.Failed == failed })
			}
			first := halted(1).Halted.RunID
			_, err := c.Queues.Resume(t.Context(), name)
			require.NoError(t, err)
			halt := halted(2).Halted // It fails again one step further.
			require.NotEqual(t, first, halt.RunID)
			run, err := c.Runs.Get(t.Context(), client.RunRef{WorkflowID: contract.JobWorkflowID(j.ID), RunID: halt.RunID})
			require.NoError(t, err)
			require.Equal(t, first, run.RetryOf)
			require.NoError(t, os.Remove(broken))
			_, err = c.Queues.Resume(t.Context(), name)
			require.NoError(t, err)
			state := waitEmpty(t, c, name)
			require.EqualValues(t, 1, state.Completed)
			require.Equal(t, []int{1, 2, 3}, steps(t, ledger, ""))
		})
	}
}

func TestRunWaitsForItsTime(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	j := newJob(t, "RecordSteps", "a", oneShot(), recordSpec{Ledger: string(ledger), Steps: 1})
	at := time.Now().Add(time.Hour)
	ref, err := c.Runs.StartAt(t.Context(), j, contract.StartedByHand, client.StartOptions{At: at})
	require.NoError(t, err)
	again, err := c.Runs.StartAt(t.Context(), j, contract.StartedByHand, client.StartOptions{At: at})
	require.NoError(t, err)
	require.Equal(t, ref, again, "there is one run of a one-shot")
	_, err = c.Runs.StartAt(t.Context(), j, contract.StartedByHand, client.StartOptions{At: at.Add(time.Hour)})
	require.ErrorContains(t, err, "waits until")
	row := listed(t, c, ref, client.RunWaiting)
	require.WithinDuration(t, at, row.Scheduled, 10*time.Second, "as late as the request came")
	require.Zero(t, row.Lateness)
	detail, err := c.Jobs.Get(t.Context(), j.ID)
	require.NoError(t, err)
	require.Equal(t, client.JobWaiting, detail.Row.Status)
	require.WithinDuration(t, row.Scheduled, detail.Row.Next, time.Millisecond, "lists round")

	require.NoError(t, c.Runs.Cancel(t.Context(), ref, "by test"))
	require.Equal(t, client.RunCanceled, follow(t, c, ref).Status)
	require.Empty(t, ledger.Read(t), "it has not begun")

	soon := time.Now().Add(2 * time.Second)
	ref, err = c.Runs.StartAt(t.Context(), j, contract.StartedByHand, client.StartOptions{At: soon})
	require.NoError(t, err)
	done := requireCompleted(t, c, ref)
	require.False(t, ledger.Read(t)[0].At.Before(soon.Add(-100*time.Millisecond)), "clocks differ by little")
	require.Equal(t, done.Taken.Sub(done.Scheduled), done.Lateness.Std())
}
