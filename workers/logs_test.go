package workers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/runlogs"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
)

// testSecret is that of the secret test-token.
const testSecret = "hunter2hunter2"

// loggingWorker is a worker that keeps the logs of its runs.
func loggingWorker(t *testing.T, st *stacktest.Stack, service string, args ...string) *stacktest.Process {
	t.Helper()
	program := workerProgram(t, st.Temporal, append([]string{"--service", service, "--log-format", "json"}, args...)...)
	w := stacktest.StartProgram(t, st, program)
	w.WaitOutput(`"msg":"serving"`)
	return w
}

// readLog gives what is kept of the log of a run.
func readLog(t *testing.T, st *stacktest.Stack, jobID string, ref client.RunRef) []runlogs.Line {
	t.Helper()
	nats := st.Pipeline(t)
	var log []runlogs.Line
	require.NoError(t, runlogs.Read(t.Context(), nats, runlogs.Name{JobID: jobID, RunID: ref.RunID}, 0, nil, func(line runlogs.Line) error {
		log = append(log, line)
		return nil
	}))
	return log
}

// TestLogOfAKilledAttemptIsKept kills a worker whose handler has logged something, and has
// another one end the run.
func TestLogOfAKilledAttemptIsKept(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	first := loggingWorker(t, st, "first")
	gate := workertest.NewGate(t)
	j := withShortTimeout(newJob(t, "LogLines", "killed", oneShot(), linesSpec{Lines: 10, Gate: gate}))
	ref := startRun(t, c, j)
	stacktest.WaitFor(t, "the last line of the first attempt in its log", func() (bool, error) {
		log := tryReadLog(t, st, j.ID, ref)
		return len(log) > 0 && log[len(log)-1].Message == "waiting for the gate", nil
	})
	first.Kill()
	second := loggingWorker(t, st, "second")
	workertest.Open(t, gate)
	requireCompleted(t, c, ref)
	var log []runlogs.Line
	stacktest.WaitFor(t, "the end of the second attempt in the log", func() (bool, error) {
		log = readLog(t, st, j.ID, ref)
		return log[len(log)-1].Message == "attempt ended", nil
	})

	attempts := map[string][]string{}
	var text strings.Builder
	for _, line := range log {
		var jobID, runID string
		require.NoError(t, json.Unmarshal(line.Attributes["job_id"], &jobID), line.Message)
		require.NoError(t, json.Unmarshal(line.Attributes["run_id"], &runID), line.Message)
		require.Equal(t, [2]string{j.ID, ref.RunID}, [2]string{jobID, runID})
		attempt := string(line.Attributes["attempt"])
		attempts[attempt] = append(attempts[attempt], line.Message)
		encoded, err := json.Marshal(line)
		require.NoError(t, err)
		require.LessOrEqual(t, len(encoded), 4<<10)
		fmt.Fprintf(&text, "%s\n", encoded)
	}
	require.Len(t, attempts, 2)
	for _, lines := range attempts {
		require.Equal(t, "attempt began", lines[0])
		require.Contains(t, lines, "the token is [redacted]")
		require.Equal(t, 10, strings.Count(strings.Join(lines, "\n"), "\nline"))
	}
	require.NotContains(t, text.String(), testSecret)
	for _, w := range []*stacktest.Process{first, second} {
		requireJSONLines(t, w.Output(), j.ID, ref.RunID)
	}
}

// tryReadLog is readLog for a stream that may not be there yet.
func tryReadLog(t *testing.T, st *stacktest.Stack, jobID string, ref client.RunRef) []runlogs.Line {
	t.Helper()
	nats := st.Pipeline(t)
	if _, err := nats.StreamState(t.Context(), pipeline.StreamRunLogs); err != nil {
		return nil
	}
	return readLog(t, st, jobID, ref)
}

// requireJSONLines checks that each line of a process is JSON, and that those of the handler
// say whose they are.
func requireJSONLines(t *testing.T, output, jobID, runID string) {
	t.Helper()
	require.NotContains(t, output, testSecret)
	handler := 0
	for text := range strings.Lines(output) {
		var line map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &line), text)
		if message, _ := line["msg"].(string); message == "line" || message == "grouped" || strings.HasPrefix(message, "the token") {
			handler++
			require.Equal(t, jobID, line["job_id"], text)
			require.Equal(t, runID, line["run_id"], text)
		}
	}
	require.Equal(t, 12, handler)
}

// TestLogOfARunIsBounded logs more lines than are kept: the last ones are.
func TestLogOfARunIsBounded(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	loggingWorker(t, st, "bounded")
	gate := workertest.NewGate(t)
	workertest.Open(t, gate)
	j := newJob(t, "LogLines", "many", oneShot(), linesSpec{Lines: 900, Gate: gate})
	ref := startRun(t, c, j)
	requireCompleted(t, c, ref)
	again := newJob(t, "LogLines", "many", oneShot(), linesSpec{Lines: 901, Gate: gate})
	other := startRun(t, c, again)
	requireCompleted(t, c, other)
	for _, of := range []client.RunRef{ref, other} {
		stacktest.WaitFor(t, "the end of the log", func() (bool, error) {
			log := readLog(t, st, j.ID, of)
			return len(log) > 0 && log[len(log)-1].Message == "attempt ended" && len(log) <= pipeline.MaxRunLogLines, nil
		})
	}
}
