// Package ledger is what a soak writes down itself, apart from all that Temporal
// and Dendra Jobs record: what handlers did, what was acknowledged, which faults
// there were.
//
// Every process has files of its own. A line is one write to a file that is
// opened for appending, so that SIGKILL can cut off only the last line of a file.
package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// What is what a line of a handler tells.
type What string

// The lines of an attempt: a begin, any number of steps, and an end unless the
// process was killed. The time of a line is taken before the handler looks at its
// context, and the line is written after that. So the attempt held its lease at
// that time, however late the line was written. Lost is the exception: it tells that
// the context had ended.
const (
	Begin   What = "begin"
	Step    What = "step"    // the next checkpoint has the line's cursor
	Done    What = "done"    // the handler returned a result
	Stopped What = "stopped" // it was asked to stop, and returned job.ErrStopped
	Failed  What = "failed"  // it returned an error that is worth another try
	Final   What = "final"   // it returned an error that is not
	Lost    What = "lost"    // its context had ended
)

// Work is a line of a handler.
type Work struct {
	What What          `json:"what"`
	At   time.Duration `json:"at"` // as Now
	// Attempt names one call of a handler.
	Attempt string `json:"attempt"`
	// Cursor is the position: in a begin the one that was given, 0 for none.
	Cursor int64 `json:"cursor,omitempty"`

	// The rest is in begins only.
	Job       string        `json:"job,omitempty"`
	Mode      string        `json:"mode,omitempty"`
	Queue     string        `json:"queue,omitempty"`
	Run       string        `json:"run,omitempty"`
	Try       int           `json:"try,omitempty"`
	Heartbeat time.Duration `json:"heartbeat,omitempty"` // the job's heartbeat timeout
	Process   string        `json:"process,omitempty"`
}

// Call is a try to put jobs in, or its acknowledgement.
type Call struct {
	At       time.Duration `json:"at"`
	Acked    bool          `json:"acked,omitempty"`
	Producer string        `json:"producer"`
	Queue    string        `json:"queue,omitempty"` // empty of one-shots
	Jobs     []string      `json:"jobs"`
}

// Fault is a signal to a process and what followed.
type Fault struct {
	Kind   string `json:"kind"`   // FaultKill, …
	Target string `json:"target"` // a worker process, StackTarget or StarterTarget
	// Host is where it was, in a cluster. One that keeps workers from Temporal has StackTarget.
	Host string `json:"host,omitempty"`
	// From is right before the signal, To when the process was at work again.
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
}

// Kinds and targets of faults; a worker is named by itself.
const (
	FaultKill     = "SIGKILL"
	FaultFreeze   = "SIGSTOP"
	FaultTerm     = "SIGTERM"
	StackTarget   = "stack"
	StarterTarget = "starter"
)

// AllJobs is the target of a verb that is given to all jobs.
const AllJobs = "*"

// Verb is a command of the starter.
type Verb struct {
	Name   string        `json:"name"`
	Target string        `json:"target"` // a job or a queue, AllJobs of the resume at the end
	From   time.Duration `json:"from"`
	To     time.Duration `json:"to"`
	OK     bool          `json:"ok"`
	// Running says of the cancel of an item that it ran.
	Running bool   `json:"running,omitempty"`
	Said    string `json:"said,omitempty"` // the error
}

// unanswered is what the starter, or the soak, says of a command without an answer.
// All other errors are refusals.
var unanswered = []string{
	"cannot be reached", "does not answer", "gave up after", "no worker answers", "did not end within", "context canceled",
	"deadline exceeded", "signal: killed", "unavailable", "it is not known",
}

// Refused reports whether the product answered that it does not do it. What was not answered
// may have been done, at any time after From.
func (v Verb) Refused() bool {
	said := strings.ToLower(v.Said)
	return !v.OK && !slices.ContainsFunc(unanswered, func(text string) bool { return strings.Contains(said, text) })
}

// Excuses reports whether a cancel may be why an item is never done: it took the item out,
// stopped its run, or was not answered. A run may be stopped before a worker has begun
// with it.
func (v Verb) Excuses(item string) bool {
	return v.Name == "cancel" && v.Target == item && !v.Refused()
}

// Recurring is a job whose starts are looked at.
type Recurring struct {
	Job    string        `json:"job"`
	Every  time.Duration `json:"every"`
	Offset time.Duration `json:"offset"`
	// From is when the job was known to be started.
	From time.Time `json:"from"`
	// Changing says that other definitions of it are applied.
	Changing bool `json:"changing,omitempty"`
}

// Sample is what the starter tells of a recurring job.
type Sample struct {
	Job string `json:"job"`
	// From and Until are the time that it accounts for.
	From   time.Time `json:"from"`
	Until  time.Time `json:"until"`
	Missed []Missed  `json:"missed,omitempty"`
	Runs   []Run     `json:"runs,omitempty"`
}

// Missed is a start that has no run, as the starter tells it.
type Missed struct {
	Due    time.Time `json:"scheduled"`
	Reason string    `json:"reason"`
}

// Run is a run, as the starter tells it.
type Run struct {
	ID         string    `json:"run_id"`
	Due        time.Time `json:"scheduled,omitzero"`
	Started    time.Time `json:"started"`
	Ended      time.Time `json:"ended,omitzero"`
	Status     string    `json:"status"`
	Superseded time.Time `json:"superseded_by,omitzero"`
}

// Trouble is what the soak itself found while it ran: something did not go on in time.
type Trouble struct {
	At   time.Duration `json:"at"`
	Text string        `json:"text"`
}

// Start says when the soak began, by both clocks.
type Start struct {
	At   time.Duration `json:"at"`
	Wall time.Time     `json:"wall"`
	Seed uint64        `json:"seed"`
	Took time.Duration `json:"took"` // of the faults
	// OneShots is how many were to be put in.
	OneShots int `json:"one_shots,omitempty"`
}

// Files of a folder. A star stands for the process.
const (
	StartFile     = "start.jsonl"
	WorkFiles     = "work-*.jsonl"
	CallFile      = "calls.jsonl"
	FaultFile     = "faults.jsonl"
	VerbFile      = "verbs.jsonl"
	RecurringFile = "recurring.jsonl"
	SampleFile    = "samples.jsonl"
	TroubleFile   = "troubles.jsonl"
)

// Writer appends lines to a file.
type Writer struct {
	mu   sync.Mutex
	file *os.File
}

// Open opens a file for appending, and makes it if it is not there.
func Open(path string) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return &Writer{file: file}, err
}

// Add appends a line.
func (w *Writer) Add(line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.file.Write(append(text, '\n'))
	return err
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }

// Read gives the lines of the files of a folder whose names match. The last line
// of a file is left out if it was cut off.
func Read[T any](folder, pattern string) ([]T, error) {
	paths, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil {
		return nil, err
	}
	var lines []T
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		whole := text[:bytes.LastIndexByte(text, '\n')+1]
		for number := 1; len(whole) > 0; number++ {
			row, rest, _ := bytes.Cut(whole, []byte{'\n'})
			var line T
			if err := json.Unmarshal(row, &line); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, number, err)
			}
			lines, whole = append(lines, line), rest
		}
	}
	return lines, nil
}
