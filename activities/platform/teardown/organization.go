package teardown

import (
	"context"

	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
)

// Organization makes the job type HandleOrganizationTeardown. Nil clients are enough to
// describe it.
func Organization(store *objects.Store, api *platform.Client, client *pipeline.Client, at places.Places) job.Type {
	clients := Clients{Places: at, Platform: api, Store: store, Pipeline: client}
	return job.NewType(Type, job.WorkerBackend,
		"Removes what an organization has outside of the platform, after its grace period.",
		func(ctx context.Context, run job.Run, spec Spec) (job.Result, error) {
			if err := platform.Need(api); err != nil {
				return job.Result{}, err
			}
			return Run(ctx, run, clients, spec)
		}, job.ModeOneShot)
}
