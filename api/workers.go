package api

import (
	"context"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// workerService implements dendra.jobs.v1.WorkerService.
type workerService struct{ *Server }

// ListWorkers implements the service.
func (s *workerService) ListWorkers(ctx context.Context, r *jobsv1.ListWorkersRequest) (*jobsv1.ListWorkersResponse, error) {
	workers, err := s.Client.Workers.List(ctx)
	if err != nil {
		return nil, err
	}
	response := &jobsv1.ListWorkersResponse{}
	for _, service := range slices.Concat(workers.Services, workers.Lost) {
		m := readmodel.WorkerMessage(service)
		if r.GetWithTypes() {
			m.Types = servedMessages(service)
		}
		response.Workers = append(response.Workers, m)
	}
	for _, unserved := range workers.Unserved {
		response.UnservedTypes = append(response.UnservedTypes, &jobsv1.UnservedType{JobType: unserved.Type, Jobs: int32(unserved.Jobs)})
	}
	for _, unserved := range workers.UnservedTags {
		response.UnservedTags = append(response.UnservedTags, &jobsv1.UnservedType{JobType: unserved.Type, Tags: unserved.Tags, Jobs: int32(unserved.Jobs)})
	}
	return response, nil
}

// servedMessages are the job types of a worker, as it announced them.
func servedMessages(service client.LiveService) []*jobsv1.JobType {
	var list []*jobsv1.JobType
	for _, served := range service.Types {
		list = append(list, &jobsv1.JobType{
			Name: served.Name, Worker: string(service.Worker), Description: served.Description, Modes: modeWords(served.Modes),
			SpecSchema: structOf(served.SpecSchema),
		})
	}
	slices.SortFunc(list, func(a, b *jobsv1.JobType) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list
}

// modeWords are the modes that jobs of a type may have: all, if it names none.
func modeWords(modes []job.Mode) []string {
	if len(modes) == 0 {
		modes = job.Modes()
	}
	return words(modes)
}

// ListJobTypes implements the service.
func (s *workerService) ListJobTypes(ctx context.Context, _ *jobsv1.ListJobTypesRequest) (*jobsv1.ListJobTypesResponse, error) {
	known := s.types.all(ctx)
	slices.SortFunc(known.types, func(a, b jobType) int { return strings.Compare(a.Name, b.Name) })
	response := &jobsv1.ListJobTypesResponse{Notes: known.notes}
	if known.incomplete != nil {
		response.Incomplete = s.explain(ctx, known.incomplete).Message()
	}
	for _, t := range known.types {
		m := &jobsv1.JobType{Name: t.Name, Worker: string(t.Worker), Description: t.Description, Modes: modeWords(t.Modes), KeptFrom: t.keptFrom}
		if spec, err := t.schema(); err == nil && spec != nil {
			m.SpecSchema = structOf(spec.JSON())
		}
		response.JobTypes = append(response.JobTypes, m)
	}
	return response, nil
}
