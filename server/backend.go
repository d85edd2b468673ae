package server

import (
	"context"
	"log/slog"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
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

// Client connects to Temporal.
func (b *Backend) Client(ctx context.Context) (*client.Client, error) {
	options, err := temporalclient.Options(b.Temporal)
	if err != nil {
		return nil, err
	}
	done := func() {}
	if b.Dialing != nil {
		done = b.Dialing(options.HostPort)
	}
	temporal, err := temporalclient.Dial(ctx, b.Temporal)
	done()
	if err != nil {
		return nil, err
	}
	b.closers = append(b.closers, temporal.Close)
	return client.New(temporal, options.Namespace), nil
}

// Pipeline connects to NATS. The server may come later.
func (b *Backend) Pipeline(ctx context.Context) (*pipeline.Client, error) {
	url := b.NATS
	if url == "" {
		url = pipeline.URLFromEnv()
	}
	streams, err := pipeline.StreamSettingsFromEnv(b.Getenv)
	if err != nil {
		return nil, err
	}
	c, err := pipeline.Connect(ctx, url, pipeline.WithStreams(streams))
	if err != nil {
		return nil, err
	}
	b.closers = append(b.closers, c.Close)
	return c, nil
}

// API is what the Job API works with, without NATS.
func (b *Backend) API(ctx context.Context) (api.Config, error) {
	temporal, err := b.Client(ctx)
	if err != nil {
		return api.Config{}, err
	}
	options, err := temporalclient.Options(b.Temporal)
	if err != nil {
		return api.Config{}, err
	}
	return api.Config{Client: temporal, Address: options.HostPort, Platform: b.platform(), Types: b.Types, Logger: b.Logger}, nil
}

// APIWithPipeline is what the Job API works with.
func (b *Backend) APIWithPipeline(ctx context.Context) (api.Config, error) {
	config, err := b.API(ctx)
	if err != nil {
		return api.Config{}, err
	}
	config.Pipeline, err = b.Pipeline(ctx)
	return config, err
}

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

// Reads is what the read model of a Job API reads. The platform is read if the environment
// names it.
func (b *Backend) Reads(config *api.Config) readmodel.Config {
	c := readmodel.Config{Client: config.Client, Pipeline: config.Pipeline, TemporalAddress: config.Address, Logger: b.Logger}
	if config.Platform != nil {
		c.Platform, c.PlatformURL = config.Platform, b.Getenv(platform.EnvURL)
	}
	return c
}
