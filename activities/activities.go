// Package activities is the catalogue of the built-in job types: which worker
// carries them and what they need. The handlers are in its subpackages, one per
// area. A new job type is one file there and one line here.
package activities

import (
	"context"
	"log/slog"
	"slices"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/activities/exports"
	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/activities/images"
	"github.com/dendrascience/dendra-jobs/activities/images/process"
	"github.com/dendrascience/dendra-jobs/activities/imports"
	"github.com/dendrascience/dendra-jobs/activities/load"
	"github.com/dendrascience/dendra-jobs/activities/maintenance"
	"github.com/dendrascience/dendra-jobs/activities/platform/effects"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/activities/platform/reversesync"
	"github.com/dendrascience/dendra-jobs/activities/platform/teardown"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/runlogs"
	"github.com/dendrascience/dendra-jobs/job"
)

// Backend are the job types of the backend worker.
func Backend(store *objects.Store, pictures *process.Pool, api *platform.Client, client *pipeline.Client, at places.Places, getenv func(string) string) []job.Type {
	types := append([]job.Type{
		images.PhotoVariants(store, pictures),
		images.LogoAvatarVariants(store, pictures),
		integration.ReconcileJobs(api),
		integration.DiscoverTables(api),
		effects.SideEffects(store, api, client, at),
		effects.ReconcileImages(store, api, at),
		teardown.Organization(store, api, client, at),
		exports.Datastreams(store, api, at),
		exports.Remove(store, at),
		reversesync.Subscribe(api, client, getenv),
		maintenance.Maintenance(client),
	}, reversesync.Metadata(client, getenv)...)
	return append(types, integration.Orchestrate(api, slices.Concat(types, Extract(nil, nil, places.Places{}), Load(nil, nil))...))
}

// Extract are the job types of the extract worker. Store is nil of a worker that imports no
// files.
func Extract(client *pipeline.Client, store *objects.Store, at places.Places) []job.Type {
	return []job.Type{
		extract.HoboTimeFrame(client),
		extract.PrepareHoboTimeFrame(client),
		extract.CampbellScientificLdmp(client),
		extract.PrepareCampbellScientificLdmp(client),
		imports.File(client, store, at),
	}
}

// Load are the job types of the load worker.
func Load(client *pipeline.Client, store *objects.Store) []job.Type {
	return []job.Type{
		load.LiveInflux(client),
		archive.PostToArchive(client, store),
		archive.ReplayArchive(client, store),
	}
}

// Types describes all built-in job types: they can be checked against, not run.
func Types() []job.Type {
	return slices.Concat(Backend(nil, nil, nil, nil, places.Places{}, nil), Extract(nil, nil, places.Places{}), Load(nil, nil))
}

// ConnectObjects makes the S3 client from the environment. It does not connect
// yet: a store that is away fails the runs that need it, which are tried again.
func ConnectObjects(getenv func(string) string) (*objects.Store, error) {
	config, err := objects.ConfigFromEnv(getenv)
	if err != nil {
		return nil, err
	}
	return objects.New(config)
}

// ConnectUploads is ConnectObjects for a worker that needs the store for ImportFile alone: it
// is nil if the environment has no keys of one, and runs of that job type say so.
func ConnectUploads(getenv func(string) string) (*objects.Store, error) {
	if getenv(objects.EnvAccessKey) == "" && getenv(objects.EnvCredentialsFile) == "" {
		return nil, nil //nolint:nilnil // Documented: there is none.
	}
	return ConnectObjects(getenv)
}

// Pictures makes the pool of image processes from the environment. A program that calls it has to
// call [process.Main] first of all.
func Pictures(getenv func(string) string) (*process.Pool, error) {
	settings, err := process.SettingsFromEnv(getenv)
	if err != nil {
		return nil, err
	}
	return process.NewPool(settings), nil
}

// ConnectPlatform makes the client of the Platform API from the environment. It is nil
// if the environment does not name one: job types that need it say so.
func ConnectPlatform(getenv func(string) string) (*platform.Client, error) {
	if getenv(platform.EnvURL) == "" && getenv(platform.EnvToken) == "" {
		return nil, nil //nolint:nilnil // Documented: there is none.
	}
	config, err := platform.ConfigFromEnv(getenv)
	if err != nil {
		return nil, err
	}
	return platform.New(config)
}

// PlacesFromEnv are where things of organizations are, as the environment says.
func PlacesFromEnv(getenv func(string) string) (places.Places, error) { return places.FromEnv(getenv) }

// RunLogs keeps the logs of runs on the server of a client. Closing sends what is left,
// and comes before the client is closed.
func RunLogs(ctx context.Context, client *pipeline.Client, logger *slog.Logger, closing func(func())) *runlogs.Keeper {
	keeper := runlogs.Keep(context.WithoutCancel(ctx), client, logger)
	closing(keeper.Close)
	return keeper
}

// ConnectPipeline connects to the NATS server that the environment names, and
// goes on trying if it is away.
func ConnectPipeline(ctx context.Context, getenv func(string) string) (*pipeline.Client, error) {
	return pipeline.Connect(ctx, pipeline.URLFromEnv(getenv), pipeline.FromEnv(getenv))
}
