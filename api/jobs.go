package api

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// jobService implements dendra.jobs.v1.JobService.
type jobService struct{ *Server }

// GetJob implements the service.
func (s *jobService) GetJob(ctx context.Context, r *jobsv1.GetJobRequest) (*jobsv1.GetJobResponse, error) {
	m, err := s.read(ctx, r.GetId())
	return &jobsv1.GetJobResponse{Job: m}, err
}

// read reads a job.
func (s *jobService) read(ctx context.Context, id string) (*jobsv1.Job, error) {
	detail, err := s.Client.Jobs.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	m := JobMessage(detail.Job)
	m.State = detailState(detail)
	m.Etag, err = etagOf(detail.Live)
	return m, err
}

// ListJobs implements the service.
func (s *jobService) ListJobs(ctx context.Context, r *jobsv1.ListJobsRequest) (*jobsv1.ListJobsResponse, error) {
	terms, err := readFilter(r.GetFilter(), jobFields())
	if err != nil {
		return nil, err
	}
	pages := pagesOf[string](r)
	place, err := pages.read(r.GetPageToken())
	if err != nil {
		return nil, err
	}
	filter, possible := jobFilter(terms)
	if !possible {
		return &jobsv1.ListJobsResponse{}, nil
	}
	list, kept := s.lists.get(pages.list)
	if place == "" || !kept {
		if list, err = s.listJobs(ctx, terms, filter, r.GetLeaveOutEnded()); err != nil {
			return nil, err
		}
		s.lists.keep(pages.list, list)
	}
	page, next := after(list.rows, func(row client.JobRow) string { return row.ID }, place, pageSize(r.GetPageSize()))
	response := &jobsv1.ListJobsResponse{Unreachable: list.unread, EndedLeftOut: int32(list.leftOut)}
	for _, row := range page {
		response.Jobs = append(response.Jobs, rowMessage(row))
	}
	if next != "" {
		response.NextPageToken = pages.write(next)
	}
	return response, nil
}

// listJobs lists the jobs that fit a filter. With notEnded, those that have ended are counted
// alone.
func (s *jobService) listJobs(ctx context.Context, terms []term, filter client.JobFilter, notEnded bool) (jobList, error) {
	rows, unread, err := s.Client.Jobs.List(ctx, filter)
	list := jobList{unread: unread, read: time.Now()}
	for _, row := range rows {
		switch {
		case !matchesJob(terms, row):
		case notEnded && row.HasEnded():
			list.leftOut++
		default:
			list.rows = append(list.rows, row)
		}
	}
	return list, err
}

// CreateJob implements the service.
func (s *jobService) CreateJob(ctx context.Context, r *jobsv1.CreateJobRequest) (*jobsv1.CreateJobResponse, error) {
	j, known, err := s.declaredJob(ctx, r.GetJob())
	if err != nil {
		return nil, err
	}
	change, err := s.create(ctx, j, known, creation{requestID: r.GetRequestId(), repeat: r.GetRequestId() != "", dry: r.GetValidateOnly()})
	if err != nil {
		return nil, err
	}
	m, err := s.readAfter(ctx, j, r.GetValidateOnly())
	return &jobsv1.CreateJobResponse{Job: m, Change: change}, err
}

// creation says how a job is made.
type creation struct {
	requestID string
	repeat    bool // one that is there with the same definition will do
	dry       bool
}

// create makes a job.
func (s *jobService) create(ctx context.Context, j job.Job, known *known, how creation) (*jobsv1.JobChange, error) {
	options := schedules.PlanOptions{RequestID: how.requestID}
	plan, change, err := s.planJob(ctx, j, known, options)
	if err != nil {
		return nil, err
	}
	exists := newError(connect.CodeAlreadyExists, alreadyExists, "there is a job %s", j.ID)
	switch {
	case change.Taken:
		return nil, newError(connect.CodeAlreadyExists, alreadyExists, "job %s: %s", j.ID, change.Note)
	case change.Action == schedules.ActionBlocked:
		return nil, newError(connect.CodeFailedPrecondition, unsupported, "job %s: %s", j.ID, change.Note)
	case change.Action == schedules.ActionUpdate:
		return nil, exists
	case change.Action == schedules.ActionUnchanged && change.Version != "" && !how.repeat:
		return nil, exists
	}
	if how.dry {
		return changeMessage(*change, nil), nil
	}
	if err := s.carryOut(ctx, plan); err != nil {
		if !how.repeat {
			return nil, err
		}
		// Another call with the same job may have been faster.
		_, now, planned := s.planJob(ctx, j, known, options)
		if planned != nil || now.Action != schedules.ActionUnchanged || now.Version == "" {
			return nil, err
		}
		change = now
	}
	if how.repeat && change.Action == schedules.ActionUnchanged && change.Version != "" {
		change.Action, change.Note = schedules.ActionCreate, "" // As the first call said.
	}
	return changeMessage(*change, nil), nil
}

// planJob plans one job of provider api.
func (s *jobService) planJob(ctx context.Context, j job.Job, known *known, options schedules.PlanOptions) (*schedules.Plan, *schedules.Change, error) {
	options.Provider, options.Only, options.Types = job.ProviderAPI, []string{j.ID}, known.externalOf([]job.Job{j})
	plan, err := s.syncer.Plan(ctx, []job.Job{j}, options)
	if err != nil {
		return nil, nil, err
	}
	for i := range plan.Changes {
		if plan.Changes[i].JobID == j.ID {
			return plan, &plan.Changes[i], nil
		}
	}
	return nil, nil, errors.New("the plan says nothing of the job")
}

// carryOut applies a plan for one job.
func (s *Server) carryOut(ctx context.Context, plan *schedules.Plan) error {
	if plan.Empty() && plan.Recorded() {
		return nil
	}
	return s.syncer.Apply(ctx, plan, func(report schedules.Report) { noteDefinitions(ctx, report) })
}

// readAfter reads a job that was made or changed. What would be is the definition alone. A
// job that cannot be read any more, or yet, is its definition too.
func (s *jobService) readAfter(ctx context.Context, j job.Job, dry bool) (*jobsv1.Job, error) {
	if dry {
		return JobMessage(j), nil
	}
	m, err := s.read(ctx, j.ID)
	if errors.Is(err, client.ErrNotFound) || errors.Is(err, client.ErrNoWorker) {
		return JobMessage(j), nil // A paused one-shot; or a queue that nobody answers for.
	}
	return m, err
}
