package readmodel

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/contract"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// driftState is what is known of drift.
type driftState struct {
	// suspects are jobs that lists show otherwise than before. They are looked at next.
	suspects map[string]bool
	// applied is the latest record of what was applied, and drifted what of it the latest
	// looks have found otherwise.
	applied, drifted map[string]contract.AppliedJob
	message          *jobsv1.DriftOverview
	// note says that jobs could not be looked at.
	note string
}

// suspect has a job looked at before the others.
func (d *driftState) suspect(id string) {
	if d.suspects == nil {
		d.suspects = map[string]bool{}
	}
	d.suspects[id] = true
}

// maxDriftIDs bounds the ids that are shown.
const maxDriftIDs = 10

// readDrift compares jobs with what was applied of them, one call for each. The calls are
// few a second, so that a round over many jobs takes long. Meanwhile jobs are applied and
// pruned: what is found counts as long as the record is the one that the job was compared
// with. A job that cannot be looked at is left out, as it was.
func (r *Reader) readDrift(ctx context.Context) error {
	syncer := schedules.New(r.client)
	// What was found counts once the record was read again.
	found := map[string]contract.AppliedJob{}
	if err := r.readApplied(ctx, syncer, found); err != nil {
		return err
	}
	read, looks := time.Now(), 0
	var skipped []string
	var failed error
	for left := r.driftOrder(); ; looks++ {
		var id string
		var applied contract.AppliedJob
		if id, applied, left = r.nextDrift(left); id == "" {
			break
		}
		drift, err := syncer.DriftOf(ctx, id, applied)
		switch {
		case ctx.Err() != nil:
			return ctx.Err() //nolint:wrapcheck // That of the context.
		case err != nil:
			skipped, failed = append(skipped, id), fmt.Errorf("drift of job %s: %w", id, err)
			continue
		}
		if drift != nil && drift.Kind != schedules.DriftFailing {
			found[id] = applied
		} else {
			delete(found, id)
			r.noDrift(id)
		}
		if time.Since(read) > r.DriftEvery && (len(found) > 0 || r.drifts()) {
			if err := r.readApplied(ctx, syncer, found); err != nil {
				return err
			}
			read = time.Now()
		}
	}
	if len(found) > 0 {
		if err := r.readApplied(ctx, syncer, found); err != nil {
			return err
		}
	}
	if looks > 0 && looks == len(skipped) {
		return failed
	}
	r.endDrift(looks, skipped, failed)
	return nil
}

// readApplied reads the record of what was applied, and notes the drift that was found: of
// jobs that were neither applied anew since, nor pruned.
func (r *Reader) readApplied(ctx context.Context, syncer *schedules.Syncer, found map[string]contract.AppliedJob) error {
	applied := map[string]contract.AppliedJob{}
	for _, provider := range r.Drift {
		state, err := syncer.Applied(ctx, provider)
		if err != nil {
			return fmt.Errorf("what was applied: %w", err)
		}
		maps.Copy(applied, state.Jobs)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d := &r.state.drift
	d.applied = applied
	if d.drifted == nil {
		d.drifted = map[string]contract.AppliedJob{}
	}
	maps.Copy(d.drifted, found)
	clear(found)
	maps.DeleteFunc(d.drifted, func(id string, compared contract.AppliedJob) bool { return applied[id] != compared })
	d.write(false)
	return nil
}

// driftOrder has the jobs that have drifted first.
func (r *Reader) driftOrder() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := &r.state.drift
	first := slices.Sorted(maps.Keys(d.drifted))
	return append(first, slices.DeleteFunc(slices.Sorted(maps.Keys(d.applied)), func(id string) bool { return slices.Contains(first, id) })...)
}

// nextDrift gives the job to look at next, "" if none is left, and the ids that are left
// then. Those that are suspected come first, also if they were looked at before.
func (r *Reader) nextDrift(left []string) (string, contract.AppliedJob, []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := &r.state.drift
	for id := range d.suspects {
		delete(d.suspects, id)
		if applied, ok := d.applied[id]; ok {
			return id, applied, slices.DeleteFunc(left, func(other string) bool { return other == id })
		}
	}
	for n, id := range left {
		if applied, ok := d.applied[id]; ok {
			return id, applied, left[n+1:]
		}
	}
	return "", contract.AppliedJob{}, nil
}

// noDrift notes that a job is as it was applied.
func (r *Reader) noDrift(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := &r.state.drift
	if _, known := d.drifted[id]; known {
		delete(d.drifted, id)
		d.write(false)
	}
}

// drifts reports whether some job has drifted.
func (r *Reader) drifts() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.state.drift.drifted) > 0
}

// endDrift ends a round. What could not be looked at comes first in the next one.
func (r *Reader) endDrift(looks int, skipped []string, failed error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := &r.state.drift
	d.note = ""
	for _, id := range skipped {
		d.suspect(id)
	}
	if len(skipped) > 0 {
		d.note = fmt.Sprintf("%s: %d of %d looks failed: %s", driftSource, len(skipped), looks, oneLine(failed))
	}
	d.write(true)
}

// write makes the message. It is called with the lock.
func (d *driftState) write(done bool) {
	ids := slices.Sorted(maps.Keys(d.drifted))
	m := &jobsv1.DriftOverview{Jobs: int32(len(ids)), JobIds: ids[:min(len(ids), maxDriftIDs)]} //nolint:gosec // Jobs of a namespace.
	if m.ReadTime = d.message.GetReadTime(); done {
		m.ReadTime = timestamppb.Now()
	}
	d.message = m
}
