package teardown_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/activities/images"
	"github.com/dendrascience/dendra-jobs/activities/images/codecs"
	"github.com/dendrascience/dendra-jobs/activities/images/process"
	"github.com/dendrascience/dendra-jobs/activities/platform/effects"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/activities/platform/teardown"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/workers"
)

// The test binary is also a worker, so that tests can kill one.
const workerVariable = "DENDRA_TEST_WORKER"

func TestMain(m *testing.M) {
	process.Main(codecs.All())
	if os.Getenv(workerVariable) != "" {
		workers.Main(workers.Program{Worker: job.WorkerBackend, Types: types})
	}
	os.Exit(m.Run()) //nolint:forbidigo // The main of the test binary.
}

// types are job types of the backend worker. An orchestrator makes one job of the
// config's organization, which prepares its messages.
func types(env workers.Environment) ([]job.Type, error) {
	api, err := activities.ConnectPlatform(env.Getenv)
	if err != nil {
		return nil, err
	}
	store, err := activities.ConnectObjects(env.Getenv)
	if err != nil {
		return nil, err
	}
	client, err := activities.ConnectPipeline(context.Background(), env.Getenv)
	if err != nil {
		return nil, err
	}
	at, err := activities.PlacesFromEnv(env.Getenv)
	if err != nil {
		return nil, err
	}
	pictures, err := activities.Pictures(env.Getenv)
	if err != nil {
		return nil, err
	}
	prepare := extract.PrepareHoboTimeFrame(client)
	prepare.Worker = job.WorkerBackend
	return []job.Type{
		effects.SideEffects(store, api, client, at), images.PhotoVariants(store, pictures), images.LogoAvatarVariants(store, pictures),
		integration.DiscoverTables(api), integration.ReconcileJobs(api), teardown.Organization(store, api, client, at), prepare,
		job.NewType(reconcile.OrchestratorType, job.WorkerBackend, "Makes one job.",
			func(ctx context.Context, run job.Run, spec reconcile.OrchestratorSpec) (job.Result, error) {
				return orchestrate(ctx, run, api, spec.ConfigID)
			}),
	}, nil
}

func orchestrate(ctx context.Context, run job.Run, api *platform.Client, config string) (job.Result, error) {
	answer, err := api.Integrations.ListIntegrationJobRegistrations(ctx, &platformv1.ListIntegrationJobRegistrationsRequest{ConfigId: config})
	if err != nil {
		return job.Result{}, platform.Explain(err)
	}
	set := job.Set{Provider: job.IntegrationProvider(config)}
	for _, r := range answer.GetRegistrations() {
		j := job.Job{
			ID: job.ID("PrepareHoboTimeFrame", config), Type: "PrepareHoboTimeFrame", Worker: job.WorkerBackend,
			Spec: job.EncodeJSON(extract.PrepareHoboSpec{
				Organization: r.GetOrganizationSlug(), Location: common, OperationMode: "live", IterationDuration: job.Duration(time.Second),
			}),
			Trigger: job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, Options: job.DefaultOptions(job.ModeContinuous),
		}
		j.Options.Owner.Organization = r.GetOrganizationSlug()
		set.Jobs = append(set.Jobs, j)
	}
	if _, err := run.Jobs().Apply(ctx, set); err != nil {
		return job.Result{}, err
	}
	return job.Result{}, workertest.Wait(ctx, run, nil)
}
