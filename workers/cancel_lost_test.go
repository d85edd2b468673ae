package workers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// TestCancelOfAnItemWhoseWorkerDies cancels the running item of a queue that halts
// over failures, and kills the item's worker before it has answered: nobody failed.
func TestCancelOfAnItemWhoseWorkerDies(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	worker := startWorker(t, st)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	const queue = "canceled"
	schedule := job.Trigger{Queued: &job.Queued{Queue: queue, OnFailure: job.OnFailureHalt}}
	canceled := withShortTimeout(newJob(t, "RecordSteps", "canceled", schedule,
		recordSpec{Ledger: string(ledger), Steps: 2, Gate: workertest.NewGate(t), IgnoreStop: true}))
	canceled.Options.StopGracePeriod = job.Duration(5 * time.Minute)
	next := newJob(t, "RecordSteps", "next", schedule, recordSpec{Ledger: string(ledger), Steps: 1})
	_, err := c.Queues.EnqueueAll(t.Context(), []job.Job{canceled, next}, client.EnqueueOptions{}, func(int) {})
	require.NoError(t, err)
	ledger.WaitFor(t, "step", 1)
	ref := client.RunRef{WorkflowID: contract.JobWorkflowID(canceled.ID)}
	stacktest.WaitFor(t, "a heartbeat with the position", func() (bool, error) {
		run, err := c.Runs.Get(t.Context(), ref)
		return err == nil && string(run.Cursor) == "1", err
	})
	receipt, err := c.Queues.CancelItem(t.Context(), queue, canceled.ID)
	require.NoError(t, err)
	require.True(t, receipt.Running)
	stacktest.WaitFor(t, "the request to reach the activity", func() (bool, error) {
		run, err := c.Temporal().DescribeWorkflowExecution(t.Context(), ref.WorkflowID, "")
		pending := run.GetPendingActivities()
		return len(pending) == 1 && pending[0].GetState() == enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED, err
	})
	worker.Kill()
	startWorker(t, st)
	ledger.WaitFor(t, "end", 1)
	state := waitEmpty(t, c, queue)
	require.EqualValues(t, 1, state.Canceled)
	require.EqualValues(t, 1, state.Completed)
	require.Zero(t, state.Failed)
	require.Nil(t, state.Halted)
	require.Empty(t, state.DeadLetters)
	run, err := c.Runs.Get(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, client.RunCanceled, run.Status)
	require.JSONEq(t, `1`, string(run.Cursor), "the position that it had reached")
	require.NotEmpty(t, run.Worker)
	details, err := currentDetails(t, c, canceled.ID)
	require.NoError(t, err)
	require.Contains(t, details, "canceled")
	require.NotContains(t, details, "failed")
	require.Equal(t, 2, ledger.Count(t, "start"), "the canceled run was given to nobody else")
}

// TestCancelOfARunThatFailsThen cancels a run whose attempt fails before it has
// stopped. The attempt would have had another one, so that the run did not fail.
func TestCancelOfARunThatFailsThen(t *testing.T) {
	t.Parallel()
	c := newControl(t, startShared(t))
	j := newJob(t, "LeaveMuch", "hung-up", oneShot(), leaveSpec{Until: "stopped and failed"})
	ref := startRun(t, c, j)
	stacktest.WaitFor(t, "the handler to be at work", func() (bool, error) {
		run, err := c.Runs.Get(t.Context(), ref)
		return err == nil && run.Worker != "", err
	})
	require.NoError(t, c.Runs.Cancel(t.Context(), ref, "by a test"))
	run := follow(t, c, ref)
	require.Equal(t, client.RunCanceled, run.Status)
	require.Contains(t, run.Message, "the vendor hung up")
	require.JSONEq(t, `7`, string(run.Cursor))
	require.Empty(t, run.Error)
}
