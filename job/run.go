package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Run is what a handler sees of the run it is part of.
type Run interface {
	// Job is the definition of the job that runs.
	Job() Job
	// Attempt counts the tries of this run from 1.
	Attempt() int
	// ID names this run uniquely; it is the same in every attempt.
	ID() string
	// Cursor decodes the position that an earlier attempt of this run, or in
	// continuous mode an earlier iteration, left behind with Checkpoint or in
	// its Result. It reports false when there is none.
	Cursor(into any) (bool, error)
	// Checkpoint reports how far the run is; the report doubles as sign of life
	// and is shown by `starter runs describe`. A continuous job that was failing is
	// shown as running once Done is above 0. A cursor other than nil replaces
	// the stored position. It never blocks on the network.
	Checkpoint(progress Progress, cursor any)
	// Stopping is closed when the handler should save its position and return
	// [ErrStopped]: the run was stopped, or its worker is draining. The context
	// is canceled when the grace period is over.
	Stopping() <-chan struct{}
	// Secret resolves a reference of the form secret://NAME. The destination is the URL of
	// the server that gets the secret: its scheme, host and port count. A secret that is not
	// for this server or for the job's owner is refused, with an error that is final.
	Secret(ref SecretRef, destination string) (string, error)
	// Jobs manages other jobs.
	Jobs() Jobs
	// Logger carries the job's id and type.
	Logger() *slog.Logger
}

// Stopped reports whether a run was asked to stop: its [Run.Stopping] is closed.
func Stopped(run Run) bool {
	select {
	case <-run.Stopping():
		return true
	default:
		return false
	}
}

// Progress says how far a run is.
type Progress struct {
	Done    int64  `json:"done"`
	Total   int64  `json:"total,omitempty"` // 0: not known
	Message string `json:"message,omitempty"`
}

// String writes "3/4 message". Done alone is left out where the message has its own counts.
func (p Progress) String() string {
	text := fmt.Sprint(p.Done)
	if p.Total > 0 {
		text = fmt.Sprintf("%d/%d", p.Done, p.Total)
	} else if p.MessageCounts() {
		return p.Message
	}
	if p.Message != "" {
		text += " " + p.Message
	}
	return text
}

// MessageCounts reports whether the message starts with a number, as "728 messages, 2 points" does.
func (p Progress) MessageCounts() bool {
	return p.Message != "" && p.Message[0] >= '0' && p.Message[0] <= '9'
}

// Result is what a run leaves behind in its history.
type Result struct {
	// Message is one line for people.
	Message string `json:"message,omitempty"`
	// Counts say what was done: "points": 1440.
	Counts map[string]int64 `json:"counts,omitempty"`
	// Output is a small JSON value for programs, such as the keys of objects
	// written. Data itself does not belong here.
	Output json.RawMessage `json:"output,omitempty"`
	// Cursor is the position to go on from, given to the next iteration of a
	// continuous job.
	Cursor json.RawMessage `json:"cursor,omitempty"`
}

// EncodeJSON is json.Marshal for the Output or Cursor of a [Result]. It panics
// on a value that JSON cannot hold, which is a mistake in the program.
func EncodeJSON(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("job: encode %T: %v", value, err))
	}
	return text
}

// SecretRef names a secret: secret://NAME, where NAME starts with a-z or 0-9 and
// goes on with a-z, 0-9, '.', '_' or '-'. Specs hold references; workers resolve
// them, so that a secret never enters jobs.toml or a history.
type SecretRef string

// SecretPattern is the regular expression that a SecretRef matches.
const SecretPattern = `^secret://[a-z0-9][a-z0-9._-]*$`

var secretPattern = regexp.MustCompile(SecretPattern)

// Name is the NAME of secret://NAME. The error does not repeat the text, which
// may be a secret that was written where its name belongs.
func (r SecretRef) Name() (string, error) {
	if !secretPattern.MatchString(string(r)) {
		return "", errors.New("a secret is named, never written: secret://NAME")
	}
	return strings.TrimPrefix(string(r), "secret://"), nil
}

// ErrStopped is what a handler returns when it ended early because it was asked to.
var ErrStopped = errors.New("stopped before the work was done")

// Failure is an error with a class, so that operators can filter by it, and with a kind,
// which says what has to happen next.
type Failure struct {
	// Class is a short CamelCase name: InvalidImage.
	Class string
	// Kind decides about retries, order and quarantine.
	Kind errclass.Kind
	// RetryAfter asks for a wait before the next attempt, if positive.
	RetryAfter time.Duration

	err error
}

// Final makes an error that ends a run: a retry cannot help. The format is that
// of fmt.Errorf.
func Final(class, format string, args ...any) error {
	return NewFailure(class, errclass.Permanent, 0, fmt.Errorf(format, args...))
}

// Retryable makes an error with a class that is worth another attempt, after a
// wait of its own if retryAfter is positive, else after the job's backoff.
func Retryable(class string, retryAfter time.Duration, format string, args ...any) error {
	return NewFailure(class, errclass.Transient, retryAfter, fmt.Errorf(format, args...))
}

// Fail makes an error of a class of package errclass, and of the kind that it has there.
func Fail(class, format string, args ...any) error { return FailAfter(class, 0, format, args...) }

// FailAfter is Fail with a wait before the next attempt, if it is positive.
func FailAfter(class string, retryAfter time.Duration, format string, args ...any) error {
	listed, _ := errclass.Find(class)
	return NewFailure(class, listed.Kind, retryAfter, fmt.Errorf(format, args...))
}

// NewFailure gives an error a class, a kind and a wait before the next attempt.
func NewFailure(class string, kind errclass.Kind, retryAfter time.Duration, err error) *Failure {
	return &Failure{Class: class, Kind: kind, RetryAfter: retryAfter, err: err}
}

// Error implements error.
func (f *Failure) Error() string { return f.err.Error() }

// Unwrap gives the wrapped error.
func (f *Failure) Unwrap() error { return f.err }

// ClassOf is the class of an error, empty if it has none.
func ClassOf(err error) string {
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure.Class
	}
	return ""
}

// KindOf is the kind of an error. One without is transient.
func KindOf(err error) errclass.Kind {
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure.Kind
	}
	return errclass.Transient
}
