package temporal_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/metrics/metricstest"
	server "go.temporal.io/server/temporal"

	"github.com/dendrascience/dendra-jobs/devstack/internal/ports"
	"github.com/dendrascience/dendra-jobs/devstack/internal/temporal"
)

// A start does not read from the database which search attributes there are. One
// mutex guards such reads: a server with many schedules due at its start would not
// come up for a long time.
func TestStartsDoNotReadSearchAttributes(t *testing.T) {
	t.Parallel()
	const starts = 100
	measured := metricstest.NewCaptureHandler()
	c := dial(t, startWith(t, server.WithCustomMetricsHandler(measured)))
	jobID := sdk.NewSearchAttributeKeyKeyword("JobId")
	start := func(n int) {
		_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
			ID: fmt.Sprintf("run-%d", n), TaskQueue: "none",
			TypedSearchAttributes: sdk.NewSearchAttributes(jobID.ValueSet("demo.run")),
		}, "Run")
		require.NoError(t, err)
	}
	start(0) // The first one may find the caches empty.

	capture := measured.StartCapture()
	for n := range starts {
		start(1 + n)
	}
	measured.StopCapture(capture)
	reads := persistenceRequests(capture)
	t.Logf("requests of the persistence in %d starts: %v", starts, reads)
	require.GreaterOrEqual(t, reads["CreateWorkflowExecution"], starts)
	// The caches are read anew each minute, by each of the services.
	require.Less(t, reads["GetCurrentClusterMetadata"], starts, "reads of the search attributes")
	require.Less(t, reads["GetNamespace"], starts, "reads of their names in the namespace")
}

// persistenceRequests counts the requests of each operation.
func persistenceRequests(capture *metricstest.Capture) map[string]int {
	counts := make(map[string]int)
	for _, recorded := range capture.Snapshot()[metrics.PersistenceRequests.Name()] {
		counts[recorded.Tags[metrics.OperationTagName]]++
	}
	return counts
}

// startWith starts a server for the time of the test and returns its address.
func startWith(t *testing.T, further server.ServerOption) string {
	t.Helper()
	reserved, err := ports.Reserve(make([]ports.Want, 4))
	require.NoError(t, err)
	defer reserved.Done()
	srv, err := temporal.StartWith(t.Context(), temporal.Options{
		FrontendPort: reserved.Port(0), HistoryPort: reserved.Port(1), MatchingPort: reserved.Port(2), WorkerPort: reserved.Port(3),
		Folder: t.TempDir(), Namespace: "default", Tuning: temporal.TuningLatency,
		Logger: slog.New(slog.DiscardHandler),
		Failed: func(err error) { t.Errorf("the server died: %v", err) },
	}, further)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Stop()) })
	return srv.Address()
}

func dial(t *testing.T, address string) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{HostPort: address})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}
