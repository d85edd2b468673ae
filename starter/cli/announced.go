package cli

import (
	"encoding/json"
	"errors"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// externalTypes finds the job types that are not built into this program: those that
// workers announce, and those of applied jobs. The error says why the list may be
// incomplete; there is none if it has all the names.
func (i *invocation) externalTypes(names ...string) (types []job.Type, incomplete error) {
	clients, err := i.api(i.ctx)
	if err != nil {
		return nil, err
	}
	answer, err := clients.Workers.ListJobTypes(i.ctx, &jobsv1.ListJobTypesRequest{})
	if err != nil {
		return nil, err
	}
	for _, note := range answer.GetNotes() {
		i.note("%s", clean(note))
	}
	for _, m := range answer.GetJobTypes() {
		if _, own := findType(i.Types, m.GetName()); own {
			continue
		}
		t, err := externalType(m)
		if err != nil {
			return nil, err
		}
		types = append(types, t)
		if from := m.GetKeptFrom(); from != "" && asksFor(names, t.Name) {
			i.note("No live worker serves job type %s: its schema is that of %s.", clean(t.Name), clean(from))
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

// asksFor says whether a type is among names, or named by the ids of its jobs.
func asksFor(names []string, typeName string) bool {
	return slices.Contains(names, typeName) || slices.Contains(names, job.SnakeCase(typeName))
}

// externalType is a job type of another program.
func externalType(m *jobsv1.JobType) (job.Type, error) {
	t := job.Type{Name: m.GetName(), Worker: job.WorkerType(m.GetWorker()), Description: m.GetDescription()}
	for _, mode := range m.GetModes() {
		t.Modes = append(t.Modes, job.Mode(modeWord(mode)))
	}
	if m.GetSpecSchema() == nil {
		return t, nil
	}
	schema, err := protojson.Marshal(m.GetSpecSchema())
	t.SpecSchema = json.RawMessage(schema)
	return t, err
}
