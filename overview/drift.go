package overview

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/contract"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// driftState is what is known of drift.
type driftState struct {
	// suspects are jobs that lists show otherwise than before. They are looked at first.
	suspects map[string]bool
	drifted  map[string]bool
	message  *jobsv1.DriftOverview
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
// few a second, so that a round over many jobs takes long.
func (r *Reader) readDrift(ctx context.Context) error {
	syncer := schedules.New(r.slow)
	applied := map[string]contract.AppliedJob{}
	for _, provider := range r.Drift {
		state, err := syncer.Applied(ctx, provider)
		if err != nil {
			return fmt.Errorf("what was applied: %w", err)
		}
		maps.Copy(applied, state.Jobs)
	}
	drifted := map[string]bool{}
	for _, id := range r.driftOrder(applied) {
		drift, err := syncer.DriftOf(ctx, id, applied[id])
		if err != nil {
			return fmt.Errorf("drift of job %s: %w", id, err)
		}
		if drift != nil && drift.Kind != schedules.DriftFailing {
			drifted[id] = true
			r.noteDrift(id, true)
		} else {
			r.noteDrift(id, false)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.drift.drifted = drifted
	r.state.drift.write(true)
	return nil
}

// driftOrder has the jobs that are suspected first.
func (r *Reader) driftOrder(applied map[string]contract.AppliedJob) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := &r.state.drift
	ids := slices.Sorted(maps.Keys(applied))
	slices.SortStableFunc(ids, func(a, b string) int {
		first := func(id string) int {
			if d.suspects[id] || d.drifted[id] {
				return 0
			}
			return 1
		}
		return first(a) - first(b)
	})
	d.suspects = nil
	return ids
}

func (r *Reader) noteDrift(id string, drifted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := &r.state.drift
	if d.drifted[id] == drifted {
		return
	}
	if d.drifted == nil {
		d.drifted = map[string]bool{}
	}
	if drifted {
		d.drifted[id] = true
	} else {
		delete(d.drifted, id)
	}
	d.write(false)
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
