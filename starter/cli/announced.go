package cli

import (
	"encoding/json"
	"errors"

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
