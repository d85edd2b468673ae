// Package jobtest provides what tests of job handlers need: a [job.Run] that
// records what a handler does with it, in place of the one a worker gives.
package jobtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/schema"
)

// Run is a [job.Run] for one attempt of a job, without a worker. Its methods
// may be called from several goroutines.
type Run struct {
	definition job.Job
	id         string
	attempt    int
	start      json.RawMessage
	secrets    map[job.SecretRef]string
	jobs       job.Jobs
	logger     *slog.Logger
	hook       func(r *Run, c Checkpoint)

	stopping chan struct{}
	stop     sync.Once

	mu          sync.Mutex
	checkpoints []Checkpoint
	cursor      json.RawMessage
}

var _ job.Run = (*Run)(nil)

// Checkpoint is one call of a handler's run.Checkpoint.
type Checkpoint struct {
	Progress job.Progress
	// Cursor is the position that was stored, or nil when none was given.
	Cursor json.RawMessage
}

// CheckSpec says what a worker says of the spec of a job of the type, a JSON text:
// nil if it takes it, else every problem, each with its key.
func CheckSpec(t job.Type, spec string) error {
	found, err := schema.CheckSpecOf(t, []byte(spec))
	if err != nil {
		return err
	}
	var problems []error
	for _, problem := range found {
		problems = append(problems, errors.New(problem.String()))
	}
	return errors.Join(problems...)
}

// Option changes a run that [NewRun] makes.
type Option func(*Run)

// WithAttempt sets the number of the attempt. Defaults to 1.
func WithAttempt(attempt int) Option { return func(r *Run) { r.attempt = attempt } }

// WithCursor sets the position that an earlier attempt or iteration left
// behind. Defaults to none. It panics on a value that JSON cannot hold.
func WithCursor(cursor any) Option {
	return func(r *Run) { r.start = job.EncodeJSON(cursor); r.cursor = r.start }
}

// WithID sets the id of the run. Defaults to "run-" and the id of the job.
func WithID(id string) Option { return func(r *Run) { r.id = id } }

// WithLogger sets the logger. Defaults to one that discards everything.
func WithLogger(logger *slog.Logger) Option { return func(r *Run) { r.logger = logger } }

// WithJobs sets how the handler manages other jobs. Defaults to [Jobs] without any.
func WithJobs(jobs job.Jobs) Option { return func(r *Run) { r.jobs = jobs } }

// WithSecrets sets the values of secrets by reference (secret://NAME). They may go
// everywhere. Defaults to none: resolving fails as it does on a worker.
func WithSecrets(secrets map[job.SecretRef]string) Option {
	return func(r *Run) { r.secrets = secrets }
}

// OnCheckpoint calls hook after each checkpoint is recorded, in the goroutine
// of the handler: the place from which to stop a run halfway.
func OnCheckpoint(hook func(r *Run, c Checkpoint)) Option { return func(r *Run) { r.hook = hook } }

// NewRun makes the first attempt of a run of the job.
func NewRun(definition job.Job, options ...Option) *Run {
	r := &Run{
		definition: definition,
		id:         "run-" + definition.ID,
		attempt:    1,
		jobs:       NewJobs(),
		logger:     slog.New(slog.DiscardHandler),
		stopping:   make(chan struct{}),
	}
	for _, option := range options {
		option(r)
	}
	return r
}

// NextAttempt makes the attempt that follows r: the same run, the number of
// the attempt raised by one, and the position that r stored last.
func (r *Run) NextAttempt(options ...Option) *Run {
	r.mu.Lock()
	cursor := r.cursor
	r.mu.Unlock()
	next := NewRun(r.definition, WithID(r.id), WithAttempt(r.attempt+1), WithJobs(r.jobs), WithLogger(r.logger), WithSecrets(r.secrets))
	next.start, next.cursor = cursor, cursor
	for _, option := range options {
		option(next)
	}
	return next
}

// Stop closes Stopping. Stopping again does nothing.
func (r *Run) Stop() { r.stop.Do(func() { close(r.stopping) }) }

// Checkpoints lists the checkpoints so far, oldest first.
func (r *Run) Checkpoints() []Checkpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.checkpoints)
}

// SavedCursor decodes the position stored last, by a checkpoint or before the
// run. It reports false when there is none.
func (r *Run) SavedCursor(into any) (bool, error) {
	r.mu.Lock()
	cursor := r.cursor
	r.mu.Unlock()
	return decodeCursor(cursor, into)
}

// Job implements [job.Run].
func (r *Run) Job() job.Job { return r.definition }

// Attempt implements [job.Run].
func (r *Run) Attempt() int { return r.attempt }

// ID implements [job.Run].
func (r *Run) ID() string { return r.id }

// Cursor implements [job.Run]: it gives the position from before this attempt.
func (r *Run) Cursor(into any) (bool, error) { return decodeCursor(r.start, into) }

// Checkpoint implements [job.Run]. It panics on a cursor that JSON cannot hold.
func (r *Run) Checkpoint(progress job.Progress, cursor any) {
	c := Checkpoint{Progress: progress}
	if cursor != nil {
		c.Cursor = job.EncodeJSON(cursor)
	}
	r.mu.Lock()
	r.checkpoints = append(r.checkpoints, c)
	if c.Cursor != nil {
		r.cursor = c.Cursor
	}
	r.mu.Unlock()
	if r.hook != nil {
		r.hook(r, c)
	}
}

// Stopping implements [job.Run].
func (r *Run) Stopping() <-chan struct{} { return r.stopping }

// Secret implements [job.Run].
func (r *Run) Secret(ref job.SecretRef, destination string) (string, error) {
	if u, err := url.Parse(destination); err != nil || u.Hostname() == "" {
		return "", job.Fail(errclass.SecretRefused, "secret %s of job %s: its destination is not a URL with a host", ref, r.definition.ID)
	}
	value, found := r.secrets[ref]
	if !found {
		return "", job.Fail(errclass.Secret, "secret %s of job %s is not set", ref, r.definition.ID)
	}
	return value, nil
}

// Jobs implements [job.Run].
func (r *Run) Jobs() job.Jobs { return r.jobs }

// Logger implements [job.Run].
func (r *Run) Logger() *slog.Logger { return r.logger }

func decodeCursor(text json.RawMessage, into any) (bool, error) {
	if text == nil {
		return false, nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, fmt.Errorf("decode cursor: %w", err)
	}
	return true, nil
}

// NewJob makes a job of a type with the default options of its mode, its spec
// encoded from a Go value. It panics on a spec that JSON cannot hold.
func NewJob(t job.Type, key string, schedule job.Trigger, spec any) job.Job {
	return job.Job{
		ID:       job.ID(t.Name, key),
		Type:     t.Name,
		Worker:   t.Worker,
		Provider: job.ProviderAPI,
		Spec:     job.EncodeJSON(spec),
		Trigger:  schedule,
		Options:  job.DefaultOptions(schedule.Mode()),
	}
}
