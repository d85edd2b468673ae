package client

import (
	"context"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// iterations lists what a continuous job remembers of its iterations, the latest
// first, and the one under way.
func (c *conn) iterations(ctx context.Context, live *Live, filter RunFilter) ([]Run, error) {
	state, err := c.continuousState(ctx, live.Job.ID)
	if err != nil {
		return nil, err
	}
	var runs []Run
	if state.Phase == contract.PhaseRunning {
		run, err := c.iterationUnderWay(ctx, live, state.Iterations+1)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	for _, iteration := range slices.Backward(state.Recent) {
		runs = append(runs, iterationRun(live, iteration))
	}
	runs = slices.DeleteFunc(runs, func(run Run) bool { return !filter.matchesIteration(run, live) })
	if filter.Limit > 0 && len(runs) > filter.Limit {
		runs = runs[:filter.Limit]
	}
	return runs, nil
}

func (f RunFilter) matchesIteration(run Run, live *Live) bool {
	statuses := f.statuses()
	return (len(statuses) == 0 || slices.Contains(statuses, run.Status)) &&
		(f.Type == "" || f.Type == run.Type) && (f.Owner == "" || f.Owner == run.Owner) && f.Queue == "" &&
		!run.Started.Before(f.Since) && (f.Until.IsZero() || run.Started.Before(f.Until)) && hasTags(live.Job.Options.Tags, f.Tags)
}

func loopRun(live *Live, number int64) Run {
	return Run{
		RunRef: RunRef{WorkflowID: contract.JobWorkflowID(live.Job.ID), RunID: live.Workflow.RunID},
		JobID:  live.Job.ID, Type: live.Job.Type, Mode: job.ModeContinuous, Owner: live.Job.Options.Owner.String(),
		Iteration: number,
	}
}

func iterationRun(live *Live, it contract.Iteration) Run {
	run := loopRun(live, it.Number)
	run.Status = RunCompleted
	switch {
	case it.Error != "":
		run.Status = RunFailed
	case it.Stopped:
		run.Status = RunInterrupted
	}
	run.Started, run.Ended = it.Start, it.Start.Add(it.Duration.Std())
	run.Took, run.LastUpdate, run.Attempts, run.Worker = it.Duration, run.Ended, 1, it.Worker
	run.Message, run.Counts, run.Class, run.Error = it.Message, it.Counts, it.Class, it.Error
	return run
}

// iterationUnderWay reads the activity of the iteration that runs.
func (c *conn) iterationUnderWay(ctx context.Context, live *Live, number int64) (Run, error) {
	run := loopRun(live, number)
	run.Status = RunRunning
	response, err := c.temporal.DescribeWorkflowExecution(ctx, run.WorkflowID, "")
	if err != nil {
		return run, explain("job "+live.Job.ID, err)
	}
	detail := RunDetail{Run: run, Job: &live.Job}
	detail.addPending(response)
	run = detail.Run
	run.Started = time.Now()
	for _, activity := range response.GetPendingActivities() {
		if started := activity.GetLastStartedTime(); started != nil {
			run.Started = started.AsTime()
		}
	}
	run.LastUpdate = later(run.LastUpdate, run.Started)
	return run, nil
}
