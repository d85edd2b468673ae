package workers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
)

func newLedger(t *testing.T) ledgerOf {
	t.Helper()
	return ledgerOf(filepath.Join(t.TempDir(), "ledger"))
}

// ledgerOf is the ledger in a file.
type ledgerOf string

// entry is one line of a ledger.
type entry struct {
	What    string    `json:"what"`
	JobID   string    `json:"job_id"`
	RunID   string    `json:"run_id"`
	Attempt int       `json:"attempt"`
	Step    int       `json:"step"`
	PID     int       `json:"pid"`
	At      time.Time `json:"at"`
}

func (l ledgerOf) add(what string, run job.Run, step int) error {
	line, err := json.Marshal(entry{what, run.Job().ID, run.ID(), run.Attempt(), step, os.Getpid(), time.Now()})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(string(l), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		return err
	}
	return file.Close()
}

// starts counts those of a job.
func (l ledgerOf) starts(jobID string) (int, error) {
	text, err := os.ReadFile(string(l))
	return strings.Count(string(text), fmt.Sprintf(`{"what":"start","job_id":%q,`, jobID)), err
}

// read gives all lines so far that are whole.
func (l ledgerOf) read(t *testing.T) []entry {
	t.Helper()
	text, err := os.ReadFile(string(l))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	var entries []entry
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var e entry
		require.NoError(t, json.Unmarshal(line, &e))
		entries = append(entries, e)
	}
	return entries
}

// count gives the number of lines with the word. It is asked again and again, of
// ledgers of thousands of lines, and so does not parse them.
func (l ledgerOf) count(t *testing.T, what string) int {
	t.Helper()
	text, err := os.ReadFile(string(l))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return bytes.Count(text[:bytes.LastIndexByte(text, '\n')+1], []byte(`{"what":"`+what+`",`))
}

// waitFor waits until n lines of the ledger have the word.
func (l ledgerOf) waitFor(t *testing.T, what string, n int) {
	t.Helper()
	stacktest.WaitFor(t, fmt.Sprintf("%d times %q in the ledger", n, what), func() (bool, error) {
		return l.count(t, what) >= n, nil
	})
}

// doneBy says which processes did something for a job.
func (l ledgerOf) doneBy(t *testing.T, jobID string) map[int]bool {
	t.Helper()
	pids := map[int]bool{}
	for _, e := range l.read(t) {
		if e.JobID == jobID {
			pids[e.PID] = true
		}
	}
	return pids
}

// steps are the steps of a run, in the order in which they were done; "" means all runs.
func (l ledgerOf) steps(t *testing.T, runID string) []int {
	t.Helper()
	var steps []int
	for _, e := range l.read(t) {
		if e.What == "step" && (runID == "" || e.RunID == runID) {
			steps = append(steps, e.Step)
		}
	}
	return steps
}

// stepsByJob counts the steps of each job.
func (l ledgerOf) stepsByJob(t *testing.T) map[string]int {
	t.Helper()
	steps := map[string]int{}
	for _, e := range l.read(t) {
		if e.What == "step" {
			steps[e.JobID]++
		}
	}
	return steps
}
