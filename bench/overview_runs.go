package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// The task queues of past runs: one with a worker, and one without.
const (
	pastQueue   = "bench-past"
	nobodyQueue = "bench-nobody"
	// pastCallers is how many runs are made at once.
	pastCallers = 32
	// oneFails is how many of the runs that a worker ends one fails of.
	oneFails = 10
)

// pastRun ends at once, as a run of a job does.
func pastRun(ctx workflow.Context, fail bool) error {
	end := contract.RunEnd{Taken: workflow.Now(ctx), Attempts: 1, Worker: "bench", Message: "nothing was done"}
	if err := workflow.UpsertMemo(ctx, map[string]any{contract.MemoEnd: end}); err != nil {
		return err
	}
	if fail {
		return temporal.NewNonRetryableApplicationError("told to fail", "Told", nil)
	}
	return nil
}

// pastRuns makes runs of jobs that have ended. Most are terminated as soon as they have
// started: a list shows no difference but the status, and it takes a tenth of the time.
func (b *jobBench) pastRuns(ctx context.Context, jobs []job.Job, runs, worked int) error {
	w := worker.New(b.client, pastQueue, worker.Options{DisableRegistrationAliasing: true})
	w.RegisterWorkflowWithOptions(pastRun, workflow.RegisterOptions{Name: contract.RunJobType})
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	order := rand.New(rand.NewPCG(1, 2)).Perm(len(jobs) * runs) //nolint:gosec // Nothing secret.
	first := time.Now().Add(-time.Duration(runs) * time.Hour).Truncate(time.Hour)
	return temporalclient.Each(len(order), pastCallers, func(i int) error {
		j, n := jobs[order[i]%len(jobs)], order[i]/len(jobs)
		attributes, err := contract.Attributes(j)
		if err != nil {
			return err
		}
		// Which of the runs of a job are terminated differs from job to job.
		taken := (n*7+order[i]%len(jobs))%runs < worked
		queue := nobodyQueue
		if taken {
			queue = pastQueue
		}
		run, err := b.client.ExecuteWorkflow(ctx, sdkclient.StartWorkflowOptions{
			ID: contract.ScheduledRunID(j.ID, first.Add(time.Duration(n)*time.Hour)), TaskQueue: queue,
			TypedSearchAttributes: attributes, Memo: map[string]any{contract.MemoJob: j},
		}, contract.RunJobType, order[i]%oneFails == 0)
		if err != nil {
			return fmt.Errorf("start a run: %w", err)
		}
		if !taken {
			return b.client.TerminateWorkflow(ctx, run.GetID(), run.GetRunID(), "made by a bench")
		}
		var failed *temporal.WorkflowExecutionError
		if err := run.Get(ctx, nil); err != nil && !errors.As(err, &failed) {
			return fmt.Errorf("await a run: %w", err)
		}
		return nil
	})
}
