package api

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/activities/platform/teardown"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// teardownService implements dendra.jobs.v1.TeardownService.
type teardownService struct{ *Server }

// organization gives the platform's client, and the organization with an id, or else the
// only one with a slug.
func (s *Server) organization(ctx context.Context, name string) (*platform.Client, *platformv1.Organization, error) {
	api, err := s.platform()
	if err != nil {
		return nil, nil, err
	}
	var found []*platformv1.Organization
	err = platform.Pages(func(token string) (string, error) {
		page, err := api.Organizations.ListOrganizations(ctx, &platformv1.ListOrganizationsRequest{PageToken: token, ShowDeleted: true})
		for _, o := range page.GetOrganizations() {
			if o.GetId() == name {
				found = []*platformv1.Organization{o}
				return "", nil
			}
			if o.GetSlug() == name {
				found = append(found, o)
			}
		}
		return page.GetNextPageToken(), err
	})
	switch {
	case err != nil:
		return nil, nil, platformError("organizations", err)
	case len(found) == 0:
		return nil, nil, newError(connect.CodeNotFound, notFound, "organization %.100s: not found", name)
	case len(found) > 1:
		ids := make([]string, len(found))
		for n, o := range found {
			ids[n] = o.GetId()
		}
		return nil, nil, newError(connect.CodeFailedPrecondition, unsupported,
			"several organizations have the slug %s: give the id of one, %s", name, strings.Join(ids, ", "))
	}
	return api, found[0], nil
}

// PlanTeardown implements the service.
func (s *teardownService) PlanTeardown(ctx context.Context, r *jobsv1.PlanTeardownRequest) (*jobsv1.PlanTeardownResponse, error) {
	_, organization, err := s.organization(ctx, r.GetOrganization())
	if err != nil {
		return nil, err
	}
	deleteArchive := organization.GetDeleteArchive()
	if r.DeleteArchive != nil {
		deleteArchive = r.GetDeleteArchive()
	}
	dryRun := teardown.DryRun(organization, deleteArchive)
	triggered, err := s.Client.Jobs.TriggerJob(ctx, dryRun)
	if err != nil {
		return nil, err
	}
	return &jobsv1.PlanTeardownResponse{RunName: refName(triggered.Run), JobId: dryRun.ID}, nil
}

// StartTeardown implements the service.
func (s *teardownService) StartTeardown(ctx context.Context, r *jobsv1.StartTeardownRequest) (*jobsv1.StartTeardownResponse, error) {
	api, organization, err := s.organization(ctx, r.GetOrganization())
	if err != nil {
		return nil, err
	}
	answer, err := api.Organizations.DeleteOrganization(ctx, &platformv1.DeleteOrganizationRequest{
		Id: organization.GetId(), GracePeriod: r.GetGracePeriod(), DeleteArchive: r.GetDeleteArchive(),
	})
	if err != nil {
		return nil, platformError("organization "+r.GetOrganization(), err)
	}
	response := &jobsv1.StartTeardownResponse{AlreadyMarked: organization.GetDeleteTime() != nil}
	if err := teardown.Apply(ctx, schedules.NewJobs(s.Client), answer.GetOrganization()); err != nil {
		return nil, fmt.Errorf("organization %s is marked, but its teardown cannot be applied: %w", organization.GetSlug(), err)
	}
	response.Teardown, err = s.teardown(ctx, answer.GetOrganization())
	return response, err
}

// GetTeardown implements the service.
func (s *teardownService) GetTeardown(ctx context.Context, r *jobsv1.GetTeardownRequest) (*jobsv1.GetTeardownResponse, error) {
	_, organization, err := s.organization(ctx, r.GetOrganization())
	if err != nil {
		return nil, err
	}
	m, err := s.teardown(ctx, organization)
	return &jobsv1.GetTeardownResponse{Teardown: m}, err
}

// teardown is how far the teardown of an organization is.
func (s *teardownService) teardown(ctx context.Context, o *platformv1.Organization) (*jobsv1.Teardown, error) {
	m := &jobsv1.Teardown{
		OrganizationId: o.GetId(), Organization: o.GetSlug(), DeleteTime: o.GetDeleteTime(), PurgeTime: o.GetPurgeTime(),
		DeleteArchive: o.GetDeleteArchive(), Finalizers: o.GetFinalizers(),
	}
	if o.GetDeleteTime() == nil {
		return m, nil
	}
	m.JobId = teardown.JobID(o)
	detail, err := s.Client.Runs.Get(ctx, client.RunRef{WorkflowID: contract.JobWorkflowID(m.GetJobId())})
	switch {
	case errors.Is(err, client.ErrNotFound):
		return m, nil
	case err != nil:
		return nil, err
	}
	m.Run = RunMessage(detail)
	return m, nil
}

// UndoTeardown implements the service.
func (s *teardownService) UndoTeardown(ctx context.Context, r *jobsv1.UndoTeardownRequest) (*jobsv1.UndoTeardownResponse, error) {
	api, marked, err := s.organization(ctx, r.GetOrganization())
	if err != nil {
		return nil, err
	}
	answer, err := api.Organizations.UndeleteOrganization(ctx, &platformv1.UndeleteOrganizationRequest{Id: marked.GetId()})
	switch {
	case platform.Reason(err) == platformv1.ErrorReason_ERROR_REASON_PURGE_BEGUN:
		return nil, newError(connect.CodeFailedPrecondition, unsupported, "organization %s is being purged since %s and does not come back (PURGE_BEGUN)",
			marked.GetSlug(), marked.GetPurgeTime().AsTime().Format("2006-01-02T15:04:05Z"))
	case err != nil:
		return nil, platformError("organization "+r.GetOrganization(), err)
	}
	if err := teardown.Withdraw(ctx, schedules.NewJobs(s.Client), marked); err != nil {
		return nil, fmt.Errorf("organization %s is back, but the job of its teardown cannot be removed: %w", marked.GetSlug(), err)
	}
	response := &jobsv1.UndoTeardownResponse{NotMarked: marked.GetDeleteTime() == nil}
	response.Teardown, err = s.teardown(ctx, answer.GetOrganization())
	return response, err
}
