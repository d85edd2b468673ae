package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"
)

// Record is one line of the log. Its tags help say what stands in docs/reference.md.
type Record struct {
	Time   time.Time `json:"time" help:"when it was called, in both lines of a call"`
	Caller string    `json:"caller" help:"who called"`
	// KnownBy is how the caller is known: see [auth.Caller].
	KnownBy   string `json:"known_by,omitempty" help:"how the caller is known: token, oidc, certificate, or local, the server itself or this host"`
	Role      string `json:"role" help:"the caller's"`
	Address   string `json:"address" help:"where the call came from"`
	Procedure string `json:"procedure,omitempty" help:"what was called"`
	Call      string `json:"call,omitempty" help:"a random name that the two lines of a call share"`
	// Refused counts calls by procedure, and log-ins as /login, that were refused since Time
	// and have no caller.
	Refused map[string]int `json:"refused,omitempty" help:"calls and log-ins without a known caller that were refused within a minute, by procedure"`
	// Resource is empty if the request was not read.
	Resource string `json:"resource,omitempty" help:"what it was done to, such as job/extract_hobo_time_frame.demo"`
	// Request is what else the request says, but for definitions of jobs.
	Request   json.RawMessage `json:"request,omitempty" help:"what else the request says, but for definitions of jobs"`
	Reason    string          `json:"reason,omitempty" help:"as the request says"`
	RequestID string          `json:"request_id,omitempty" help:"as the request says"`
	DryRun    bool            `json:"dry_run,omitempty" help:"nothing was to be changed: the request asks only what would be done"`
	Code      string          `json:"code" help:"started, ok, or that of the error, such as permission_denied; gap: lines are missing before this one"`
	Error     string          `json:"error,omitempty" help:"the reason of the error, such as ETAG_MISMATCH"`
	// Before and After are the resource as it was and is: of a job its definition and
	// whether it is paused, of a queue its status.
	Before json.RawMessage `json:"before,omitempty" help:"of a job its definition and pause, of a queue its status, for calls that change them"`
	After  json.RawMessage `json:"after,omitempty" help:"the same after the call"`
	// Changes are what an apply did to each job. The first maxChanges are listed.
	Changes     []json.RawMessage `json:"changes,omitempty" help:"of an apply: what was done to each job; at most 1,000 are listed"`
	ChangeCount int               `json:"change_count,omitempty" help:"how many there are"`
	Note        string            `json:"note,omitempty" help:"what could not be found out"`
}

// Field is one of a line.
type Field struct{ Name, Meaning string }

// Fields are all fields of a line.
func Fields() []Field {
	var all []Field
	line := reflect.TypeFor[Record]()
	for n := range line.NumField() {
		field := line.Field(n)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		all = append(all, Field{name, field.Tag.Get("help")})
	}
	return all
}

// Log is an audit log. Its methods may be called at once by several goroutines.
type Log struct {
	logger *slog.Logger
	path   string

	mu   sync.Mutex
	to   io.Writer
	file *os.File // nil for a log that is no file
	lost int      // lines that could not be written

	refusals refusals
}

// New makes a log that writes to a stream, such as standard output.
func New(to io.Writer, logger *slog.Logger) *Log { return &Log{logger: logger, to: to} }

// Open makes a log that appends to a file, which it makes if need be. Nobody else may read
// it.
func Open(path string, logger *slog.Logger) (*Log, error) {
	l := &Log{logger: logger, path: path}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Log) open() error {
	file, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("the audit log cannot be opened: %w", err)
	}
	l.to, l.file = file, file
	return nil
}

// Reopen opens the file anew, for programs that rotate logs: they move the file, then send
// SIGHUP.
func (l *Log) Reopen() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reopen()
}

func (l *Log) reopen() error {
	if l.file == nil {
		return nil
	}
	before := l.file
	if err := l.open(); err != nil {
		return err
	}
	_ = before.Close() // Its lines are on the disk.
	return nil
}

// Close closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// Ready says why the log takes no lines, nil if it does. After lines that could not be
// written it opens the file anew, and writes how many they are.
func (l *Log) Ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == 0 {
		return nil
	}
	if err := l.reopen(); err != nil {
		return err
	}
	gap := Record{Time: time.Now().UTC(), Code: "gap", Note: fmt.Sprintf("%d lines before this one could not be written", l.lost)}
	line, err := json.Marshal(gap)
	if err == nil {
		_, err = fmt.Fprintf(l.to, "\n%s\n", line) // What was written of the last line ends here.
	}
	if err = errors.Join(err, l.sync()); err == nil {
		l.lost = 0
	}
	return err
}

// Write appends lines, and waits until they are on the disk. Lines that cannot be written are
// told in the log of the process, too.
func (l *Log) Write(records ...Record) error {
	var text []byte
	var err error
	for _, record := range records {
		line, failed := json.Marshal(record)
		err = errors.Join(err, failed)
		text = append(append(text, line...), '\n')
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		_, err = l.to.Write(text)
	}
	if err = errors.Join(err, l.sync()); err != nil {
		l.lost += len(records)
		for _, record := range records {
			l.logger.Error("a line of the audit log cannot be written", "error", err, "caller", record.Caller,
				"procedure", record.Procedure, "resource", record.Resource, "code", record.Code)
		}
	}
	return err
}

func (l *Log) sync() error {
	if l.file == nil {
		return nil
	}
	return l.file.Sync()
}
