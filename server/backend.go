package server

import (
	"context"
	"log/slog"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// Backend says which servers the Job API works on, and connects to them. Whoever makes
// one closes it.
type Backend struct {
	// Dialing is called before Temporal is dialed, and what it gives afterwards. May be
	// nil.
	Dialing func(address string) (done func())
	// Getenv reads an environment variable. Required.
	Getenv func(string) string
	// Logger takes what an error does not tell its caller. Required.
	Logger *slog.Logger
	// NATS is the URL of the NATS server. Defaults to the one in the environment.
	NATS string
	// Temporal overrides what the environment says of Temporal.
	Temporal temporalclient.Settings
	// Types are the job types of this program.
	Types []job.Type

	closers []func()
}

// Close closes all connections.
func (b *Backend) Close() {
	for n := len(b.closers) - 1; n >= 0; n-- {
		b.closers[n]()
	}
	b.closers = nil
}

// InProcess gives clients of a Job API in this process. What it works on is connected to
// when a call needs it.
func (b *Backend) InProcess(interceptors ...connect.ClientInterceptor) *api.Clients {
	s := api.New(b.API())
	b.closers = append(b.closers, s.Close)
	return s.InProcess(interceptors...)
}

// API is what the Job API works on, which is connected to when a call needs it.
func (b *Backend) API() api.Config {
	options, wrong := temporalclient.Options(b.Temporal)
	temporal := temporalclient.NewLate(b.Temporal)
	var dialing func() func()
	if b.Dialing != nil {
		dialing = func() func() { return b.Dialing(options.HostPort) }
	}
	config := api.Config{
		Address: options.HostPort, Client: client.New(temporal, options.Namespace), Logger: b.Logger, Pipeline: b.pipeline(), Platform: b.platform(),
		Places: func() (places.Places, error) { return places.FromEnv(b.Getenv) }, Store: b.store, Types: b.Types,
		Connect: func(ctx context.Context) error {
			if wrong != nil {
				return wrong
			}
			return temporal.Connect(ctx, dialing)
		},
	}
	b.closers = append(b.closers, temporal.Close, config.Pipeline.Close)
	config.Reads = b.reads(&config)
	config.Reads.Patience = patience
	return config
}

// pipeline is the NATS server. It may come later.
func (b *Backend) pipeline() *pipeline.Client {
	url := b.NATS
	if url == "" {
		url = pipeline.URLFromEnv(b.Getenv)
	}
	return pipeline.Late(url, pipeline.FromEnv(b.Getenv))
}

// store is the S3 store that the environment names.
func (b *Backend) store() (*objects.Store, error) {
	config, err := objects.ConfigFromEnv(b.Getenv)
	if err != nil {
		return nil, err
	}
	return objects.New(config)
}

// patience is how long the first overview waits for what is read later than the rest.
const patience = 5 * time.Second

// platform is the client of the Platform API, nil if the environment does not name it.
func (b *Backend) platform() *platform.Client {
	settings, err := platform.ConfigFromEnv(b.Getenv)
	if err != nil && (b.Getenv(platform.EnvURL) != "" || b.Getenv(platform.EnvToken) != "") {
		b.Logger.Error("the platform is not asked", "error", err)
	}
	if err != nil {
		return nil
	}
	c, err := platform.New(settings)
	if err != nil {
		b.Logger.Error("the platform is not asked", "error", err)
		return nil
	}
	return c
}

// reads is what the read model of a Job API reads. The platform is read if the environment
// names it.
func (b *Backend) reads(config *api.Config) readmodel.Config {
	c := readmodel.Config{Temporal: b.Temporal, Pipeline: config.Pipeline, Logger: b.Logger}
	if config.Platform != nil {
		c.Platform, c.PlatformURL = config.Platform, b.Getenv(platform.EnvURL)
	}
	return c
}
