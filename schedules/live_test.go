package schedules_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
)

// startQueue starts a queue with a state of the test's.
func startQueue(t *testing.T, c *client.Client, state contract.QueueState) {
	t.Helper()
	_, err := c.Temporal().ExecuteWorkflow(t.Context(), sdk.StartWorkflowOptions{
		ID: contract.QueueWorkflowID(state.Name), TaskQueue: contract.QueuesTaskQueue,
		TypedSearchAttributes: contract.QueueAttributes(state.Name),
	}, contract.JobQueueType, state)
	require.NoError(t, err)
	stacktest.WaitFor(t, "queue "+state.Name+" in the list", func() (bool, error) {
		response, err := c.Temporal().ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: c.Namespace(), Query: fmt.Sprintf("WorkflowId = '%s'", contract.QueueWorkflowID(state.Name)),
		})
		return len(response.GetExecutions()) == 1, err
	})
}

// While nobody can tell what waits in queues, no job that may wait there counts as
// missing.
func TestAJobThatMayWaitIsNotMissing(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := client.New(st.Dial(t), st.Namespace)
	ended := declare("ended", queued("photos"))
	_, err := c.Runs.Start(t.Context(), ended, contract.StartedByHand)
	require.NoError(t, err)
	require.NoError(t, c.Temporal().TerminateWorkflow(t.Context(), contract.JobWorkflowID(ended.ID), "", "test"))
	require.ErrorIs(t, c.Jobs.Stop(t.Context(), "do_nothing.missing", "test"), client.ErrNotFound, "there is no queue")

	startQueue(t, c, contract.QueueState{Name: "photos"})
	err = c.Jobs.Stop(t.Context(), "do_nothing.waits", "test")
	require.ErrorIs(t, err, client.ErrNoWorker)
	require.NotErrorIs(t, err, client.ErrNotFound)
	require.EqualError(t, err, "job do_nothing.waits has no schedule and no run, and no worker answers for queue photos, where it may wait")

	err = c.Jobs.Stop(t.Context(), ended.ID, "test")
	require.ErrorIs(t, err, client.ErrNoWorker, "it ran, and may wait to run again")
	require.EqualError(t, err, "job "+ended.ID+" does not run, and no worker answers for queue photos, where it may wait")

	running := declare("running", job.Trigger{OneShot: &job.OneShot{}})
	_, err = c.Runs.Start(t.Context(), running, contract.StartedByHand)
	require.NoError(t, err)
	require.NoError(t, c.Jobs.Stop(t.Context(), running.ID, "test"), "no queue is asked for what runs")
}

// A queue whose pages cannot be read is no other job's trouble.
func TestAnUnreadablePageIsNotTheTroubleOfOtherJobs(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	f := newFixture(t, st)
	_, err := f.temporal.ExecuteWorkflow(t.Context(), sdk.StartWorkflowOptions{
		ID: contract.QueuePageWorkflowID("broken", "torn", 1), TaskQueue: "nobody",
	}, contract.JobQueuePageType, "not a page")
	require.NoError(t, err)
	startQueue(t, f.client, contract.QueueState{
		Name: "broken", Instance: "torn", Paused: true, Accepted: 3,
		Overflow: contract.Overflow{Pages: []int64{1}, Last: 3},
	})
	err = f.client.Jobs.Stop(t.Context(), "do_nothing.missing", "test")
	require.ErrorContains(t, err, "job do_nothing.missing has no schedule and no run, and it may wait in queue broken, which cannot be read: ")
	require.NotErrorIs(t, err, client.ErrNotFound)

	loop := declare("loop", job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Hour)}})
	require.NoError(t, f.client.Jobs.StartContinuous(t.Context(), loop))
	require.NoError(t, f.client.Jobs.Pause(t.Context(), loop.ID, "test"))
	require.NoError(t, f.client.Jobs.Stop(t.Context(), loop.ID, "test"))

	startQueue(t, f.client, contract.QueueState{Name: "whole", Paused: true})
	waits := declare("waits", queued("whole"))
	_, err = f.client.Queues.Enqueue(t.Context(), waits, client.EnqueueOptions{})
	require.NoError(t, err)
	live, err := f.client.Jobs.Live(t.Context(), waits.ID)
	require.NoError(t, err)
	require.NotNil(t, live.Waiting)
	require.NoError(t, live.Unanswered)
	require.NoError(t, f.client.Jobs.Stop(t.Context(), waits.ID, "test"))
}
