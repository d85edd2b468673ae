package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/orchestrate"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/iterate"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// maxLag is how many looks in a row may miss a job that was just made.
const maxLag = 5

type orchestrateIntegration struct {
	platform *platform.Client
	planner  *orchestrate.Planner
}

// Orchestrate makes the job type OrchestrateIntegration, which checks the specs of jobs of
// the types. A nil client is enough to describe it.
//
// An iteration is one window. It begins with a full read of what the config wants, applies
// its jobs, and then looks at their state until the window is over or a job is gone. What
// the user should know is written to the platform: conditions, and log entries for what
// has changed.
func Orchestrate(client *platform.Client, types ...job.Type) job.Type {
	h := &orchestrateIntegration{platform: client, planner: orchestrate.NewPlanner(types...)}
	return job.NewType(reconcile.OrchestratorType, job.WorkerBackend,
		"Makes the jobs of an integration config, and tells the platform of their state.",
		h.handle, job.ModeContinuous)
}

// orchestration is one iteration.
type orchestration struct {
	*iterate.Iteration
	platform *platform.Client
	planner  *orchestrate.Planner
	spec     reconcile.OrchestratorSpec

	version int64  // of the config
	station string // of the config, if it has one
	plan    orchestrate.Plan
	applied error // why not all jobs are as planned
	lagging int   // looks in a row that missed a job, also one of another config
	failing failures
	tables  search
	summary string
}

// failures are the jobs that were failing when that was last logged: since when, by id.
type failures map[string]string

// orchestrated is the cursor.
type orchestrated struct {
	Failing failures `json:"failing,omitempty"`
	Tables  search   `json:"tables,omitzero"`
}

func (h *orchestrateIntegration) handle(ctx context.Context, run job.Run, spec reconcile.OrchestratorSpec) (job.Result, error) {
	if err := platform.Need(h.platform); err != nil {
		return job.Result{}, err
	}
	var before orchestrated
	if _, err := run.Cursor(&before); err != nil {
		return job.Result{}, err
	}
	o := &orchestration{platform: h.platform, planner: h.planner, spec: spec, failing: before.Failing, tables: before.Tables}
	o.Iteration = iterate.New(run, spec.Window.Std(), o.progress)
	err := o.Loop(ctx, o.window)
	return job.Result{Message: o.summary, Counts: o.Counts(), Cursor: job.EncodeJSON(o.cursor())}, err
}

// window is the only step.
func (o *orchestration) window(ctx context.Context) (iterate.Next, error) {
	working, cancel := job.Until(ctx, o.Stopping(), 0) // What is broken off is completed by the next iteration.
	defer cancel()
	err := o.work(working)
	if o.Stopped() {
		err = ctx.Err()
	}
	return iterate.Done, err
}

func (o *orchestration) work(ctx context.Context) error {
	enabled, err := o.read(ctx)
	if err != nil {
		return err
	}
	if !enabled {
		o.summary = fmt.Sprintf("config %s wants no jobs: ReconcileJobs stops this one", o.spec.ConfigID)
		o.Save()
		o.Wait(ctx, o.Left())
		return nil
	}
	applied, err := o.plan.Apply(ctx, o.Jobs(), o.spec.ConfigID)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	o.applied = err
	if err := o.logChanges(ctx, applied); err != nil {
		return err
	}
	for {
		missing, err := o.check(ctx)
		late := len(missing) > 0 && o.lagging >= maxLag
		o.Save()
		switch {
		case err != nil:
			return err
		case o.applied != nil: // The next iteration tries again, after a wait that grows.
			return job.Fail(errclass.NotApplied, "config %s: %w", o.spec.ConfigID, o.applied)
		case late && slices.ContainsFunc(missing, o.plan.Has):
			return nil // The next iteration makes it again.
		}
		wait := o.spec.CheckEvery.Std()
		if len(missing) > 0 && !late {
			wait = min(wait, time.Second)
		}
		if !o.Wait(ctx, wait) {
			return nil
		}
	}
}

// read plans the jobs. It reports false if the config wants none.
func (o *orchestration) read(ctx context.Context) (bool, error) {
	answer, err := o.platform.Integrations.GetIntegrationConfig(ctx, &platformv1.GetIntegrationConfigRequest{Id: o.spec.ConfigID})
	if connect.CodeOf(err) == connect.CodeNotFound {
		return false, nil
	}
	if err != nil {
		return false, platform.Explain(err)
	}
	config := answer.GetIntegrationConfig()
	in, err := orchestrate.Read(ctx, o.platform, config)
	if err != nil || !config.GetEnabled() || len(in.Registrations) == 0 {
		return false, err
	}
	o.version, o.station = config.GetVersion(), config.GetStationId()
	o.plan = o.planner.Plan(in)
	return true, nil
}

// check tells the platform of the state of the jobs, and gives those that are missing. Since
// lists lag, and other configs make their jobs at the same time, that is not told before maxLag
// looks in a row missed one.
func (o *orchestration) check(ctx context.Context) (missing []string, err error) {
	found, err := o.find(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.logFailures(ctx, found); err != nil {
		return nil, err
	}
	conditions := o.plan.Conditions(o.applied, found)
	o.summary = describe(o.plan, conditions)
	missing = o.plan.Missing(found)
	if conditions[0].Holds { // It is ready.
		o.seekTables(ctx)
	}
	if len(missing) == 0 {
		o.lagging = 0
	} else if o.lagging++; o.lagging < maxLag && o.applied == nil {
		return missing, nil
	}
	return missing, o.platform.WriteConditions(ctx, o.spec.ConfigID, platform.ConditionChange{Set: conditions, Observed: o.version})
}

// find lists the jobs of the config, and those that it is part of.
func (o *orchestration) find(ctx context.Context) ([]job.Summary, error) {
	found, err := o.Jobs().Find(ctx, job.Filter{Provider: job.IntegrationProvider(o.spec.ConfigID), State: true})
	looked := map[string]bool{}
	for _, joined := range o.plan.Joined {
		if err != nil || looked[joined.Config] {
			continue
		}
		looked[joined.Config] = true
		var more []job.Summary
		more, err = o.Jobs().Find(ctx, job.Filter{Provider: job.IntegrationProvider(joined.Config), State: true})
		found = append(found, more...)
	}
	return found, err
}

func (o *orchestration) progress(counts map[string]int64) (job.Progress, any) {
	return job.Progress{Done: counts["created"] + counts["updated"] + counts["deleted"], Message: o.summary}, o.cursor()
}

func (o *orchestration) cursor() orchestrated {
	return orchestrated{Failing: o.failing, Tables: o.tables}
}

// describe is one line about the jobs.
func describe(plan orchestrate.Plan, conditions []platform.Condition) string {
	texts := []string{fmt.Sprintf("jobs: %d", len(plan.Jobs))}
	if n := len(plan.Joined); n > 0 {
		texts = append(texts, fmt.Sprintf("parts of jobs of other configs: %d", n))
	}
	for _, c := range conditions {
		if c.Holds != (c.Type == orchestrate.ConditionReady) {
			texts = append(texts, c.Reason+": "+c.Message)
		}
	}
	return strings.Join(texts, "; ")
}
