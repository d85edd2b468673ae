package api

import (
	"context"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/api/messages"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// workerService implements dendra.jobs.v1.WorkerService.
type workerService struct{ *Server }

// ListWorkers implements the service.
func (s *workerService) ListWorkers(ctx context.Context, _ *jobsv1.ListWorkersRequest) (*jobsv1.ListWorkersResponse, error) {
	workers, err := s.Client.Workers.List(ctx)
	if err != nil {
		return nil, err
	}
	response := &jobsv1.ListWorkersResponse{}
	for _, service := range slices.Concat(workers.Services, workers.Lost) {
		response.Workers = append(response.Workers, messages.Worker(service))
	}
	for _, unserved := range workers.Unserved {
		response.UnservedTypes = append(response.UnservedTypes, &jobsv1.UnservedType{JobType: unserved.Type, Jobs: int32(unserved.Jobs)})
	}
	return response, nil
}

// ListJobTypes implements the service.
func (s *workerService) ListJobTypes(ctx context.Context, _ *jobsv1.ListJobTypesRequest) (*jobsv1.ListJobTypesResponse, error) {
	known := s.types.all(ctx)
	if known.incomplete != nil {
		return nil, known.incomplete
	}
	slices.SortFunc(known.types, func(a, b jobType) int { return strings.Compare(a.Name, b.Name) })
	response := &jobsv1.ListJobTypesResponse{}
	for _, t := range known.types {
		m := &jobsv1.JobType{Name: t.Name, Worker: string(t.Worker), Description: t.Description, Modes: words(t.Modes)}
		if t.schema != nil {
			m.SpecSchema = structOf(t.schema.JSON())
		}
		response.JobTypes = append(response.JobTypes, m)
	}
	return response, nil
}
