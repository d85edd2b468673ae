package api

import (
	"context"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/orchestrate"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// integrationService implements dendra.jobs.v1.IntegrationService.
type integrationService struct{ *Server }

// platform is the client of the Platform API.
func (s *Server) platform() (*platform.Client, error) {
	if s.Platform == nil {
		return nil, newError(connect.CodeUnavailable, backendDown, "this server does not know the platform: set %s and %s for it", platform.EnvURL, platform.EnvToken)
	}
	return s.Platform, nil
}

// platformError is an error of the platform for callers of this server: whether the
// platform takes this server's token is nothing about theirs.
func platformError(what string, err error) error {
	switch {
	case err == nil, connect.CodeOf(err) == connect.CodeCanceled:
		return err
	case connect.CodeOf(err) == connect.CodeNotFound:
		return newError(connect.CodeNotFound, notFound, "%.200s: not found", what)
	case connect.CodeOf(err) == connect.CodeInvalidArgument, connect.CodeOf(err) == connect.CodeFailedPrecondition:
		return newError(connect.CodeFailedPrecondition, unsupported, "%s", oneLine(platform.Explain(err)))
	}
	return newError(connect.CodeUnavailable, backendDown, "%s", oneLine(platform.Explain(err))).WithCause(err)
}

// slugs are those of organizations and stations, by id.
func slugs(ctx context.Context, api *platform.Client) (map[string]string, error) {
	names := map[string]string{}
	err := platform.Pages(func(token string) (string, error) {
		page, err := api.Organizations.ListOrganizations(ctx, &platformv1.ListOrganizationsRequest{PageToken: token})
		for _, o := range page.GetOrganizations() {
			names[o.GetId()] = o.GetSlug()
		}
		return page.GetNextPageToken(), err
	})
	if err != nil {
		return nil, platformError("organizations", err)
	}
	stations, err := api.Stations(ctx)
	for _, station := range stations {
		names[station.GetId()] = station.GetSlug()
	}
	return names, platformError("stations", err)
}

// configsOf lists configs in the order of ids.
func configsOf(ctx context.Context, api *platform.Client, request *platformv1.ListIntegrationConfigsRequest) ([]*platformv1.IntegrationConfig, error) {
	var list []*platformv1.IntegrationConfig
	err := platform.Pages(func(token string) (string, error) {
		request.PageToken = token
		page, err := api.Integrations.ListIntegrationConfigs(ctx, request)
		list = append(list, page.GetIntegrationConfigs()...)
		return page.GetNextPageToken(), err
	})
	return list, platformError("integration configs", err)
}

func configOf(ctx context.Context, api *platform.Client, id string) (*platformv1.IntegrationConfig, error) {
	answer, err := api.Integrations.GetIntegrationConfig(ctx, &platformv1.GetIntegrationConfigRequest{Id: id})
	return answer.GetIntegrationConfig(), platformError("integration config "+id, err)
}

func integrationMessage(c *platformv1.IntegrationConfig, slugs map[string]string) *jobsv1.Integration {
	m := &jobsv1.Integration{
		Id: c.GetId(), Type: c.GetTypeId(), DisplayName: c.GetName(), OrganizationId: c.GetOrganizationId(), Organization: slugs[c.GetOrganizationId()],
		StationId: c.GetStationId(), Station: slugs[c.GetStationId()], OperationMode: lowerWord(c.GetOperationMode().String(), "OPERATION_MODE_"),
		Enabled: c.GetEnabled(), State: readmodel.IntegrationState(c), Version: c.GetVersion(), ObservedVersion: c.GetStatus().GetObservedVersion(),
	}
	for _, found := range c.GetStatus().GetConditions() {
		m.Conditions = append(m.Conditions, &jobsv1.IntegrationCondition{
			Type: found.GetType(), Holds: found.GetStatus() == platformv1.ConditionStatus_CONDITION_STATUS_TRUE, Reason: found.GetReason(), Message: found.GetMessage(),
		})
	}
	return m
}

func lowerWord(value, prefix string) string {
	return strings.ToLower(strings.TrimPrefix(value, prefix))
}

// ListIntegrations implements the service.
func (s *integrationService) ListIntegrations(ctx context.Context, r *jobsv1.ListIntegrationsRequest) (*jobsv1.ListIntegrationsResponse, error) {
	api, err := s.platform()
	if err != nil {
		return nil, err
	}
	names, err := slugs(ctx, api)
	if err != nil {
		return nil, err
	}
	list, err := configsOf(ctx, api, &platformv1.ListIntegrationConfigsRequest{})
	response := &jobsv1.ListIntegrationsResponse{}
	for _, c := range list {
		m := integrationMessage(c, names)
		if of := r.GetOrganization(); of == "" || of == m.GetOrganization() || of == m.GetOrganizationId() {
			response.Integrations = append(response.Integrations, m)
		}
	}
	return response, err
}

// shownLog is how many log entries GetIntegration gives.
const shownLog = 10

// GetIntegration implements the service.
func (s *integrationService) GetIntegration(ctx context.Context, r *jobsv1.GetIntegrationRequest) (*jobsv1.GetIntegrationResponse, error) {
	api, err := s.platform()
	if err != nil {
		return nil, err
	}
	config, err := configOf(ctx, api, r.GetId())
	if err != nil {
		return nil, err
	}
	names, err := slugs(ctx, api)
	if err != nil {
		return nil, err
	}
	response := &jobsv1.GetIntegrationResponse{Integration: integrationMessage(config, names), RefersTo: orchestrate.References(config)}
	others, err := configsOf(ctx, api, &platformv1.ListIntegrationConfigsRequest{ReferencesConfigId: r.GetId()})
	if err != nil {
		return nil, err
	}
	for _, other := range others {
		response.ReferredBy = append(response.ReferredBy, other.GetId())
	}
	answer, err := api.Integrations.ListLogEntries(ctx, &platformv1.ListLogEntriesRequest{ConfigId: r.GetId(), PageSize: shownLog})
	if err != nil {
		return nil, platformError("the log of integration config "+r.GetId(), err)
	}
	for _, entry := range answer.GetLogEntries() {
		response.LogEntries = append(response.LogEntries, &jobsv1.IntegrationLogEntry{
			LogTime: entry.GetTime(), Level: lowerWord(entry.GetLevel().String(), "LOG_LEVEL_"), Message: entry.GetMessage(),
		})
	}
	response.Jobs, err = s.jobsOf(ctx, r.GetId())
	return response, err
}

// jobsOf are the orchestrator of a config and the jobs that it has made, as lists have them.
func (s *integrationService) jobsOf(ctx context.Context, config string) ([]*jobsv1.Job, error) {
	var jobs []*jobsv1.Job
	for _, terms := range [][2]string{
		{"id", reconcile.OrchestratorID(config)}, {"provider", string(job.IntegrationProvider(config))},
	} {
		listed, err := (&jobService{s.Server}).ListJobs(ctx, &jobsv1.ListJobsRequest{
			PageSize: 1000, LeaveOutEnded: true, Filter: terms[0] + ` = "` + filterEscapes.Replace(terms[1]) + `"`,
		})
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, listed.GetJobs()...)
	}
	return slices.DeleteFunc(jobs, func(j *jobsv1.Job) bool { // Another provider may have the id.
		return !strings.HasPrefix(j.GetProvider(), string(job.ProviderIntegration))
	}), nil
}

var filterEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `*`, `\*`)

// CheckIntegration implements the service.
func (s *integrationService) CheckIntegration(ctx context.Context, r *jobsv1.CheckIntegrationRequest) (*jobsv1.CheckIntegrationResponse, error) {
	api, err := s.platform()
	if err != nil {
		return nil, err
	}
	config, err := configOf(ctx, api, r.GetId())
	if err != nil {
		return nil, err
	}
	answer, err := api.Integrations.CheckIntegrationConfig(ctx, &platformv1.CheckIntegrationConfigRequest{IntegrationConfig: config})
	if err != nil {
		return nil, platformError("integration config "+r.GetId(), err)
	}
	checked := &jobsv1.CheckIntegrationResponse{}
	for _, f := range answer.GetFindings() {
		checked.Findings = append(checked.Findings, f.GetField()+": "+f.GetMessage())
	}
	if len(checked.GetFindings()) > 0 {
		return checked, nil
	}
	in, err := orchestrate.ReadWith(ctx, api, config, answer.GetRegistrations())
	if err != nil {
		return nil, platformError("integration config "+r.GetId(), err)
	}
	addPlan(checked, orchestrate.NewPlanner(s.Types...).Plan(in))
	return checked, nil
}

func addPlan(checked *jobsv1.CheckIntegrationResponse, plan orchestrate.Plan) {
	for _, problem := range plan.Problems {
		if problem.Reason == orchestrate.ReasonInvalid {
			checked.Findings = append(checked.Findings, problem.Message)
		} else {
			checked.Notes = append(checked.Notes, problem.Message)
		}
	}
	for _, left := range plan.LeftOut {
		checked.Notes = append(checked.Notes, left.String())
	}
	for _, j := range plan.Jobs {
		full := JobMessage(j)
		checked.Jobs = append(checked.Jobs, &jobsv1.Job{Id: full.GetId(), Type: full.GetType(), Mode: full.GetMode()})
	}
	for _, joined := range plan.Joined {
		checked.PartOfJobIds = append(checked.PartOfJobIds, joined.JobID())
	}
}

// EnableIntegration implements the service.
func (s *integrationService) EnableIntegration(ctx context.Context, r *jobsv1.EnableIntegrationRequest) (*jobsv1.EnableIntegrationResponse, error) {
	api, err := s.platform()
	if err != nil {
		return nil, err
	}
	checked, err := s.CheckIntegration(ctx, &jobsv1.CheckIntegrationRequest{Id: r.GetId()})
	if err != nil {
		return nil, err
	}
	if len(checked.GetFindings()) > 0 {
		return nil, newError(connect.CodeFailedPrecondition, unsupported, "config %s: %s", r.GetId(), strings.Join(checked.GetFindings(), "; "))
	}
	answer, err := api.Integrations.EnableIntegrationConfig(ctx, &platformv1.EnableIntegrationConfigRequest{Id: r.GetId()})
	if err != nil {
		return nil, platformError("integration config "+r.GetId(), err)
	}
	return &jobsv1.EnableIntegrationResponse{Integration: integrationMessage(answer.GetIntegrationConfig(), nil)}, nil
}

// DisableIntegration implements the service.
func (s *integrationService) DisableIntegration(ctx context.Context, r *jobsv1.DisableIntegrationRequest) (*jobsv1.DisableIntegrationResponse, error) {
	api, err := s.platform()
	if err != nil {
		return nil, err
	}
	answer, err := api.Integrations.DisableIntegrationConfig(ctx, &platformv1.DisableIntegrationConfigRequest{Id: r.GetId()})
	if err != nil {
		return nil, platformError("integration config "+r.GetId(), err)
	}
	return &jobsv1.DisableIntegrationResponse{Integration: integrationMessage(answer.GetIntegrationConfig(), nil)}, nil
}
