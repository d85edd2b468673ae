package workers_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// failingMemo reads what the memo of a continuous job says of its failures, as
// lists do.
func failingMemo(t *testing.T, c *client.Client, jobID string) contract.Failing {
	t.Helper()
	described, err := c.Temporal().DescribeWorkflowExecution(t.Context(), contract.JobWorkflowID(jobID), "")
	require.NoError(t, err)
	var failing contract.Failing
	if payload, ok := described.GetWorkflowExecutionInfo().GetMemo().GetFields()[contract.MemoFailing]; ok {
		require.NoError(t, converter.GetDefaultDataConverter().FromPayload(payload, &failing))
	}
	return failing
}

// waits are the timers in the history of a job's latest loop, in their order.
func waits(t *testing.T, c *client.Client, jobID string) []time.Duration {
	t.Helper()
	var all []time.Duration
	events := c.Temporal().GetWorkflowHistory(t.Context(), contract.JobWorkflowID(jobID), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		if timer := event.GetTimerStartedEventAttributes(); timer != nil {
			all = append(all, timer.GetStartToFireTimeout().AsDuration())
		}
	}
	return all
}

const (
	failingAlert   = "msg=\"the continuous job is failing\" "
	recoveredAlert = "msg=\"the continuous job has recovered\" "
)

// TestCrashingContinuousJobDoesNotRunHot has every iteration fail at its start: it
// backs off, says once that it is failing, pauses itself, and can be stopped.
func TestCrashingContinuousJobDoesNotRunHot(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t) // No other worker has its log.
	worker := startWorker(t, st)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	j := newJob(t, "RecordSteps", "a", continuousEvery(job.MinInterval.Std()),
		recordSpec{Ledger: string(ledger), Steps: 1, Fail: "Crash"})
	j.Options.MaxRetryCount = 3
	j.Options.RetryBackoff = job.Backoff{Initial: job.Duration(time.Second), Max: job.Duration(1500 * time.Millisecond), Coefficient: 4}
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), j))
	seen := map[contract.Phase]bool{}
	loop := workertest.WaitLoop(t, c, j.ID, "the job to pause itself", func(s *contract.ContinuousState) bool {
		seen[s.Phase] = true
		return seen[contract.PhasePaused]
	})
	require.True(t, seen[contract.PhaseFailing], "%v", seen)
	require.Contains(t, loop.PauseReason, "4 iterations in a row failed, the last one: the spec says so")
	starts := ledger.Count(t, "start")
	require.Equal(t, j.Options.MaxRetryCount+1, starts, "max_retry_count")
	// The history has how long it waited, whatever the machine was doing meanwhile.
	require.Equal(t, []time.Duration{time.Second, 1500 * time.Millisecond, 1500 * time.Millisecond}, waits(t, c, j.ID), "to the cap")
	failing := failingMemo(t, c, j.ID)
	require.True(t, failing.Failing)
	require.Equal(t, loop.FailingSince.UTC(), failing.Since.UTC())
	require.Equal(t, "Crash", failing.Class)
	require.Equal(t, "the spec says so", failing.Error)
	worker.WaitOutput(failingAlert + "worker=")
	require.Equal(t, 1, strings.Count(worker.Output(), failingAlert), "the alert comes once")
	require.Regexp(t, `level=ERROR msg="the continuous job is failing" .*alert=failing JobID=`+j.ID+` Failures=1 LastError="the spec says so"`, worker.Output())

	runs, err := c.Runs.List(t.Context(), client.RunFilter{JobID: j.ID})
	require.NoError(t, err)
	require.Len(t, runs, starts)
	require.EqualValues(t, starts, runs[0].Iteration, "the latest first")
	require.Equal(t, client.RunFailed, runs[0].Status)
	require.Equal(t, "Crash", runs[0].Class)

	require.NoError(t, c.Jobs.Resume(t.Context(), j.ID, "once more"))
	ledger.WaitFor(t, "start", starts+1)
	require.NoError(t, c.Apply.StopContinuous(t.Context(), j.ID, "by test", nil))
	ended := ledger.Count(t, "start")
	detail, err := c.Jobs.Get(t.Context(), j.ID)
	require.NoError(t, err)
	require.Equal(t, client.JobDeleted, detail.Row.Status)
	require.GreaterOrEqual(t, len(waits(t, c, j.ID)), ended-2, "a wait before every start but the first and the one that was asked for")
	require.Equal(t, ended, ledger.Count(t, "start"), "it starts nothing more")
}

