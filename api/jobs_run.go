package api

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// RunJob implements the service.
func (s *jobService) RunJob(ctx context.Context, r *jobsv1.RunJobRequest) (*jobsv1.RunJobResponse, error) {
	j, err := s.jobToRun(ctx, r)
	if err != nil {
		return nil, err
	}
	at := toTime(r.GetStartTime())
	if j.Mode() != job.ModeOneShot && (!at.IsZero() || r.GetOnce()) {
		how := "for later"
		if r.GetOnce() {
			how = "once"
		}
		return nil, newError(connect.CodeFailedPrecondition, unsupported, "job %s is %s: only a one-shot can be started %s", j.ID, j.Mode(), how)
	}
	response := &jobsv1.RunJobResponse{JobId: j.ID, Queue: j.Queue(), BeginTime: timeOf(at)}
	switch j.Mode() {
	case job.ModeContinuous:
		response.Iteration, err = s.Client.Jobs.TriggerIteration(ctx, j.ID)
		response.RunName = iterationName(j.ID, response.GetIteration())
	case job.ModeOneShot:
		err = s.runOneShot(ctx, j, at, r.GetOnce(), response)
	default:
		err = s.runOne(ctx, j, response)
	}
	return response, err
}

// jobToRun is the job of a request: one that is there, or a definition.
func (s *jobService) jobToRun(ctx context.Context, r *jobsv1.RunJobRequest) (job.Job, error) {
	if (r.GetId() == "") == (r.GetJob() == nil) {
		return job.Job{}, badRequest(violation{"id", "exactly one of id and job is set"})
	}
	if r.GetJob() == nil {
		live, err := s.Client.Jobs.Live(ctx, r.GetId())
		if err != nil {
			return job.Job{}, err
		}
		return live.Job, nil
	}
	j, _, err := s.declaredJob(ctx, r.GetJob())
	switch provider := job.Provider(r.GetJob().GetProvider()); {
	case err != nil:
		return job.Job{}, err
	case provider == job.ProviderTOML:
		j.Provider = provider
	case provider != "" && provider != job.ProviderAPI:
		return job.Job{}, badRequest(violation{"job.provider", "it is api, or toml"})
	}
	return j, nil
}

// runOne starts a run of a recurring or queued job.
func (s *jobService) runOne(ctx context.Context, j job.Job, response *jobsv1.RunJobResponse) error {
	triggered, err := s.Client.Jobs.TriggerJob(ctx, j)
	switch {
	case err != nil:
		return err
	case triggered.Receipt != nil:
		response.Place = placeMessage(*triggered.Receipt)
	default:
		response.RunName = refName(triggered.Run)
	}
	return nil
}

// runOneShot starts a run of a one-shot. A run that has not ended is given in its place.
func (s *jobService) runOneShot(ctx context.Context, j job.Job, at time.Time, once bool, response *jobsv1.RunJobResponse) error {
	held, err := s.checkOneShot(ctx, j)
	if err != nil {
		return err
	}
	switch {
	case once:
		err = s.runOnce(ctx, j, at, response)
	case at.IsZero():
		err = s.runOne(ctx, j, response)
	default:
		var ref client.RunRef
		ref, err = s.Client.Runs.StartAt(ctx, j, contract.StartedByHand, client.StartOptions{At: at})
		response.RunName = refName(ref)
	}
	if err != nil || held == nil || response.GetRunName() != refName(client.RunRef{WorkflowID: contract.JobWorkflowID(j.ID), RunID: held.RunID}) {
		return err // It is another run, if that one ended meanwhile.
	}
	// Not earlier: a start for another time than that of the run that waits is refused.
	response.ExistingStatus = jobsv1.RunStatus_RUN_STATUS_RUNNING
	if held.Begins.After(time.Now()) {
		response.ExistingStatus, response.BeginTime = jobsv1.RunStatus_RUN_STATUS_WAITING, timeOf(held.Begins)
	}
	return nil
}

// runOnce starts a run of a one-shot unless one with the spec has completed.
func (s *jobService) runOnce(ctx context.Context, j job.Job, at time.Time, response *jobsv1.RunJobResponse) error {
	found, err := s.Client.Runs.StartOnce(ctx, j, contract.StartedByHand, at)
	if err != nil {
		return err
	}
	response.RunName = refName(found.RunRef)
	if found.ExistedBefore {
		response.ExistingStatus = enumOf[jobsv1.RunStatus](found.Status)
	}
	if found.Status == client.RunCompleted {
		response.BeginTime = nil
	}
	return nil
}

// checkOneShot refuses a start if the id of a one-shot belongs to another job. It gives the
// run of the job that has not ended, if there is one.
func (s *jobService) checkOneShot(ctx context.Context, j job.Job) (*client.WorkflowLive, error) {
	live, err := s.Client.Jobs.LiveSchedule(ctx, j.ID)
	if err == nil && live == nil {
		live, err = s.Client.Jobs.LiveWorkflow(ctx, j.ID)
	}
	switch {
	case err != nil || live == nil:
		return nil, err
	case live.Schedule == nil && !live.Workflow.Open() && live.Job.Provider == j.Provider:
		return nil, nil //nolint:nilnil // Documented: none is under way.
	case live.Job.Mode() != job.ModeOneShot || live.Job.Provider != j.Provider:
		return nil, newError(connect.CodeAlreadyExists, alreadyExists, "job %s exists already, %s and from provider %s: starter run %s runs it",
			j.ID, live.Job.Mode(), live.Job.Provider, j.ID)
	}
	if err := live.CheckSpec(j); errors.Is(err, client.ErrOtherSpec) {
		return nil, otherSpecRuns(j.ID)
	} else if err != nil {
		return nil, err
	}
	return live.Workflow, nil
}
