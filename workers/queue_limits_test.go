package workers_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// TestQueueOutlivesItemsThatTemporalDoesNotStart has items wait, as an earlier release
// took them in, whose start Temporal answers by terminating the queue, or by refusing
// its task again and again.
func TestQueueOutlivesItemsThatTemporalDoesNotStart(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	const queue = "limits"
	schedule := queuedIn(queue)
	item := func(key string, change func(*job.Job)) contract.EnqueueItem {
		j := newJob(t, "RecordSteps", key, schedule, recordSpec{Ledger: string(ledger), Steps: 1})
		change(&j)
		return contract.EnqueueItem{Job: j, RetryOf: "a-run-of-an-earlier-definition"}
	}
	owned := item("owned", func(j *job.Job) { j.Options.Owner.Organization = strings.Repeat("o", 2050) })
	long := item("long", func(j *job.Job) { j.ID += strings.Repeat("x", 1000) })
	elsewhere := item("elsewhere", func(j *job.Job) { j.Worker = "/_sys/x" })
	described := item("described", func(j *job.Job) { j.Options.Description = strings.Repeat("d", job.MaxDescriptionBytes+1) })
	startPaged(t, c, queue, 100, contract.QueueState{})
	require.NoError(t, c.Temporal().SignalWorkflow(t.Context(), contract.QueueWorkflowID(queue), "", contract.SignalEnqueue,
		contract.EnqueueRequest{Items: []contract.EnqueueItem{owned, long, elsewhere, described}}))
	state := workertest.WaitQueue(t, c, queue, "the end of the items", func(s *contract.QueueState) bool { return s.Completed == 1 })
	require.EqualValues(t, 3, state.Failed)
	require.Contains(t, state.Recent[0].Error, "its owner has 2065 bytes, and Temporal takes 2048")
	require.Contains(t, state.Recent[1].Error, "and Temporal takes 1000")
	require.Contains(t, state.Recent[2].Error, "Temporal's own")
	require.Equal(t, 1, ledger.Count(t, "end"), "a definition beyond the bounds of a new one can be tried again")

	_, err := c.Queues.Enqueue(t.Context(), owned.Job, client.EnqueueOptions{})
	require.ErrorContains(t, err, "owner: the owner has 2063 bytes, more than 128")
	_, err = c.Queues.Enqueue(t.Context(), described.Job, client.EnqueueOptions{})
	require.ErrorContains(t, err, "description: ")
	retryWhatIsNotKept(t, c, queue+"-dead")
	owned.RetryOf = ""
	require.NoError(t, c.Temporal().SignalWorkflow(t.Context(), contract.QueueWorkflowID(queue), "", contract.SignalEnqueue,
		contract.EnqueueRequest{Items: []contract.EnqueueItem{owned}}))
	state = workertest.WaitQueue(t, c, queue, "the refusal of a signaled item", func(s *contract.QueueState) bool { return s.Failed == 4 })
	require.Contains(t, state.Recent[len(state.Recent)-1].Error, "owner: the owner has 2063 bytes, more than 128")
}

// retryWhatIsNotKept retries letters of which nothing has the definition.
func retryWhatIsNotKept(t *testing.T, c *client.Client, queue string) {
	t.Helper()
	letters := []contract.DeadLetter{
		{Sequence: 1, JobID: "record_steps.no-run"},
		{Sequence: 2, JobID: "record_steps.expired", RunID: "01963b5e-5f2c-7c7e-8f6a-7a8c1d2e3f40"},
	}
	startPaged(t, c, queue, 100, contract.QueueState{Accepted: 2, DeadLetters: letters})
	outcome, err := c.Queues.RetryDead(t.Context(), queue, letters, func(int, int) {})
	require.NoError(t, err)
	require.Empty(t, outcome.Receipts)
	require.Len(t, outcome.Left, 2)
	require.Equal(t, "no run of it was started, which would have its definition", outcome.Left[0].Why)
	require.Equal(t, "its run, which has its definition, is older than runs are kept", outcome.Left[1].Why)
	state, err := c.Queues.State(t.Context(), queue)
	require.NoError(t, err)
	require.Len(t, state.DeadLetters, 2)
}

