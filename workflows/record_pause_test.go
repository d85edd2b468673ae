package workflows_test

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// pauses records pauses that end by themselves, and pauses of which one takes the place of
// another.
func (r *recorder) pauses() {
	until := func() contract.PauseRequest {
		return contract.PauseRequest{Reason: "recorded", End: time.Now().Add(3 * time.Second)}
	}
	loop := r.job("paused-loop", job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Hour)}}, "")
	require.NoError(r, r.client.Jobs.StartContinuous(r.Context(), loop))
	r.state(loop.ID, func(s contract.ContinuousState) bool { return s.Iterations == 1 })
	later := until()
	later.End = later.End.Add(time.Hour)
	for _, in := range []contract.PauseRequest{later, until()} {
		_, err := r.client.Jobs.PauseSeeing(r.Context(), loop.ID, in)
		require.NoError(r, err)
		r.state(loop.ID, func(s contract.ContinuousState) bool {
			return s.Phase == contract.PhasePaused && s.PauseEnd.Equal(in.End.Truncate(time.Second))
		})
	}
	r.state(loop.ID, func(s contract.ContinuousState) bool { return s.Iterations == 2 })
	live, err := r.client.Jobs.LiveWorkflow(r.Context(), loop.ID)
	require.NoError(r, err)
	r.save("continuous_pause_over", client.RunRef{WorkflowID: contract.JobWorkflowID(loop.ID), RunID: live.Workflow.RunID})
	require.NoError(r, r.client.Apply.StopContinuous(r.Context(), loop.ID, "recorded", nil))

	const queue = "paused"
	_, err = r.client.Queues.SetOnFailure(r.Context(), queue, job.OnFailureHalt)
	require.NoError(r, err)
	for _, in := range []contract.PauseRequest{later, until()} {
		_, err := r.client.Queues.PauseWith(r.Context(), queue, in)
		require.NoError(r, err)
	}
	_, err = r.client.Queues.Enqueue(r.Context(), r.job("paused-item", job.Trigger{Queued: &job.Queued{Queue: queue}}, ""), client.EnqueueOptions{})
	require.NoError(r, err)
	r.queueReaches(queue, "the pause to end", func(s *contract.QueueState) bool { return s.Completed == 1 })
	r.save("queue_pause_over", r.latest(queue, func() {}))

	recurring := r.job("paused-recurring", job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(24 * time.Hour)}}, "")
	syncer := schedules.New(r.client)
	plan, err := syncer.Plan(r.Context(), []job.Job{recurring}, schedules.PlanOptions{Provider: "recorded"})
	require.NoError(r, err)
	require.NoError(r, syncer.Apply(r.Context(), plan, func(schedules.Report) {}))
	in := until()
	_, err = r.client.Jobs.PauseSeeing(r.Context(), recurring.ID, in)
	require.NoError(r, err)
	stacktest.WaitFor(r, "the pause to end", func() (bool, error) {
		live, err := r.client.Jobs.LiveSchedule(r.Context(), recurring.ID)
		return live != nil && !live.Paused, err
	})
	run := r.client.Temporal().GetWorkflow(r.Context(), contract.EndPauseWorkflowID(recurring.ID, in.End), "")
	require.NoError(r, run.Get(r.Context(), nil))
	r.save("end_pause", client.RunRef{WorkflowID: run.GetID(), RunID: run.GetRunID()})
}
