package job

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// WorkerType names a worker binary and the task queue that all its processes share.
type WorkerType string

// The worker types of this repository.
const (
	WorkerBackend WorkerType = "backend"
	WorkerExtract WorkerType = "extract"
	WorkerLoad    WorkerType = "load"
)

// Handler does the work of a job type. Spec is the job's spec, decoded.
//
// A handler may run more than once for the same job (a retry, another worker),
// so its effects must be idempotent. It returns an error made with [Final] when
// a retry cannot help, [ErrStopped] when it ended early because
// [Run.Stopping] was closed, and any other error to be tried again.
type Handler[S any] func(ctx context.Context, run Run, spec S) (Result, error)

// Type is a job type: named handler code with a typed spec.
type Type struct {
	// Name is the job type's name in CamelCase, and the name of its activity.
	Name string
	// Worker is the worker type whose binary carries the handler.
	Worker WorkerType
	// Description is one sentence for the job reference.
	Description string
	// Modes are the modes a job of this type may have. Empty means all.
	Modes []Mode
	// Spec is the Go type of the spec, a struct. The tags of a field declare its
	// key, bounds, default and help, each in this one place:
	//
	//	MaxBytes int64 `json:"max_bytes,omitempty" minimum:"1" default:"1000" help:"the largest file"`
	//
	// A field without omitempty or omitzero is required. The tags are keywords of
	// JSON Schema (minLength, maxItems, pattern, enum:"a,b" and so on); any other is
	// an error. Left out or zero is the default. The worker and the starter check
	// specs by them. A pointer to the struct may have a method Validate() error for
	// rules across fields; it sees defaults filled in. Spec is nil of a type that is
	// only known from elsewhere.
	Spec reflect.Type
	// SpecSchema is the JSON schema of the spec of a type without Spec, as a
	// worker announces it. Without either, every table is a spec.
	SpecSchema json.RawMessage

	handle func(ctx context.Context, run Run, spec json.RawMessage) (Result, error)
}

// NewType makes a job type from its handler.
func NewType[S any](name string, worker WorkerType, description string, handler Handler[S], modes ...Mode) Type {
	return Type{
		Name:        name,
		Worker:      worker,
		Description: description,
		Modes:       modes,
		Spec:        reflect.TypeFor[S](),
		handle: func(ctx context.Context, run Run, text json.RawMessage) (Result, error) {
			var spec S
			if err := DecodeSpec(text, &spec); err != nil {
				return Result{}, Fail(errclass.InvalidSpec, "spec of job %s: %w", run.Job().ID, err)
			}
			return handler(ctx, run, spec)
		},
	}
}

// Handle decodes the spec of run's job and does the work.
func (t Type) Handle(ctx context.Context, run Run) (Result, error) {
	if t.handle == nil {
		return Result{}, Fail(errclass.InvalidSpec, "job type %s has no handler in this process", t.Name)
	}
	return t.handle(ctx, run, run.Job().Spec)
}

// Allows reports whether a job of this type may have the mode.
func (t Type) Allows(mode Mode) bool {
	return len(t.Modes) == 0 || slices.Contains(t.Modes, mode)
}