// TestBatchesOfSpecsWithEscapes puts in more jobs than fit one message, whose specs
// grow when they are sent.
func TestBatchesOfSpecsWithEscapes(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	const queue, items = "escapes", 150
	startPaged(t, c, queue, 40, contract.QueueState{Paused: true})
	jobs := recordJobs(t, queue, "e", items, "")
	for i := range jobs {
		jobs[i].Spec = json.RawMessage(`{"url": "https://vendor.example/api?station=12&from=1&to=2&format=csv&text= "}`)
	}
	receipts, err := c.Queues.EnqueueAll(t.Context(), jobs, client.EnqueueOptions{}, func(int) {})
	require.NoError(t, err)
	require.Len(t, receipts, items)
	for i, receipt := range receipts {
		require.EqualValues(t, i+1, receipt.Sequence)
	}
}

// TestContinuousJobOutlivesADefinitionThatTemporalRefuses sends a running job a
// definition whose search attributes Temporal answers by terminating the job.
func TestContinuousJobOutlivesADefinitionThatTemporalRefuses(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	j := newJob(t, "RecordSteps", "a", continuousEvery(10*time.Millisecond),
		recordSpec{Ledger: string(ledger), Steps: 1})
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), j))
	ledger.WaitFor(t, "end", 1)
	owned := j
	owned.Options.Owner.User = strings.Repeat("o", 2050)
	require.ErrorContains(t, c.Apply.SetContinuous(t.Context(), owned, "", true), "owner: the owner has 2055 bytes, more than 128")
	forever := j
	forever.Options.RunTimeout = 1<<63 - 1
	require.ErrorContains(t, c.Apply.SetContinuous(t.Context(), forever, "", true), "run_timeout: ")
	ledger.WaitFor(t, "end", ledger.Count(t, "end")+2)
	live, err := c.Jobs.LiveWorkflow(t.Context(), j.ID)
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, live.Workflow.Status)
	require.NoError(t, c.Apply.StopContinuous(t.Context(), j.ID, "", func(*client.Live) bool { return true }))
}

// TestTurnOfAnItemThatTheQueueHasForgotten follows items of jobs that ran before: one
// that was purged has no run, and one that ran is not mistaken for a later one.
func TestTurnOfAnItemThatTheQueueHasForgotten(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	const queue, others = "forgotten", 20
	a := recordJobs(t, queue, "a", 1, ledger)[0]
	put := func(j job.Job) int64 {
		receipt, err := c.Queues.Enqueue(t.Context(), j, client.EnqueueOptions{AllowRerun: true})
		require.NoError(t, err)
		return receipt.Sequence
	}
	first := put(a)
	waitEmpty(t, c, queue)
	second := put(a)
	_, err := c.Queues.EnqueueAll(t.Context(), recordJobs(t, queue, "b", others, ledger), client.EnqueueOptions{}, func(int) {})
	require.NoError(t, err)
	waitEmpty(t, c, queue)
	runs := map[int64]string{}
	for _, e := range ledger.Read(t) {
		if e.JobID == a.ID && e.What == "start" {
			runs[int64(len(runs)+1)] = e.RunID
		}
	}
	for _, sequence := range []int64{second, first} {
		turn, err := c.Queues.AwaitTurn(t.Context(), a, sequence, func(int) {})
		require.NoError(t, err)
		require.Equal(t, runs[sequence], turn.Run.RunID)
	}

	_, err = c.Queues.Pause(t.Context(), queue, "for the test")
	require.NoError(t, err)
	third := put(a)
	removed, err := c.Queues.Purge(t.Context(), queue, third, third)
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	_, err = c.Queues.AwaitTurn(t.Context(), a, third, func(int) {})
	require.ErrorContains(t, err, "has left the queue without a run: it was canceled, purged, or skipped as a repeat")
}
