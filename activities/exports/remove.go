package exports

import (
	"context"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/job"
)

// RemoveSpec is the spec of RemoveExports.
type RemoveSpec struct {
	DryRun bool `json:"dry_run,omitempty" help:"counts what has ended, and removes nothing"`
}

// Remove makes the job type RemoveExports. A nil client is enough to describe it.
//
// An export has ended when its life, which is in its key, has passed since its last object
// was written. Objects whose keys have another shape stay, whatever they are.
func Remove(store *objects.Store, at places.Places) job.Type {
	return job.NewType("RemoveExports", job.WorkerBackend, "Removes the files of exports whose time is over.",
		func(ctx context.Context, run job.Run, spec RemoveSpec) (job.Result, error) {
			r := &removal{run: run, spec: spec, store: store, bucket: at.Exports.Bucket, counts: map[string]int64{"objects": 0, "bytes": 0, "exports": 0, "kept": 0}}
			err := r.all(ctx)
			return job.Result{Message: fmt.Sprintf("%d exports with %d objects removed", r.counts["exports"], r.counts["objects"]), Counts: r.counts}, err
		}, job.ModeRecurring, job.ModeOneShot)
}

// removal is one attempt.
type removal struct {
	run    job.Run
	spec   RemoveSpec
	store  *objects.Store
	bucket string
	counts map[string]int64

	// The folder at hand: what is in it, and when the last object was written.
	folder string
	life   time.Duration
	found  []objects.Info
	newest time.Time
}

func (r *removal) all(ctx context.Context) error {
	for info, err := range r.store.List(ctx, r.bucket, "") {
		if err != nil {
			return err
		}
		folder, life, ok := folderOf(info.Key)
		if !ok {
			r.counts["kept"]++
			continue
		}
		if folder != r.folder {
			if err := r.end(ctx); err != nil {
				return err
			}
			r.folder, r.life, r.found, r.newest = folder, life, nil, time.Time{}
		}
		r.found = append(r.found, info)
		r.newest = later(r.newest, info.Modified)
	}
	return r.end(ctx)
}

// folderOf takes a key of an export apart.
func folderOf(key string) (folder string, life time.Duration, ok bool) {
	parts := keyPattern.FindStringSubmatch(key)
	if parts == nil {
		return "", 0, false
	}
	d, err := job.ParseDuration(parts[2])
	return parts[1], d.Std(), err == nil && d > 0 && d.Std() <= objects.MaxLink
}

// end removes the folder at hand if its time is over: the manifest, which is behind the
// parts, first, so that it names no part that is gone.
func (r *removal) end(ctx context.Context) error {
	if len(r.found) == 0 || time.Since(r.newest) <= r.life {
		return nil
	}
	r.counts["exports"]++
	for i := len(r.found) - 1; i >= 0; i-- {
		if job.Stopped(r.run) {
			return job.ErrStopped
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if !r.spec.DryRun {
			if err := r.store.Remove(ctx, r.bucket, r.found[i].Key); err != nil {
				return err
			}
		}
		r.counts["objects"]++
		r.counts["bytes"] += r.found[i].Size
		r.run.Checkpoint(job.Progress{Done: r.counts["objects"], Message: "objects removed"}, nil)
	}
	return nil
}
