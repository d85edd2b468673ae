package temporal_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/server/common/log/tag"

	"github.com/dendrascience/dendra-jobs/devstack/internal/temporal"
)

// TestErrorsOfAServerThatServes: only these are errors for a reader of the log.
func TestErrorsOfAServerThatServes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		serving bool
		err     error
		level   string
	}{
		"starting or stopping": {false, errors.New("Frontend is not healthy yet"), "INFO"},
		"serving":              {true, errors.New("disk I/O error"), "ERROR"},
		"the caller went away": {true, context.Canceled, "INFO"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			serving := new(atomic.Bool)
			serving.Store(c.serving)
			temporal.NewLogger(slog.New(slog.NewTextHandler(&log, nil)), serving).With(tag.NewStringTag("service", "frontend")).Error("service failures", tag.Error(c.err))
			require.Contains(t, log.String(), "level="+c.level+" ")
		})
	}
}
