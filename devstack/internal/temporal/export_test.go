package temporal

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/temporal"
)

// PrepareStore makes the files of a server in folder and returns that of the lists.
func PrepareStore(ctx context.Context, folder string) (string, error) {
	o := Options{Folder: folder, Namespace: "default", Tuning: TuningLatency}
	return filepath.Join(folder, visibilityFile), prepareStore(ctx, o, serverConfig(o))
}

// StartMeasured starts a server that reports its metrics to a handler.
func StartMeasured(ctx context.Context, o Options, to metrics.Handler) (*Server, error) {
	return start(ctx, o, temporal.WithCustomMetricsHandler(to))
}

// NewLogger passes messages of a server on to the logger to; serving says whether it serves.
func NewLogger(to *slog.Logger, serving *atomic.Bool) log.WithLogger {
	return &logger{to: to, fatal: newFatal(), serving: serving}
}
