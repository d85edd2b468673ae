package temporalclient_test

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"

	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

func TestAWorkerThatStopsDoesNotWarn(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	options, err := temporalclient.Options(temporalclient.Settings{
		Address: "127.0.0.1:1", Logger: slog.New(slog.NewTextHandler(&out, nil)),
	})
	require.NoError(t, err)
	logger := log.With(options.Logger, "TaskQueue", "load")
	logger.Warn("Failed to poll for task.", "Error", errors.New("worker stopping"))
	require.Empty(t, out.String())
	logger.Warn("Failed to poll for task.", "Error", errors.New("no such namespace"))
	require.Regexp(t, `level=WARN msg="Failed to poll for task\." TaskQueue=load Error="no such namespace"`, out.String())
}
