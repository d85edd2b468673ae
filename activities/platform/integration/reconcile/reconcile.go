// Package reconcile brings the jobs of integrations in line with the platform.
//
// An integration config that is enabled has one job of provider integration: its
// orchestrator. The orchestrator makes the config's other jobs, of provider
// integration.CONFIG. When a config is disabled, its orchestrator is stopped, and then
// what it has made.
//
// It is level-triggered: what is done follows from a full read of what is wanted and what
// is there. A hint only says which config to look at first; a hint that is lost costs
// time, nothing else. Each config is worked on by itself, so that none waits for another
// that fails.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/orchestrate"
	"github.com/dendrascience/dendra-jobs/job"
)

const (
	// parallel is how many configs are worked on at once.
	parallel = 8
	// fresh is how long a full read serves those who work on configs.
	fresh = 5 * time.Second
)

// backoff spaces the tries of a config that fails.
var backoff = job.Backoff{Initial: job.Duration(time.Second), Max: job.Duration(time.Minute), Coefficient: 2}

// Reconciler reconciles integration configs.
type Reconciler struct {
	// AllowEmpty takes a platform without any config at its word. Otherwise nothing is
	// changed: it may be the wrong platform, or one that has lost its data.
	AllowEmpty bool

	jobs   job.Jobs
	source Source
	report func(Outcome)

	reading   sync.Mutex // one full read at a time
	mu        sync.Mutex
	last      *state // nil if everything has to be read anew
	forgotten int    // how often it was set to nil
}

// Outcome is what was done for one config.
type Outcome struct {
	Config  string
	Changes []job.Change
	// Condition is what the platform is told of the config.
	Condition Condition
	// Err says why the config is not as it should be, if another try can help.
	Err error
}

// New makes a reconciler. It reports the outcome of each config that it has worked on.
// Several are worked on at once.
func New(jobs job.Jobs, source Source, report func(Outcome)) *Reconciler {
	return &Reconciler{jobs: jobs, source: source, report: report}
}

// Pass is one pass over all configs, and what follows from it until it is closed.
type Pass struct {
	// Enabled counts the configs that shall have a job, as it began.
	Enabled int

	r         *Reconciler
	keys      *keys
	stopHints func() // and waits until there are no more
}

// everything is the key of all configs.
const everything = ""

// Begin reads everything, and begins to work on the configs that are not as they should
// be, and on those that hints name. One that fails is tried again. That goes on until the
// pass is closed or ctx ends.
func (r *Reconciler) Begin(ctx context.Context) (*Pass, error) {
	s, err := r.readAnew(ctx)
	if err != nil {
		return nil, err
	}
	p := &Pass{Enabled: s.enabled(), r: r}
	p.keys = newKeys(ctx, parallel, backoff, p.do)
	for _, id := range s.differing() {
		p.keys.add(id)
	}
	hearing, stop := context.WithCancel(p.keys.ctx)
	p.stopHints = stop
	p.keys.work.Go(func() error {
		p.follow(hearing)
		return nil
	})
	return p, nil
}

// do works on a config, or finds out on which ones to work.
func (p *Pass) do(ctx context.Context, id string) error {
	if id != everything {
		outcome := p.r.workOn(ctx, id)
		p.r.report(outcome)
		return outcome.Err
	}
	s, err := p.r.current(ctx)
	if err != nil {
		return err
	}
	for _, id := range s.differing() {
		p.keys.addUnlessFailed(id)
	}
	return nil
}

// follow listens to hints. Without them everything still happens, in the next pass.
func (p *Pass) follow(ctx context.Context) {
	for failures := 1; ctx.Err() == nil; failures++ {
		_ = p.r.source.Hints(ctx, p.requeue) // A source that is away shows in the next full read.
		select {
		case <-time.After(backoff.Wait(failures)):
		case <-ctx.Done():
		}
	}
}

// requeue puts configs into the queue, and then all others: configs depend on those that they
// refer to, and on those that refer to them.
func (p *Pass) requeue(configs ...string) {
	p.r.forget()
	// Those at work may have read what is forgotten now.
	p.keys.repeatWorking()
	for _, id := range append(configs, everything) {
		p.keys.add(id)
	}
}

