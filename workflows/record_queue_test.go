package workflows_test

import (
	"fmt"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// halted records a queue that takes batches, halts over a failure that is tried
// again and then skipped, and whose dead letters are retried and dropped.
func (r *recorder) halted() {
	const name = "halted"
	schedule := job.Trigger{Queued: &job.Queued{Queue: name}}
	_, err := r.client.Queues.SetOnFailure(r.Context(), name, job.OnFailureHalt)
	require.NoError(r, err)
	_, err = r.client.Queues.EnqueueAll(r.Context(), []job.Job{
		r.job("h-first", schedule, ""), r.job("h-failed", schedule, "final"), r.job("h-moved", schedule, ""), r.job("h-canceled", schedule, ""),
	}, client.EnqueueOptions{}, func(int) {})
	require.NoError(r, err)
	r.queueReaches(name, "a failure", func(s *contract.QueueState) bool { return s.Halted != nil && s.Failed == 1 })
	_, err = r.client.Queues.Resume(r.Context(), name)
	require.NoError(r, err)
	r.queueReaches(name, "a second failure", func(s *contract.QueueState) bool { return s.Halted != nil && s.Failed == 2 })
	_, err = r.client.Queues.MoveToFront(r.Context(), name, "record_history.h-moved")
	require.NoError(r, err)
	_, err = r.client.Queues.Purge(r.Context(), name, 4, 4)
	require.NoError(r, err)
	_, err = r.client.Queues.SkipFailed(r.Context(), name)
	require.NoError(r, err)
	state := r.queueReaches(name, "a dead letter", func(s *contract.QueueState) bool { return len(s.DeadLetters) == 1 && s.Completed == 2 })
	_, err = r.client.Queues.SetOnFailure(r.Context(), name, job.OnFailureContinue)
	require.NoError(r, err)
	_, err = r.client.Queues.RetryDead(r.Context(), name, state.DeadLetters, func(int, int) {})
	require.NoError(r, err)
	r.queueReaches(name, "a third failure", func(s *contract.QueueState) bool { return s.Failed == 3 && s.Running == nil })
	_, err = r.client.Queues.DropDead(r.Context(), name, nil)
	require.NoError(r, err)
	_, err = r.client.Queues.Drain(r.Context(), name)
	require.NoError(r, err)
	for n, ref := range r.runsOf(contract.QueueWorkflowID(name)) {
		r.save(fmt.Sprintf("queue_halted_%d", n+1), ref)
	}
}

// paged records a queue that starts overflow pages and takes items back from them, purges some, and a
// page that is released.
func (r *recorder) paged() {
	const name = "paged"
	id := r.startQueue(name, contract.QueueState{Paused: true, PageSize: contract.PageSize{Items: 4, Bytes: 48 << 10}}).GetID()
	var jobs []job.Job
	for i := range 30 {
		jobs = append(jobs, r.job(fmt.Sprintf("g%02d", i), job.Trigger{Queued: &job.Queued{Queue: name}}, ""))
	}
	_, err := r.client.Queues.EnqueueAll(r.Context(), jobs, client.EnqueueOptions{}, func(int) {})
	require.NoError(r, err)
	state, err := r.client.Queues.State(r.Context(), name)
	require.NoError(r, err)
	page := contract.QueuePageWorkflowID(name, state.Instance, state.Overflow.Pages[0])
	_, err = r.client.Queues.CancelItem(r.Context(), name, "record_history.g10")
	require.NoError(r, err)
	_, err = r.client.Queues.Purge(r.Context(), name, 14, 22)
	require.NoError(r, err)
	_, err = r.client.Queues.Resume(r.Context(), name)
	require.NoError(r, err)
	require.NoError(r, r.client.Queues.AwaitEmpty(r.Context(), name, func(*client.Queue) {}))
	for n, ref := range r.runsOf(id) {
		r.save(fmt.Sprintf("queue_paged_%d", n+1), ref)
	}
	require.NoError(r, r.client.Temporal().GetWorkflow(r.Context(), page, "").Get(r.Context(), nil))
	r.save("queue_page", client.RunRef{WorkflowID: page})
}

// repeated records a deep queue that starts more pages than it starts at once, and
// continues as new while it takes them back. Some jobs are put in again: while they wait
// in the head and in the tail, and in a page, where the repeat is skipped at its turn.
func (r *recorder) repeated() {
	const name = "repeated"
	id := r.startQueue(name, contract.QueueState{Paused: true, PageSize: contract.PageSize{Items: 2, Bytes: 48 << 10}}).GetID()
	var jobs []job.Job
	for i := range 21 {
		jobs = append(jobs, r.job(fmt.Sprintf("r%02d", i), job.Trigger{Queued: &job.Queued{Queue: name}}, ""))
	}
	_, err := r.client.Queues.EnqueueAll(r.Context(), jobs, client.EnqueueOptions{}, func(int) {})
	require.NoError(r, err)
	receipts, err := r.client.Queues.EnqueueAll(r.Context(), []job.Job{jobs[0], jobs[20], jobs[9]}, client.EnqueueOptions{}, func(int) {})
	require.NoError(r, err)
	for i, known := range []bool{true, true, false} {
		require.Equal(r, known, receipts[i].Duplicate, jobs[i].ID)
	}
	_, err = r.client.Queues.Resume(r.Context(), name)
	require.NoError(r, err)
	require.NoError(r, r.client.Queues.AwaitEmpty(r.Context(), name, func(*client.Queue) {}))
	state, err := r.client.Queues.State(r.Context(), name)
	require.NoError(r, err)
	require.EqualValues(r, 21, state.Completed)
	require.EqualValues(r, 1, state.Skipped)
	for n, ref := range r.runsOf(id) {
		r.save(fmt.Sprintf("queue_repeated_%d", n+1), ref)
	}
}

// recoveredQueue records a queue that someone terminates while an item runs and others wait
// in overflow pages, and the run with which it is recovered.
func (r *recorder) recoveredQueue() {
	const name = "recovered"
	id := r.startQueue(name, contract.QueueState{PageSize: contract.PageSize{Items: 2, Bytes: 48 << 10}}).GetID()
	schedule := job.Trigger{Queued: &job.Queued{Queue: name}}
	blocked := r.job("c-blocked", schedule, "wait")
	jobs := []job.Job{blocked}
	for i := range 5 {
		jobs = append(jobs, r.job(fmt.Sprintf("c%02d", i), schedule, ""))
	}
	_, err := r.client.Queues.EnqueueAll(r.Context(), jobs, client.EnqueueOptions{}, func(int) {})
	require.NoError(r, err)
	r.queueReaches(name, "the item to run and a page to start", func(s *contract.QueueState) bool {
		return s.Running != nil && s.Running.RunID != "" && len(s.Overflow.Pages) > 0
	})
	terminated := r.latest(name, func() {})
	require.NoError(r, r.client.Temporal().TerminateWorkflow(r.Context(), id, "", "recorded"))
	_, err = r.client.Queues.Recover(r.Context(), name)
	require.NoError(r, err)
	_, err = r.client.Queues.CancelItem(r.Context(), name, blocked.ID)
	require.NoError(r, err)
	require.NoError(r, r.client.Queues.AwaitEmpty(r.Context(), name, func(*client.Queue) {}))
	r.save("queue_terminated", terminated)
	for n, ref := range r.runsOf(id) {
		r.save(fmt.Sprintf("queue_recovered_%d", n+1), ref)
	}
}

// startQueue starts a queue with a state.
func (r *recorder) startQueue(name string, state contract.QueueState) sdk.WorkflowRun {
	state.Name = name
	run, err := r.client.Temporal().ExecuteWorkflow(r.Context(), sdk.StartWorkflowOptions{
		ID: contract.QueueWorkflowID(name), TaskQueue: contract.QueuesTaskQueue, TypedSearchAttributes: contract.QueueAttributes(name),
	}, contract.JobQueueType, state)
	require.NoError(r, err)
	return run
}

// queueReaches waits for a state of a queue.
func (r *recorder) queueReaches(name, what string, is func(*contract.QueueState) bool) *contract.QueueState {
	return workertest.WaitQueue(r, r.client, name, what, is)
}

// runsOf lists the runs of a workflow, the first first.
func (r *recorder) runsOf(workflowID string) []client.RunRef {
	last, err := r.client.Temporal().DescribeWorkflowExecution(r.Context(), workflowID, "")
	require.NoError(r, err)
	var refs []client.RunRef
	for runID := last.GetWorkflowExecutionInfo().GetExecution().GetRunId(); runID != ""; {
		refs = append([]client.RunRef{{WorkflowID: workflowID, RunID: runID}}, refs...)
		events := r.client.Temporal().GetWorkflowHistory(r.Context(), workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		started, err := events.Next()
		require.NoError(r, err)
		runID = started.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
	}
	return refs
}
