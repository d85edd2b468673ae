package schedules

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// appliedAs is what is remembered of a job that was applied.
func appliedAs(j job.Job) (contract.AppliedJob, error) {
	hash, err := j.DefinitionHash()
	if err != nil {
		return contract.AppliedJob{}, err
	}
	applied := contract.AppliedJob{Mode: j.Mode(), Hash: hash, Paused: j.Options.Paused}
	if j.Mode() != job.ModeRecurring {
		return applied, nil
	}
	if applied.Ends, err = lastStart(j); err != nil {
		return applied, err
	}
	wanted, err := scheduleOf(j)
	if err != nil {
		return applied, err
	}
	applied.Version, err = wantedVersion(j, wanted)
	return applied, err
}

// findUnrecorded finds jobs that are in sync without being known as applied, and jobs
// that are known as applied, no longer declared and gone. An apply that was cut off
// leaves both, and so does someone who deletes a resource. Jobs that ran once are
// forgotten with a prune alone.
func (p *Plan) findUnrecorded() error {
	p.unrecorded.Applied = map[string]contract.AppliedJob{}
	p.unrecorded.Types = newTypes(p.applied.Types, p.options.Types)
	seen := map[string]bool{}
	for _, change := range p.Changes {
		seen[change.JobID] = true
		if change.Action != ActionUnchanged || !change.inSync {
			continue
		}
		applied, err := appliedAs(change.job)
		if err != nil {
			return err
		}
		if known, ok := p.applied.Jobs[change.JobID]; !ok || !sameApplied(known, applied) {
			p.unrecorded.Applied[change.JobID] = applied
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.applied.Jobs)) {
		if seen[id] || p.options.own.leaves(id) {
			continue // What is there is part of the plan.
		}
		runsOnce := p.applied.Jobs[id].Mode == job.ModeOneShot || p.applied.Jobs[id].Mode == job.ModeQueued
		if !runsOnce || p.options.Prune {
			p.unrecorded.Removed = append(p.unrecorded.Removed, id)
		}
	}
	return nil
}

// maxKeptSchema bounds the schema of a job type that is kept, in bytes: all that was
// applied has to fit into 2 MiB.
const maxKeptSchema = 32 << 10

// newTypes are the job types to keep that are not kept yet as they are.
func newTypes(kept, wanted map[string]contract.AppliedType) map[string]contract.AppliedType {
	added := map[string]contract.AppliedType{}
	for name, t := range wanted {
		if before, ok := kept[name]; ok && bytes.Equal(job.EncodeJSON(before), job.EncodeJSON(t)) {
			continue
		}
		if len(t.SpecSchema) <= maxKeptSchema {
			added[name] = t
		}
	}
	return added
}

func sameApplied(a, b contract.AppliedJob) bool {
	return a.Mode == b.Mode && a.Hash == b.Hash && a.Version == b.Version && a.Paused == b.Paused && a.Ends.Equal(b.Ends)
}

// recorder writes down what an apply does, some jobs at a time.
type recorder struct {
	client   *client.Client
	provider job.Provider

	mu      sync.Mutex
	known   contract.AppliedState
	pending contract.AppliedRecord
}

// recordEvery is how many jobs are written down at a time.
const recordEvery = 100

func newRecorder(c *client.Client, p *Plan) *recorder {
	r := &recorder{client: c, provider: p.options.Provider, known: p.applied, pending: p.unrecorded}
	if r.pending.Applied == nil {
		r.pending.Applied = map[string]contract.AppliedJob{}
	}
	return r
}

// before notes that jobs are about to be deleted. It is written before they are:
// cut off in between, a job that still exists is seen, and one that is gone would
// look as if someone had deleted it.
func (r *recorder) before(ctx context.Context, changes []Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, change := range changes {
		if change.Action == ActionDelete {
			r.pending.Removed = append(r.pending.Removed, change.JobID)
		}
	}
	return r.flush(ctx)
}

// done notes that a job is in sync.
func (r *recorder) done(ctx context.Context, change Change) error {
	if change.Action == ActionDelete {
		return nil
	}
	applied, err := appliedAs(change.job)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if change.onlyRemoves() {
		r.pending.Removed = append(r.pending.Removed, change.JobID)
		return nil
	}
	r.pending.Applied[change.JobID] = applied
	if len(r.pending.Applied) < recordEvery {
		return nil
	}
	return r.flush(ctx)
}

// close writes what is left, even if the apply was interrupted.
func (r *recorder) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flush(ctx)
}

func (r *recorder) flush(ctx context.Context) error {
	if r.pending.Empty() {
		return nil
	}
	if err := recordApplied(ctx, r.client, r.provider, r.known, r.pending); err != nil {
		return err
	}
	r.known.Take(r.pending)
	r.pending = contract.AppliedRecord{Applied: map[string]contract.AppliedJob{}}
	return nil
}
