package workflows_test

import (
	"fmt"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
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
	reached := func(what string, is func(*contract.QueueState) bool) *contract.QueueState {
		var state *contract.QueueState
		stacktest.WaitFor(r, what, func() (bool, error) {
			var err error
			state, err = r.client.Queues.State(r.Context(), name)
			return err == nil && is(state), err
		})
		return state
	}
	reached("a failure", func(s *contract.QueueState) bool { return s.Halted != nil && s.Failed == 1 })
	_, err = r.client.Queues.Resume(r.Context(), name)
	require.NoError(r, err)
	reached("a second failure", func(s *contract.QueueState) bool { return s.Halted != nil && s.Failed == 2 })
	_, err = r.client.Queues.MoveToFront(r.Context(), name, "record_history.h-moved")
	require.NoError(r, err)
	_, err = r.client.Queues.Purge(r.Context(), name, 4, 4)
	require.NoError(r, err)
	_, err = r.client.Queues.SkipFailed(r.Context(), name)
	require.NoError(r, err)
	state := reached("a dead letter", func(s *contract.QueueState) bool { return len(s.DeadLetters) == 1 && s.Completed == 2 })
	_, err = r.client.Queues.SetOnFailure(r.Context(), name, job.OnFailureContinue)
	require.NoError(r, err)
	_, err = r.client.Queues.RetryDead(r.Context(), name, state.DeadLetters, func(int, int) {})
	require.NoError(r, err)
	reached("a third failure", func(s *contract.QueueState) bool { return s.Failed == 3 && s.Running == nil })
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
	id := contract.QueueWorkflowID(name)
	_, err := r.client.Temporal().ExecuteWorkflow(r.Context(), sdk.StartWorkflowOptions{
		ID: id, TaskQueue: contract.QueuesTaskQueue, TypedSearchAttributes: contract.QueueAttributes(name),
	}, contract.JobQueueType, contract.QueueState{Name: name, Paused: true, PageSize: contract.PageSize{Items: 4, Bytes: 48 << 10}})
	require.NoError(r, err)
	var jobs []job.Job
	for i := range 30 {
		jobs = append(jobs, r.job(fmt.Sprintf("g%02d", i), job.Trigger{Queued: &job.Queued{Queue: name}}, ""))
	}
	_, err = r.client.Queues.EnqueueAll(r.Context(), jobs, client.EnqueueOptions{}, func(int) {})
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
