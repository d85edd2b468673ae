package api

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// jobSetService implements dendra.jobs.v1.JobSetService.
type jobSetService struct{ *Server }

// PlanJobSet implements the service.
func (s *jobSetService) PlanJobSet(ctx context.Context, r *jobsv1.PlanJobSetRequest) (*jobsv1.PlanJobSetResponse, error) {
	plan, err := s.plan(ctx, r.GetJobSet())
	if err != nil {
		return nil, err
	}
	return &jobsv1.PlanJobSetResponse{Plan: planMessage(plan)}, nil
}

// plan checks a set and plans it.
func (s *jobSetService) plan(ctx context.Context, set *jobsv1.JobSet) (*schedules.Plan, error) {
	provider, err := providerOf("job_set.provider", set.GetProvider(), job.ProviderAPI)
	if err != nil {
		return nil, err
	}
	if provider.IsUnder(job.ProviderIntegration) || provider == job.ProviderTeardown {
		return nil, newError(connect.CodeFailedPrecondition, notOwned, "jobs of provider %s are made by other jobs, from what the platform has", provider)
	}
	declared, err := s.declared(ctx, provider, set.GetJobs(), func(i int) string { return fmt.Sprintf("job_set.jobs[%d]", i) })
	if err != nil {
		return nil, err
	}
	return s.syncer.Plan(ctx, declared.jobs, schedules.PlanOptions{
		Provider: provider, Prune: set.GetPrune(), AllowMassPrune: set.GetAllowMassDelete(), ResetPauses: set.GetResetPauses(), Parallel: int(set.GetParallel()),
		Types: declared.known.externalOf(declared.jobs),
	})
}

// providerOf reads the name of a provider.
func providerOf(field, name string, otherwise job.Provider) (job.Provider, error) {
	if name == "" {
		return otherwise, nil
	}
	provider := job.Provider(name)
	if err := provider.Check(); err != nil {
		return "", badRequest(violation{field, err.Error()})
	}
	return provider, nil
}

func planMessage(plan *schedules.Plan) *jobsv1.Plan {
	m := &jobsv1.Plan{
		Foreign: plan.Foreign, Etag: plan.Fingerprint(), Namespace: plan.Namespace, NamespaceId: plan.NamespaceID(),
		Unrecorded: plan.Empty() && !plan.Recorded(),
	}
	if err := plan.CheckPrune(); err != nil {
		m.Refusal = err.Error()
	}
	for _, change := range plan.Changes {
		m.Changes = append(m.Changes, changeMessage(change, nil))
	}
	for _, warning := range plan.Warnings {
		m.Warnings = append(m.Warnings, &jobsv1.PlanWarning{JobId: warning.JobID, Message: warning.Text, StartTime: timeOf(warning.At)})
	}
	return m
}

// ApplyJobSet implements the service.
func (s *jobSetService) ApplyJobSet(ctx context.Context, r *jobsv1.ApplyJobSetRequest, stream jobsv1connect.JobSetServiceApplyJobSetServerStream) error {
	plan, err := s.plan(ctx, r.GetJobSet())
	if err == nil {
		err = plan.CheckPrune()
	}
	if err != nil {
		return err
	}
	if r.GetEtag() != "" && r.GetEtag() != plan.Fingerprint() {
		return newError(connect.CodeAborted, etagMismatch, "what the plan was made against has changed since: plan again")
	}
	for _, change := range plan.Changes {
		if change.Unread == nil {
			continue
		}
		if err := stream.Send(&jobsv1.ApplyJobSetResponse{Change: changeMessage(change, nil)}); err != nil {
			return err
		}
	}
	if plan.Empty() && plan.Recorded() {
		return nil
	}
	applying, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	failures := 0
	err = s.syncer.Apply(applying, plan, func(report schedules.Report) {
		if report.Err != nil {
			failures++
		}
		noteDefinitions(ctx, report)
		sent := stream.Send(&jobsv1.ApplyJobSetResponse{
			Change: changeMessage(report.Change, s.explain(ctx, report.Err)), Done: int32(report.Done), Total: int32(report.Total),
		})
		if sent != nil {
			stop(sent)
		}
	})
	switch {
	case context.Cause(applying) != nil:
		return context.Cause(applying)
	case failures > 0 && !errors.Is(err, schedules.ErrRefused):
		return nil // The answers say which.
	}
	return err
}

// explain is what a caller is told of an error.
func (s *jobSetService) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	explained := explain(ctx, err)
	if explained.Code() == connect.CodeInternal {
		s.Logger.ErrorContext(ctx, "a change of an apply failed", "error", err)
	}
	return fmt.Errorf("%s", explained.Message())
}

// GetDrift implements the service.
func (s *jobSetService) GetDrift(ctx context.Context, r *jobsv1.GetDriftRequest) (*jobsv1.GetDriftResponse, error) {
	provider, err := providerOf("provider", r.GetProvider(), job.ProviderTOML)
	if err != nil {
		return nil, err
	}
	drift, err := s.syncer.Drift(ctx, provider)
	if err != nil {
		return nil, err
	}
	return &jobsv1.GetDriftResponse{
		Drifts: driftMessages(drift.Jobs), Foreign: drift.Foreign, Failing: driftMessages(drift.Failing), Unread: driftMessages(drift.Unread), Applied: int32(drift.Applied),
		Namespace: drift.Namespace,
	}, nil
}

func driftMessages(drifts []schedules.JobDrift) []*jobsv1.JobDrift {
	var list []*jobsv1.JobDrift
	for _, drift := range drifts {
		list = append(list, &jobsv1.JobDrift{
			JobId: drift.JobID, Kind: enumOf[jobsv1.DriftKind](drift.Kind), Fields: fieldMessages(drift.Fields), Note: drift.Note, Mode: word(string(drift.Mode)),
		})
	}
	return list
}
