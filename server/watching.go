package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/metrics"
	"github.com/dendrascience/dendra-jobs/internal/secrets"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
	"github.com/dendrascience/dendra-jobs/server/watchdog"
)

// watching adds what the watchdog watches to the configuration of the API, and gives the
// work of both: they go on while the server does.
func (b *Backend) watching(ctx context.Context, path string, config *api.Config) ([]func(context.Context, *api.Clients) error, error) {
	file, err := b.watchdogFile(path)
	if err != nil {
		return nil, err
	}
	settings := b.reads(config)
	settings.Always, settings.Limits = true, file.Limits // Alerts are told though nobody looks.
	settings.ToldTypes = []string{"ExportDatastreams", "ImportFile"}
	reader, err := readmodel.New(ctx, settings)
	if err != nil {
		return nil, err
	}
	config.Overview = reader
	var known atomic.Bool
	watched := watchdog.Config{
		Alerts: func() watchdog.Now {
			// What was read by then is enough to begin with: the rest is not complete.
			now := watchdog.Now{Known: known.Load(), Complete: reader.Complete(), DriftKnown: reader.DriftKnown(), ReadTime: reader.LastRead()}
			if snapshot := reader.Snapshot(); snapshot != nil {
				ended, links := reader.Ended()
				now.Alerts, now.Links = slices.Concat(snapshot.Overview.GetAlerts(), ended), links
			}
			return now
		},
		GroupWait: file.GroupWait, Heartbeat: file.Heartbeat, Logger: b.Logger, Metrics: watchMetrics{}, Replica: replica(), Routes: file.Routes,
		Settings: file.Settings, Timings: file.Timings,
	}
	if config.Pipeline != nil {
		watched.Shared = alerts.NewBucket(config.Pipeline)
	}
	return []func(context.Context, *api.Clients) error{
		func(ctx context.Context, _ *api.Clients) error { return ended(ctx, reader.Run(ctx)) },
		func(ctx context.Context, _ *api.Clients) error {
			if _, err := reader.Await(ctx); err != nil {
				return ended(ctx, err)
			}
			known.Store(true)
			return ended(ctx, watchdog.New(watched).Run(ctx))
		},
	}, nil
}

// watchdogFile reads the file of a watchdog; without a path it is what holds by default.
func (b *Backend) watchdogFile(path string) (watchdog.File, error) {
	var text []byte
	if path != "" {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return watchdog.File{}, err
		}
	}
	return watchdog.ReadFile(path, text, func(ref job.SecretRef, destination string) (string, error) {
		return secrets.New(b.Getenv).Resolve(ref, destination, job.Owner{})
	}, b.Logger)
}

// TestReceivers sends a message to all receivers of the file of a watchdog.
func (b *Backend) TestReceivers(ctx context.Context, path string) ([]watchdog.Outcome, error) {
	file, err := b.watchdogFile(path)
	if err != nil {
		return nil, err
	}
	return file.Try(ctx), nil
}

// ended is nil if the work was told to end.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}

// replica names this process to people: HOST/PID.
func replica() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// watchMetrics are the metrics of the process.
type watchMetrics struct{}

// Firing implements watchdog.Metrics.
func (watchMetrics) Firing(rule string, n int) { metrics.AlertsFiring.Set(float64(n), rule) }

// Notified implements watchdog.Metrics.
func (watchMetrics) Notified(receiver string, sent bool) {
	result := "sent"
	if !sent {
		result = "failed"
	}
	metrics.Notifications.Inc(receiver, result)
}

// Heartbeat implements watchdog.Metrics.
func (watchMetrics) Heartbeat(taken time.Time) { metrics.Heartbeat.Set(float64(taken.Unix())) }