// Working is a context that ends when the pass cannot go on: [Pass.Close] says why.
func (p *Pass) Working() context.Context { return p.keys.ctx }

// Close ends the pass, and waits for the configs that are worked on. Its error is of class Panic.
func (p *Pass) Close() error {
	p.stopHints()
	return p.keys.close()
}

// Once reads everything, and works once on each config that is not as it should be. In a
// dry run it tells what would be done. It gives how many configs are enabled.
func (r *Reconciler) Once(ctx context.Context, dryRun bool) (enabled int, err error) {
	s, err := r.readAnew(ctx)
	if err != nil {
		return 0, err
	}
	group, _ := job.NewGroup(ctx)
	group.SetLimit(parallel)
	for _, id := range s.differing() {
		group.Go(func() error {
			if dryRun {
				r.report(r.apply(ctx, s.config(id), true))
			} else {
				r.report(r.workOn(ctx, id))
			}
			return ctx.Err()
		})
	}
	return s.enabled(), group.Wait()
}

// workOn brings the jobs of a config in line, and tells the platform.
func (r *Reconciler) workOn(ctx context.Context, id string) Outcome {
	s, err := r.current(ctx)
	if err != nil {
		return Outcome{Config: id, Err: err}
	}
	c := s.configs[id]
	if c == nil {
		c = &config{Config: Config{ID: id}} // Neither known nor listed; its job is asked for all the same.
	}
	outcome := r.apply(ctx, c, false)
	left := c.Orchestrated && outcome.Condition.gone()
	if !c.known || c.Condition == outcome.Condition && !left || ctx.Err() != nil {
		return outcome
	}
	if err := r.source.SetCondition(ctx, id, outcome.Condition); err != nil {
		r.forget() // It may have been written.
		outcome.Err = errors.Join(outcome.Err, fmt.Errorf("the condition of config %s cannot be written: %w", id, err))
		return outcome
	}
	s.recordCondition(c, outcome.Condition)
	r.forgetOthers(s)
	return outcome
}

// apply brings the jobs of a config in line.
func (r *Reconciler) apply(ctx context.Context, c *config, dryRun bool) Outcome {
	if problem := c.problem(); problem != "" { // What runs goes on until that is mended.
		return Outcome{
			Config: c.ID, Condition: c.invalid(problem),
			Changes: []job.Change{{JobID: OrchestratorID(c.ID), Action: job.ActionBlocked, Note: problem}},
		}
	}
	set := job.Set{Provider: job.ProviderIntegration, Only: c.jobIDs(), DryRun: dryRun}
	if c.Job != nil {
		set.Jobs = []job.Job{*c.Job}
	}
	done, err := r.jobs.Apply(ctx, set)
	changes := done.Changes
	if c.Job == nil && err == nil {
		// The orchestrator has ended, so that nobody makes these again.
		done, err = orchestrate.Apply(ctx, r.jobs, job.Set{Provider: job.IntegrationProvider(c.ID), DryRun: dryRun})
		changes = append(changes, done.Changes...)
	}
	return Outcome{Config: c.ID, Changes: changes, Condition: c.applied(done, err), Err: err}
}

// readAnew reads everything.
func (r *Reconciler) readAnew(ctx context.Context) (*state, error) {
	r.forget()
	return r.current(ctx)
}

// forget has everything read anew by those who look from now on.
func (r *Reconciler) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.forgotten = nil, r.forgotten+1
}

// forgetOthers is forget, unless s is what everybody looks at: another read, which may be
// under way, does not know what the platform was told since.
func (r *Reconciler) forgetOthers(s *state) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != s {
		r.last, r.forgotten = nil, r.forgotten+1
	}
}

// current is a full read that is fresh.
func (r *Reconciler) current(ctx context.Context) (*state, error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	r.mu.Lock()
	last, forgotten := r.last, r.forgotten
	r.mu.Unlock()
	if last != nil && time.Since(last.at) < fresh {
		return last, nil
	}
	s, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if forgotten == r.forgotten { // Else something has changed since the read began.
		r.last = s
	}
	return s, nil
}
