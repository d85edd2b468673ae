package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/schema"
)

// UnknownTypeError says that no program has a job type, and which there are.
type UnknownTypeError struct{ text string }

// Error implements error.
func (e *UnknownTypeError) Error() string { return e.text }

// Named gives a job type by its name, in CamelCase or snake_case. The error is an
// [*UnknownTypeError] if it is known that there is none.
func (t JobTypes) Named(ctx context.Context, name string) (job.Type, error) {
	if found, ok := findType(t.Own, name); ok {
		return found, nil
	}
	external, incomplete := t.External(ctx, name)
	if found, ok := findType(external, name); ok {
		return found, nil
	}
	var names []string
	for _, known := range slices.Concat(t.Own, external) {
		names = append(names, known.Name)
	}
	text := schema.Unknown("job type", name, names)
	if !strings.Contains(text, "did you mean") {
		text += "; there are " + strings.Join(names, ", ")
	}
	if incomplete != nil {
		t.note("It is not known whether a worker has " + strings.TrimPrefix(text, "unknown "))
		return job.Type{}, incomplete
	}
	return job.Type{}, &UnknownTypeError{text}
}

// Definition is what several jobs of one type have in common. Their specs are checked before
// anything is started.
type Definition struct {
	// Job has the type, the trigger and the options; what is to differ from the defaults of
	// its mode is set here.
	Job    job.Job
	kind   job.Type
	schema *schema.Schema
}

// Define begins the definition of jobs of a type, by its name, with the default options of
// the trigger's mode.
func (t JobTypes) Define(ctx context.Context, typeName string, trigger job.Trigger) (*Definition, error) {
	kind, err := t.Named(ctx, typeName)
	if err != nil {
		return nil, err
	}
	mode := trigger.Mode()
	if err := kind.CheckAllows(mode); err != nil {
		return nil, err
	}
	spec, _, err := schema.OfType(kind)
	if err != nil {
		return nil, err
	}
	if spec == nil {
		return nil, fmt.Errorf("job type %s has no schema for its spec", kind.Name)
	}
	j := job.Job{Type: kind.Name, Worker: kind.Worker, Provider: job.ProviderAPI, Trigger: trigger, Options: job.DefaultOptions(mode)}
	return &Definition{Job: j, kind: kind, schema: spec}, nil
}

// With gives the job with a key (empty: a new ULID) and a spec, a JSON text, and lists all
// that is wrong with it.
func (d *Definition) With(key string, spec []byte) (job.Job, []string) {
	if key == "" {
		key = strings.ToLower(ulid.Make().String())
	}
	j := d.Job
	j.ID = job.ID(j.Type, key)
	found := schema.CheckSpec(d.kind, d.schema, spec)
	if len(found) == 0 {
		var compact bytes.Buffer
		if err := json.Compact(&compact, spec); err != nil {
			found = []job.Problem{{Message: "the spec is not JSON: " + err.Error()}}
		} else {
			j.Spec = compact.Bytes()
		}
	}
	var problems []string
	for _, problem := range append(found, j.Validate()...) {
		problems = append(problems, problem.String())
	}
	return j, problems
}

// SplitLine splits a line {"key": …, "spec": {…}} of a file of specs. Any other line is a spec, and
// so is each line of a type whose spec has a key "spec".
func (d *Definition) SplitLine(line []byte) (key string, spec []byte) {
	var wrapped struct {
		Key  string          `json:"key"`
		Spec json.RawMessage `json:"spec"`
	}
	if slices.Contains(d.schema.Keys(), "spec") {
		return "", line
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wrapped); err != nil || wrapped.Spec == nil || decoder.More() {
		return "", line
	}
	return wrapped.Key, wrapped.Spec
}
