package server

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// JobTypes finds job types: those of this program, and those of others.
type JobTypes struct {
	// Own are those of this program.
	Own []job.Type
	// API knows the types that workers announce, and those of applied jobs. It is called only
	// if they are needed. Required.
	API *api.Clients
	// Note takes a sentence about types that were found. May be nil.
	Note func(text string)
}

func findType(types []job.Type, name string) (job.Type, bool) {
	for _, t := range types {
		if t.Name == name || job.SnakeCase(t.Name) == name {
			return t, true
		}
	}
	return job.Type{}, false
}

// External gives the job types of other programs. The error says why the list may be
// incomplete; there is none if it has all the names.
func (t JobTypes) External(ctx context.Context, names ...string) (types []job.Type, incomplete error) {
	answer, err := t.API.Workers.ListJobTypes(ctx, &jobsv1.ListJobTypesRequest{})
	if err != nil {
		return nil, err
	}
	for _, text := range answer.GetNotes() {
		t.note(text)
	}
	for _, m := range answer.GetJobTypes() {
		if _, own := findType(t.Own, m.GetName()); own {
			continue
		}
		external, err := externalType(m)
		if err != nil {
			return nil, err
		}
		types = append(types, external)
		if from := m.GetKeptFrom(); from != "" && asksFor(names, external.Name) {
			t.note("No live worker serves job type " + external.Name + ": its schema is that of " + from + ".")
		}
	}
	if answer.GetIncomplete() == "" {
		return types, nil
	}
	for _, name := range names {
		if _, found := findType(types, name); !found {
			return types, errors.New(answer.GetIncomplete())
		}
	}
	return types, nil
}

func (t JobTypes) note(text string) {
	if t.Note != nil {
		t.Note(text)
	}
}

// asksFor reports whether a type is among names, or named by the ids of its jobs.
func asksFor(names []string, typeName string) bool {
	return slices.Contains(names, typeName) || slices.Contains(names, job.SnakeCase(typeName))
}

// externalType is a job type of another program.
func externalType(m *jobsv1.JobType) (job.Type, error) {
	t := job.Type{Name: m.GetName(), Worker: job.WorkerType(m.GetWorker()), Description: m.GetDescription()}
	for _, mode := range m.GetModes() {
		t.Modes = append(t.Modes, job.Mode(strings.ReplaceAll(mode, "_", "-")))
	}
	if m.GetSpecSchema() == nil {
		return t, nil
	}
	schema, err := protojson.Marshal(m.GetSpecSchema())
	t.SpecSchema = json.RawMessage(schema)
	return t, err
}

// Read is what a jobs file says.
type Read struct {
	File     *jobsfile.File
	Problems []jobsfile.Problem
	// Incomplete says why it is not known whether the types that are unknown exist. Nil if
	// no type is unknown, or none can be missing.
	Incomplete error
}

// UnknownTypes are the job types that problems are about.
func (r Read) UnknownTypes() []string {
	var names []string
	for _, p := range r.Problems {
		if p.UnknownType != "" {
			names = append(names, p.UnknownType)
		}
	}
	return names
}

// OnlyUnknown reports whether all that is wrong are job types that may exist all the same.
func (r Read) OnlyUnknown() bool {
	return len(r.Problems) > 0 && len(r.UnknownTypes()) == len(r.Problems)
}

// ReadJobs reads a jobs file with the job types of this program, and with those of others
// if the file has other types.
func (t JobTypes) ReadJobs(ctx context.Context, path string) (Read, error) {
	file, problems, err := jobsfile.Load(path, t.Own)
	r := Read{File: file, Problems: problems}
	unknown := r.UnknownTypes()
	if err != nil || len(unknown) == 0 {
		return r, err
	}
	external, incomplete := t.External(ctx, unknown...)
	r.File, r.Problems, err = jobsfile.Load(path, slices.Concat(t.Own, external))
	if len(r.UnknownTypes()) > 0 {
		r.Incomplete = incomplete
	}
	return r, err
}