// TestContinuousJobReportsItsRecovery repairs what an iteration fails over.
func TestContinuousJobReportsItsRecovery(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	worker := startWorker(t, st)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	broken := filepath.Join(t.TempDir(), "broken")
	workertest.Open(t, broken)
	j := withShortTimeout(newJob(t, "RecordSteps", "a", continuousEvery(job.MinInterval.Std()),
		recordSpec{Ledger: string(ledger), Steps: 1, Broken: broken}))
	j.Options.RetryBackoff = job.Backoff{Initial: job.Duration(100 * time.Millisecond), Max: job.Duration(100 * time.Millisecond), Coefficient: 1}
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), j))
	ledger.WaitFor(t, "start", 3)
	require.True(t, failingMemo(t, c, j.ID).Failing)

	// Another worker, which has to replay what the first one did, reports nothing again.
	worker.Kill()
	second := startWorker(t, st)
	ledger.WaitFor(t, "start", ledger.Count(t, "start")+2)
	require.NoError(t, os.Remove(broken))
	ledger.WaitFor(t, "end", 2)
	stacktest.WaitFor(t, "the memo to say that it has recovered", func() (bool, error) {
		return !failingMemo(t, c, j.ID).Failing, nil
	})
	require.NoError(t, c.Apply.StopContinuous(t.Context(), j.ID, "by test", nil))
	second.WaitOutput(recoveredAlert)
	output := worker.Output() + second.Output()
	require.Equal(t, 1, strings.Count(output, failingAlert))
	require.Equal(t, 1, strings.Count(output, recoveredAlert))
}

// TestJobThatKillsItsWorkers has a run and an iteration kill the process that they are in:
// every death is an attempt of the run, and none a failure of the continuous job.
func TestJobThatKillsItsWorkers(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	worker := startWorker(t, st)
	die := func(times int) {
		for range times {
			require.Equal(t, -1, worker.Wait(), "killed")
			worker = startWorker(t, st)
		}
	}
	backoff := job.Backoff{Initial: job.Duration(100 * time.Millisecond), Max: job.Duration(time.Second), Coefficient: 2}

	ledger := workertest.NewBook(t)
	once := withShortTimeout(newJob(t, "RecordSteps", "run", oneShot(), recordSpec{Ledger: string(ledger), Steps: 1, Kill: 2}))
	once.Options.MaxRetryCount, once.Options.RetryBackoff = 0, backoff
	ref := startRun(t, c, once)
	die(2)
	run := requireCompleted(t, c, ref)
	require.Equal(t, 3, ledger.Count(t, "start"))
	require.Equal(t, 3, run.Attempts)
	require.Equal(t, 3, listed(t, c, ref, client.RunCompleted).Attempts, "the attempts that lists show")
	require.Equal(t, 2, run.Output.Handovers)

	ledger = workertest.NewBook(t)
	loop := withShortTimeout(newJob(t, "RecordSteps", "loop", continuousEvery(time.Hour),
		recordSpec{Ledger: string(ledger), Steps: 1, Kill: 1}))
	loop.Options.MaxRetryCount, loop.Options.RetryBackoff = 0, backoff
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), loop))
	die(1)
	workertest.WaitLoop(t, c, loop.ID, "the loss to be noticed", func(s *contract.ContinuousState) bool {
		return s.Phase == contract.PhaseWaiting && !s.NextAt.IsZero()
	})
	_, err := c.Jobs.Trigger(t.Context(), loop.ID) // The interval is long, and it backs off for no less.
	require.NoError(t, err)
	ledger.WaitFor(t, "end", 1)
	state := workertest.WaitLoop(t, c, loop.ID, "the success", func(s *contract.ContinuousState) bool { return !s.LastSuccess.IsZero() })
	require.EqualValues(t, 1, state.LostWorkers)
	require.Zero(t, state.ConsecutiveLost)
	require.Zero(t, state.Failed)
	require.Empty(t, state.LastError)
	require.Equal(t, 2, ledger.Count(t, "start"))
	require.NoError(t, c.Apply.StopContinuous(t.Context(), loop.ID, "by test", nil))
}

// TestDrainedIterationIsNoSuccess drains the worker of a job that is failing, in
// the middle of an iteration.
func TestDrainedIterationIsNoSuccess(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	first := startWorker(t, st)
	j := newJob(t, "RecordSteps", "a", continuousEvery(time.Hour),
		recordSpec{Ledger: string(ledger), Steps: 2, Gate: gate})
	state := contract.NewContinuousState(j)
	state.ConsecutiveFailures, state.Failed, state.Iterations, state.LastError = 2, 2, 2, "it was broken"
	attributes, err := contract.Attributes(j)
	require.NoError(t, err)
	_, err = c.Temporal().ExecuteWorkflow(t.Context(), sdk.StartWorkflowOptions{
		ID: contract.JobWorkflowID(j.ID), TaskQueue: contract.TaskQueue(j.Worker),
		TypedSearchAttributes: attributes, Memo: map[string]any{contract.MemoJob: j},
	}, contract.ContinuousJobType, state)
	require.NoError(t, err)
	ledger.WaitFor(t, "step", 1)
	first.Signal(syscall.SIGTERM)
	require.Zero(t, first.Wait())
	startWorker(t, st)
	ledger.WaitFor(t, "step", 2)
	detail, err := c.Jobs.Get(t.Context(), j.ID)
	require.NoError(t, err)
	require.EqualValues(t, 1, detail.Continuous.Interrupted)
	require.Equal(t, 2, detail.Continuous.ConsecutiveFailures, "it is neither a failure nor a success")
	require.Equal(t, "it was broken", detail.Continuous.LastError)
	require.True(t, detail.Continuous.LastSuccess.IsZero())
	require.True(t, failingMemo(t, c, j.ID).Failing)
	workertest.Open(t, gate)
	ledger.WaitFor(t, "end", 1)
	require.NoError(t, c.Apply.StopContinuous(t.Context(), j.ID, "by test", nil))
}
