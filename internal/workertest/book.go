package workertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
)

// Book is the name of a file into which the handlers of several processes write what they
// do. It outlives those that are killed.
type Book string

// Entry is one line of a book.
type Entry struct {
	What    string    `json:"what"`
	JobID   string    `json:"job_id"`
	RunID   string    `json:"run_id"`
	Attempt int       `json:"attempt"`
	Step    int       `json:"step"`
	PID     int       `json:"pid"`
	At      time.Time `json:"at"`
}

// NewBook is an empty book, which the test removes.
func NewBook(t testing.TB) Book {
	t.Helper()
	return Book(filepath.Join(t.TempDir(), "ledger"))
}

// Add writes a line.
func (b Book) Add(what string, run job.Run, step int) error {
	line, err := json.Marshal(Entry{what, run.Job().ID, run.ID(), run.Attempt(), step, os.Getpid(), time.Now()})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(string(b), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		return err
	}
	return file.Close()
}

// Starts counts the lines of a job that say start.
func (b Book) Starts(jobID string) (int, error) {
	text, err := os.ReadFile(string(b))
	return strings.Count(string(text), fmt.Sprintf(`{"what":"start","job_id":%q,`, jobID)), err
}

// whole is what was written so far, without a line that is being written.
func (b Book) whole(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile(string(b))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return text[:bytes.LastIndexByte(text, '\n')+1]
}

// Read gives all lines so far.
func (b Book) Read(t testing.TB) []Entry {
	t.Helper()
	var entries []Entry
	for line := range bytes.Lines(b.whole(t)) {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return entries
}

// Count gives the number of lines that say so. It is asked again and again, of books of
// thousands of lines, and so does not parse them.
func (b Book) Count(t testing.TB, what string) int {
	t.Helper()
	return bytes.Count(b.whole(t), []byte(`{"what":"`+what+`",`))
}

// WaitFor waits until n lines say so.
func (b Book) WaitFor(t testing.TB, what string, n int) {
	t.Helper()
	stacktest.WaitFor(t, fmt.Sprintf("%d times %q in the ledger", n, what), func() (bool, error) { return b.Count(t, what) >= n, nil })
}
