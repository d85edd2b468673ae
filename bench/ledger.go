package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// ledger is a file that handlers write what they really do into, apart from all
// that Temporal records. Each line is a word, a job id, a run id and a time in
// nanoseconds of the Unix epoch.
type ledger string

// The words of a ledger.
const (
	ledgerStart = "start"
	ledgerEnd   = "end"
)

// note writes a line. Lines of one process are in the order in which they
// happened.
func note(w io.Writer, what string, run job.Run) error {
	_, err := fmt.Fprintf(w, "%s %s %s %d\n", what, run.Job().ID, run.ID(), time.Now().UnixNano())
	return err
}

// noted is one line of a ledger.
type noted struct {
	what, jobID, runID string
	at                 time.Time
}

// read gives the lines that keep keeps; nil keeps all.
func (l ledger) read(keep func(noted) bool) (lines []noted, err error) {
	file, err := os.Open(string(l))
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // Only read.
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		var line noted
		var at int64
		if _, err := fmt.Sscan(scanner.Text(), &line.what, &line.jobID, &line.runID, &at); err != nil {
			return nil, fmt.Errorf("line %q of the ledger: %w", scanner.Text(), err)
		}
		line.at = time.Unix(0, at)
		if keep == nil || keep(line) {
			lines = append(lines, line)
		}
	}
	return lines, scanner.Err()
}

// checkSerial says what is wrong if the lines are not those of the jobs wanted,
// in their order, each once, and none before the end of the one before it.
func checkSerial(lines []noted, wanted []job.Job) error {
	if len(lines) != 2*len(wanted) {
		return fmt.Errorf("the ledger has %d starts and ends, not those of %d items", len(lines), len(wanted))
	}
	for n, j := range wanted {
		for k, what := range []string{ledgerStart, ledgerEnd} {
			if line := lines[2*n+k]; line.what != what || line.jobID != j.ID {
				return fmt.Errorf("the ledger has the %s of %s where the %s of %s belongs", line.what, line.jobID, what, j.ID)
			}
		}
	}
	return nil
}
