package cli

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// externalTypes finds job types that are not built into this program: those that workers
// announce, and those of applied jobs. The error says why one of the names that is not
// found may yet be one.
func (i *invocation) externalTypes(names ...string) (types []job.Type, incomplete error) {
	c, err := i.api(i.ctx)
	if err != nil {
		return nil, err
	}
	listed, err := c.Workers.ListJobTypes(i.ctx, &jobsv1.ListJobTypesRequest{})
	if err != nil {
		return nil, err
	}
	for _, note := range listed.GetNotes() {
		i.note("%s", clean(note))
	}
	for _, m := range listed.GetJobTypes() {
		if _, own := findType(i.Types, m.GetName()); !own {
			types = append(types, announcedType(m))
		}
	}
	missing := func(name string) bool { _, found := findType(types, name); return !found }
	if text := listed.GetIncomplete(); text != "" && slices.ContainsFunc(names, missing) {
		incomplete = errors.New(text)
	}
	return types, incomplete
}

// announcedType is a job type that another program has announced.
func announcedType(m *jobsv1.JobType) job.Type {
	served := contract.ServedType{Name: m.GetName(), Description: m.GetDescription()}
	for _, mode := range m.GetModes() {
		served.Modes = append(served.Modes, job.Mode(modeWord(mode)))
	}
	if m.GetSpecSchema() != nil {
		served.SpecSchema, _ = json.Marshal(m.GetSpecSchema().AsMap()) // It came as JSON.
	}
	return served.JobType(job.WorkerType(m.GetWorker()))
}

// externalOf selects the external job types of jobs, for apply to record.
func (i *invocation) externalOf(jobs []job.Job, types []job.Type) map[string]contract.AppliedType {
	external := map[string]contract.AppliedType{}
	for _, j := range jobs {
		if _, own := findType(i.Types, j.Type); own {
			continue
		}
		if t, ok := findType(types, j.Type); ok {
			external[t.Name] = contract.AppliedType{Worker: t.Worker, ServedType: contract.ServedType{
				Name: t.Name, Description: t.Description, Modes: t.Modes, SpecSchema: t.SpecSchema,
			}}
		}
	}
	return external
}
