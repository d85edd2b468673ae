package workers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// A run of a recurring job that skips starts does nothing while the run of an earlier
// start is at work, which its Schedule may have forgotten.
func TestRunGivesWayToTheRunOfAnEarlierStart(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := st.Dial(t)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	every := job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(time.Hour)}}
	j := newJob(t, "RecordSteps", "earlier", every, recordSpec{Ledger: string(ledger), Steps: 2, Gate: gate})
	times, err := j.Recurring.Times(j.ID)
	require.NoError(t, err)
	first := times.Next(time.Now())
	third := times.Next(times.Next(first)) // The one between was skipped.
	start := func(at time.Time) client.WorkflowRun {
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
			ID: contract.ScheduledRunID(j.ID, at), TaskQueue: contract.TaskQueue(j.Worker),
		}, contract.RunJobType, contract.RunInput{Job: j, StartedBy: contract.StartedBySchedule})
		require.NoError(t, err)
		return run
	}
	output := func(run client.WorkflowRun) contract.RunOutput {
		var out contract.RunOutput
		require.NoError(t, run.Get(t.Context(), &out))
		return out
	}
	earlier := start(first)
	ledger.WaitFor(t, "step", 1)
	givesWay := func(at time.Time) contract.RunOutput {
		run := start(at)
		stacktest.WaitFor(t, "the run to end", func() (bool, error) {
			// One that begins waits at the gate and does not end.
			require.Equal(t, 1, ledger.Count(t, "start"), "handlers that began while that of the earlier start was at work")
			described, err := c.DescribeWorkflowExecution(t.Context(), run.GetID(), run.GetRunID())
			return described.GetWorkflowExecutionInfo().GetCloseTime() != nil, err
		})
		return output(run)
	}
	later := givesWay(third)
	require.Equal(t, first, later.SupersededBy)
	require.Contains(t, later.Message, "nothing done")
	fourth := times.Next(third)
	require.Equal(t, first, givesWay(fourth).SupersededBy, "by way of the run that gave way")

	workertest.Open(t, gate)
	require.Zero(t, output(earlier).SupersededBy)
	require.Zero(t, output(start(times.Next(fourth))).SupersededBy, "the run before has ended")
	require.Equal(t, 2, ledger.Count(t, "start"))
}
