// Package upkeep has the job types that look after the stores.
package upkeep

import (
	"context"
	"fmt"

	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/job"
)

// CountUploadsSpec is the spec of CountUploads.
type CountUploadsSpec struct {
	Bucket string `json:"bucket" minLength:"1" help:"bucket to count in"`
	Prefix string `json:"prefix,omitempty" help:"beginning of the keys that count"`
}

// CountUploads makes the job type. A nil store is enough to describe it.
func CountUploads(store *objects.Store) job.Type {
	return job.NewType("CountUploads", job.WorkerBackend, "Counts the uploads of a bucket.",
		func(ctx context.Context, run job.Run, spec CountUploadsSpec) (job.Result, error) {
			var count, bytes int64
			for info, err := range store.List(ctx, spec.Bucket, spec.Prefix) {
				if err != nil {
					return job.Result{}, err
				}
				count++
				bytes += info.Size
			}
			run.Logger().Info("counted", "uploads", count)
			mean := bytes / count
			return job.Result{
				Message: fmt.Sprintf("%d uploads of %d bytes on average", count, mean),
				Counts:  map[string]int64{"uploads": count, "bytes": bytes},
			}, nil
		}, job.ModeRecurring, job.ModeOneShot)
}
