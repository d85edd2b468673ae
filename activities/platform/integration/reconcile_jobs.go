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
	"github.com/dendrascience/dendra-jobs/job/wording"
)

// reportInterval is how often an iteration of ReconcileJobs reports.
const reportInterval = 2 * time.Second

// ReconcileSpec is the spec of ReconcileJobs.
type ReconcileSpec struct {
	Window     job.Duration `json:"window,omitzero" minimum:"PT1S" maximum:"PT12H" default:"PT5M" help:"time after which everything is looked at again: shorter than run_timeout"`
	DryRun     bool         `json:"dry_run,omitempty" help:"tells once what would be done, and does nothing"`
	AllowEmpty bool         `json:"allow_empty,omitempty" help:"lets all jobs of integrations go if the platform lists no config at all"`
}

type reconcileJobs struct {
	platform *platform.Client
}

// ReconcileJobs makes the job type of that name. A nil client is enough to describe it.
//
// An iteration is one window. It begins with a full read of what the platform registers
// and of what is there, brings each config in line that differs or changes, and tries
// those again that fail. The iteration fails if it cannot read everything; a config that
// fails is part of its result. A one-shot, or a dry run, works once on each config that
// differs.
func ReconcileJobs(client *platform.Client) job.Type {
	h := &reconcileJobs{platform: client}
	return job.NewType("ReconcileJobs", job.WorkerBackend,
		"Keeps the jobs of integrations in line with the platform's registrations.",
		h.handle, job.ModeContinuous, job.ModeOneShot)
}

// window is one iteration.
type window struct {
	*iterate.Iteration
	reconciler *reconcile.Reconciler

	mu      sync.Mutex
	enabled int
	failing map[string]string // why a config is not in line, by id
	single  bool              // works on each config once, and tells of each
	dryRun  bool
	configs []ReconciledConfig
}

// Reconciled is the output of a run that works on each config once.
type Reconciled struct {
	Enabled int `json:"enabled_configs"`
	// Configs are those that were not in line, the first of them; More counts the rest.
	Configs []ReconciledConfig `json:"configs"`
	More    int                `json:"more,omitempty"`
}

// ReconciledConfig is a config that was not in line.
type ReconciledConfig struct {
	Config  string             `json:"config"`
	Changes []ReconciledChange `json:"changes,omitempty"`
	Error   string             `json:"error,omitempty"`
}

// ReconciledChange is what was done about a job, or would be.
type ReconciledChange struct {
	job.Change
	Error string `json:"error,omitempty"`
}

// Bounds of the output of a run, which has at most 64 KiB.
const (
	listedBytes = 48 << 10
	textBytes   = 1000
)

// once works on each config that differs.
func (w *window) once(ctx context.Context) (job.Result, error) {
	enabled, err := w.reconciler.Once(ctx, w.dryRun)
	if err != nil {
		return job.Result{}, err
	}
	w.begun(enabled)
	slices.SortFunc(w.configs, func(a, b ReconciledConfig) int { return strings.Compare(a.Config, b.Config) })
	output, size := Reconciled{Enabled: enabled, Configs: []ReconciledConfig{}}, 0
	for n, config := range w.configs {
		if size += len(job.EncodeJSON(config)); size > listedBytes {
			output.More = len(w.configs) - n
			break
		}
		output.Configs = append(output.Configs, config)
	}
	message := w.message()
	if w.dryRun {
		message = "dry run, nothing was done: " + message
	}
	return job.Result{Message: message, Counts: w.Counts(), Output: job.EncodeJSON(output)}, nil
}

// reconciled is an outcome in the output of a run.
func reconciled(outcome reconcile.Outcome) ReconciledConfig {
	config := ReconciledConfig{Config: outcome.Config}
	if outcome.Err != nil {
		config.Error = job.Cut(outcome.Err.Error(), textBytes)
	}
	for _, change := range outcome.Changes {
		told := ReconciledChange{Change: change}
		told.Note = job.Cut(change.Note, textBytes)
		if change.Err != nil {
			told.Error = job.Cut(change.Err.Error(), textBytes)
		}
		config.Changes = append(config.Changes, told)
	}
	return config
}

func (h *reconcileJobs) handle(ctx context.Context, run job.Run, spec ReconcileSpec) (job.Result, error) {
	if err := platform.Need(h.platform); err != nil {
		return job.Result{}, err
	}
	w := &window{failing: map[string]string{}}
	w.Iteration = iterate.New(run, spec.Window.Std(), w.progress)
	w.reconciler = reconcile.New(run.Jobs(), reconcile.NewPlatform(h.platform), w.add)
	w.reconciler.AllowEmpty = spec.AllowEmpty
	w.dryRun, w.single = spec.DryRun, spec.DryRun || run.Job().Mode() == job.ModeOneShot
	if w.single {
		return w.once(ctx)
	}
	err := w.Loop(ctx, w.pass)
	return job.Result{Message: w.message(), Counts: w.Counts()}, err
}

// pass is the only step: it takes the whole window.
func (w *window) pass(ctx context.Context) (iterate.Next, error) {
	working, cancel := job.Until(ctx, w.Stopping(), 0) // What is broken off is completed by the next iteration.
	defer cancel()
	pass, err := w.reconciler.Begin(working)
	if err != nil && w.Stopped() {
		return iterate.Done, ctx.Err()
	}
	if err != nil {
		return iterate.Done, err
	}
	w.begun(pass.Enabled)
	for w.Wait(pass.Working(), reportInterval) {
		w.Save()
	}
	if err := pass.Close(); err != nil {
		return iterate.Done, err
	}
	return iterate.Done, ctx.Err()
}

func (w *window) begun(enabled int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enabled = enabled
}

// add notes what was done for a config.
func (w *window) add(outcome reconcile.Outcome) {
	for _, change := range outcome.Changes {
		if w.dryRun {
			w.Count(string(change.Action), 1)
			continue
		}
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
	if w.single {
		w.configs = append(w.configs, reconciled(outcome))
	}
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
	for n, id := range ids {
		ids[n] = fmt.Sprintf("%s (%s)", id, w.failing[id])
	}
	return text + fmt.Sprintf("; not in line: %d: %s", len(ids), wording.List(ids, named))
}
