package workers_test

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
)

// scrape reads the metrics of a worker.
func scrape(t *testing.T, w *stacktest.Process) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(healthAddress(w), "readyz", "metrics", 1), nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(text)
}

// metric is the sum of the series whose text begins so, up to the value.
func metric(text, series string) float64 {
	sum := 0.0
	for _, found := range regexp.MustCompile(`(?m)^`+series+` (\S+)$`).FindAllStringSubmatch(text, -1) {
		value, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			return -1
		}
		sum += value
	}
	return sum
}

// TestMetricsOfAWorker counts runs of each outcome, a stuck handler, and what the SDK tells.
func TestMetricsOfAWorker(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	w := startWorker(t, st, "--health-address", "127.0.0.1:0", "--max-concurrent-runs", "7")
	text := scrape(t, w)
	require.EqualValues(t, 1, metric(text, `dendra_jobs_worker_serving\{worker_type="testing"\}`))
	require.EqualValues(t, 7, metric(text, `dendra_jobs_slots\{worker_type="testing"\}`))
	require.Contains(t, text, `dendra_jobs_attempts_total{job_type="RecordSteps",outcome="failed"} 0`, "a counter begins with 0")

	gate := workertest.NewGate(t)
	workertest.Open(t, gate)
	requireCompleted(t, c, startRun(t, c, newJob(t, "RecordSteps", "good", oneShot(), recordSpec{Ledger: string(ledger), Steps: 3})))
	failed := startRun(t, c, newJob(t, "RecordSteps", "bad", oneShot(), recordSpec{Ledger: string(ledger), Fail: "Broken"}))
	require.Equal(t, client.RunFailed, follow(t, c, failed).Status)
	waiting := newJob(t, "RecordSteps", "canceled", oneShot(), recordSpec{Ledger: string(ledger), Steps: 2, Gate: workertest.NewGate(t)})
	ref := startRun(t, c, waiting)
	waitFirstStep(t, c, ref)
	require.EqualValues(t, 1, metric(scrape(t, w), `dendra_jobs_handlers_running\{job_type="RecordSteps"\}`))
	require.EqualValues(t, 1, metric(scrape(t, w), `dendra_jobs_slots_used\{worker_type="testing"\}`))
	require.NoError(t, c.Runs.Cancel(t.Context(), ref, "by test"))
	require.Equal(t, client.RunCanceled, follow(t, c, ref).Status)

	stacktest.WaitFor(t, "three runs in the metrics", func() (bool, error) {
		text = scrape(t, w)
		return metric(text, `dendra_jobs_runs_total\{job_type="RecordSteps",.*\}`) == 3, nil
	})
	for _, outcome := range []string{"completed", "failed", "canceled"} {
		for _, what := range []string{"runs", "attempts"} {
			require.EqualValues(t, 1, metric(text, `dendra_jobs_`+what+`_total\{job_type="RecordSteps",outcome="`+outcome+`"\}`), what+" "+outcome)
		}
	}
	require.EqualValues(t, 3, metric(text, `dendra_jobs_handler_duration_seconds_count\{job_type="RecordSteps"\}`))
	require.EqualValues(t, 4, metric(text, `dendra_jobs_checkpoints_total\{job_type="RecordSteps"\}`))
	require.Zero(t, metric(text, `dendra_jobs_handlers_running\{job_type="RecordSteps"\}`))
	require.Zero(t, metric(text, `dendra_jobs_slots_used\{worker_type="testing"\}`))
	require.Positive(t, metric(text, `temporal_request_total\{.*operation="StartWorkflowExecution|RespondWorkflowTaskCompleted.*\}`))
	require.Positive(t, metric(text, `temporal_activity_execution_latency_seconds_count\{.*\}`))
	require.NotContains(t, text, failed.RunID, "ids of runs are no labels")
	require.NotContains(t, text, "job/", "ids of workflows are no labels")
}
