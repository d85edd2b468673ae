package workflows_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// recorded lists the histories, so that none is lost unseen. This command writes all of
// them anew:
//
//	DENDRA_RECORD_HISTORIES=testdata/replay go test ./workflows -run TestRecordHistories
var recorded = []string{
	"applied_first", "applied_last",
	"continuous_bound", "continuous_failing_1", "continuous_failing_2", "continuous_first",
	"continuous_interrupted_1", "continuous_interrupted_2", "continuous_last", "continuous_pause_over",
	"end_pause",
	"queue_first", "queue_halted_1", "queue_halted_2", "queue_last", "queue_limits_1", "queue_page",
	"queue_paged_1", "queue_paged_2", "queue_paged_3", "queue_paged_4", "queue_paged_5", "queue_pause_over",
	"queue_recovered_1", "queue_recovered_2", "queue_repeated_1", "queue_repeated_2", "queue_repeated_3",
	"queue_repeated_4", "queue_repeated_5", "queue_repeated_6", "queue_signaled",
	"queue_start_failed_1", "queue_start_failed_2", "queue_start_failed_3", "queue_stopping", "queue_terminated", "queue_watching",
	"run_bound_busy", "run_bound_failed", "run_bound_lost", "run_bound_moved", "run_canceled",
	"run_canceled_lost", "run_completed", "run_end_canceled", "run_end_completed", "run_end_failed",
	"run_end_retry", "run_failed", "run_failed_again", "run_failed_counted", "run_handed_over", "run_held_back",
	"run_in_time", "run_lost", "run_lost_for_good", "run_lost_reported", "run_recovered", "run_retried",
	"run_superseded",
}

// TestRecordedHistoriesReplay fails when a change of the workflows would break
// those that run while it is deployed.
func TestRecordedHistoriesReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/replay/*.json")
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	require.ElementsMatch(t, recorded, names)
	// With traces as well: their interceptor must not change what a workflow does.
	exporter := tracetest.NewInMemoryExporter()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))
	traced, err := temporalclient.TracingInterceptor()
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NotEmpty(t, exporter.GetSpans(), "the interceptor traces nothing")
	})
	for name, interceptors := range map[string][]interceptor.WorkerInterceptor{"plain": nil, "traced": {traced}} {
		for _, file := range files {
			t.Run(name+"/"+filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{Interceptors: interceptors})
				require.NoError(t, err)
				workflows.Register(replayer)
				require.NoError(t, replayer.ReplayWorkflowHistoryFromJSONFile(
					log.NewStructuredLogger(slog.New(slog.DiscardHandler)), file))
			})
		}
	}
}
