package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/iterate"
)

// reportInterval is how often an iteration of ReconcileJobs reports.
const reportInterval = 2 * time.Second

// ReconcileSpec is the spec of ReconcileJobs.
type ReconcileSpec struct {
	Window job.Duration `json:"window,omitzero" minimum:"PT1S" maximum:"PT12H" default:"PT5M" help:"time after which everything is looked at again: shorter than run_timeout"`
}

type reconcileJobs struct {
	platform *platform.Client
}

// ReconcileJobs makes the job type of that name. A nil client is enough to describe it.
//
// An iteration is one window. It begins with a full read of what the platform registers
// and of what is there, brings each config in line that differs or changes, and tries
// those again that fail. The iteration fails if it cannot read everything; a config that
// fails is part of its result.
func ReconcileJobs(client *platform.Client) job.Type {
	h := &reconcileJobs{platform: client}
	return job.NewType("ReconcileJobs", job.WorkerBackend,
		"Keeps the jobs of integrations in line with the platform's registrations.",
		h.handle, job.ModeContinuous)
}

// window is one iteration.
type window struct {
	*iterate.Iteration
	reconciler *reconcile.Reconciler

	mu      sync.Mutex
	enabled int
	failing map[string]string // why a config is not in line, by id
}

func (h *reconcileJobs) handle(ctx context.Context, run job.Run, spec ReconcileSpec) (job.Result, error) {
	if err := platform.Need(h.platform); err != nil {
		return job.Result{}, err
	}
	w := &window{failing: map[string]string{}}
	w.Iteration = iterate.New(run, spec.Window.Std(), w.progress)
	w.reconciler = reconcile.New(run.Jobs(), reconcile.NewPlatform(h.platform), w.take)
	err := w.Loop(ctx, w.pass)
	return job.Result{Message: w.message(), Counts: w.Counts()}, err
}

// pass is the only step: it takes the whole window.
func (w *window) pass(ctx context.Context) (iterate.Next, error) {
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-w.Stopping(): // What is broken off is completed by the next iteration.
			cancel()
		case <-working.Done():
		}
	}()
	pass, err := w.reconciler.Begin(working)
	if err != nil && w.Stopped() {
		return iterate.Done, ctx.Err()
	}
	if err != nil {
		return iterate.Done, err
	}
	w.begun(pass.Enabled)
	for w.Wait(ctx, reportInterval) {
		w.Save()
	}
	pass.Close()
	return iterate.Done, ctx.Err()
}

func (w *window) begun(enabled int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enabled = enabled
}

// take notes what was done for a config.
func (w *window) take(outcome reconcile.Outcome) {
	for _, change := range outcome.Changes {
		log := w.Logger().With("config", outcome.Config, "job_id", change.JobID)
		switch {
		case change.Err != nil:
			w.Count("failed", 1)
			log.Warn("a job cannot be applied", "action", change.Action, "error", change.Err)
		case change.Action == job.ActionBlocked:
			w.Count("blocked", 1)
			log.Warn("a job is blocked", "reason", change.Note)
		default:
			w.Count(string(change.Action)+"d", 1)
			log.Info("a job was " + string(change.Action) + "d")
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.failing, outcome.Config)
	if outcome.Err != nil {
		w.Logger().Warn("a config is not in line, and is tried again", "config", outcome.Config, "error", outcome.Err)
		w.failing[outcome.Config] = outcome.Err.Error()
	} else if outcome.Condition.Message != "" {
		w.failing[outcome.Config] = outcome.Condition.Message
	}
}

func (w *window) progress(counts map[string]int64) (job.Progress, any) {
	return job.Progress{Done: counts["created"] + counts["updated"] + counts["deleted"], Message: w.message()}, nil
}

// message is one line about the window.
func (w *window) message() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf("enabled configs: %d", w.enabled)
	if len(w.failing) == 0 {
		return text
	}
	const named = 3
	ids := slices.Sorted(maps.Keys(w.failing))
	var list []string
	for _, id := range ids[:min(len(ids), named)] {
		list = append(list, fmt.Sprintf("%s (%s)", id, w.failing[id]))
	}
	text += fmt.Sprintf("; not in line: %d: %s", len(ids), strings.Join(list, ", "))
	if more := len(ids) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
