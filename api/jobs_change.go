package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// etagOf changes with the definition of a job, with edits of its schedule, and with pauses.
// The end of a run, and what a server counts, do not change it.
func etagOf(live *client.Live) (string, error) {
	hash, err := live.Job.DefinitionHash()
	if err != nil {
		return "", err
	}
	version := ""
	if live.Schedule != nil {
		if version, err = schedules.Version(live); err != nil {
			return "", err
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %q %t %t", live.Job.Mode(), hash, version, live.Paused, live.Job.Options.Paused))
	return hex.EncodeToString(sum[:8]), nil
}

// checkEtag compares the etag of a request with that of a job.
func checkEtag(live *client.Live, wanted string) error {
	if wanted == "" {
		return nil
	}
	etag, err := etagOf(live)
	if err == nil && etag != wanted {
		err = moved(live.Job.ID)
	}
	return err
}

func moved(id string) error {
	return newError(connect.CodeAborted, etagMismatch, "job %s was changed meanwhile: read it again", id)
}

// owned finds a job of provider api.
func (s *jobService) owned(ctx context.Context, id string) (*client.Live, error) {
	live, err := s.Client.Jobs.Live(ctx, id)
	if err != nil {
		return nil, err
	}
	if live.Job.Provider != job.ProviderAPI {
		return nil, newError(connect.CodeFailedPrecondition, notOwned, "job %s is of provider %s: change it there", id, live.Job.Provider)
	}
	return live, nil
}

// UpdateJob implements the service.
func (s *jobService) UpdateJob(ctx context.Context, r *jobsv1.UpdateJobRequest) (*jobsv1.UpdateJobResponse, error) {
	paths, err := readMask(r.GetUpdateMask())
	if err != nil {
		return nil, err
	}
	live, err := s.owned(ctx, r.GetJob().GetId())
	if errors.Is(err, client.ErrNotFound) && r.GetAllowMissing() {
		return s.createMissing(ctx, r)
	}
	if err == nil {
		err = checkEtag(live, r.GetJob().GetEtag())
	}
	if err != nil {
		return nil, err
	}
	j, known, err := s.merged(ctx, live.Job, r.GetJob(), paths)
	if err != nil {
		return nil, err
	}
	plan, change, err := s.planJob(ctx, j, known, schedules.PlanOptions{ResetPauses: paths.has("paused")})
	if err != nil {
		return nil, err
	}
	version, err := schedules.Version(live)
	switch {
	case err != nil:
		return nil, err
	case r.GetJob().GetEtag() != "" && change.Version != "" && change.Version != version:
		return nil, moved(j.ID)
	case change.Action == schedules.ActionBlocked:
		return nil, newError(connect.CodeFailedPrecondition, unsupported, "job %s: %s", j.ID, change.Note)
	case !r.GetValidateOnly():
		if err := s.carryOut(ctx, plan); err != nil {
			return nil, err
		}
	}
	m, err := s.readAfter(ctx, j, r.GetValidateOnly())
	return &jobsv1.UpdateJobResponse{Job: m, Change: changeMessage(*change, nil)}, err
}

// createMissing makes a job that was to be updated. All of its fields count.
func (s *jobService) createMissing(ctx context.Context, r *jobsv1.UpdateJobRequest) (*jobsv1.UpdateJobResponse, error) {
	if r.GetJob().GetEtag() != "" {
		return nil, moved(r.GetJob().GetId())
	}
	j, known, err := s.declaredJob(ctx, r.GetJob())
	if err != nil {
		return nil, err
	}
	change, err := s.create(ctx, j, known, creation{repeat: true, dry: r.GetValidateOnly()})
	if err != nil {
		return nil, err
	}
	m, err := s.readAfter(ctx, j, r.GetValidateOnly())
	return &jobsv1.UpdateJobResponse{Job: m, Change: change}, err
}

// merged is the live definition with the fields of a request, checked.
func (s *jobService) merged(ctx context.Context, live job.Job, wanted *jobsv1.Job, paths mask) (job.Job, *known, error) {
	before := JobMessage(live)
	after := proto.CloneOf(before)
	if err := paths.merge(after, wanted); err != nil {
		return job.Job{}, nil, err
	}
	j, known, err := s.declaredJob(ctx, after)
	if err != nil {
		return j, nil, err
	}
	if j.Type != live.Type {
		return j, nil, badRequest(violation{"job.type", fmt.Sprintf("job %s is of type %s, which does not change", live.ID, live.Type)})
	}
	if proto.Equal(before, JobMessage(j)) {
		return live, known, nil // To the digit.
	}
	if proto.Equal(before.GetSpec(), after.GetSpec()) {
		j.Spec = live.Spec
	}
	return j, known, nil
}

// DeleteJob implements the service.
func (s *jobService) DeleteJob(ctx context.Context, r *jobsv1.DeleteJobRequest) (*jobsv1.DeleteJobResponse, error) {
	live, err := s.owned(ctx, r.GetId())
	if errors.Is(err, client.ErrNotFound) && r.GetAllowMissing() {
		return &jobsv1.DeleteJobResponse{Change: &jobsv1.JobChange{
			Action: jobsv1.JobAction_JOB_ACTION_UNCHANGED, JobId: r.GetId(), Note: "there is no such job",
		}}, nil
	}
	if err == nil {
		err = checkEtag(live, r.GetEtag())
	}
	if err != nil {
		return nil, err
	}
	plan, err := s.syncer.Plan(ctx, nil, schedules.PlanOptions{
		Provider: job.ProviderAPI, Only: []string{r.GetId()}, Prune: true, AllowMassPrune: true,
	})
	if err != nil {
		return nil, err
	}
	change := &jobsv1.JobChange{
		Action: jobsv1.JobAction_JOB_ACTION_UNCHANGED, JobId: r.GetId(),
		Note: "nothing is left to delete; Temporal lists its latest run until its retention is over",
	}
	for _, planned := range plan.Changes {
		change = changeMessage(planned, nil)
	}
	waits := live.Waiting != nil || waitsForTime(live)
	if waits {
		change.Action, change.Note = jobsv1.JobAction_JOB_ACTION_DELETE, ""
	}
	if r.GetValidateOnly() {
		return &jobsv1.DeleteJobResponse{Change: change}, nil
	}
	if waits {
		if err := s.removeWaiting(ctx, live); err != nil {
			return nil, err
		}
	}
	return &jobsv1.DeleteJobResponse{Change: change}, s.carryOut(ctx, plan)
}

// waitsForTime reports whether a one-shot has been started for a time ahead.
func waitsForTime(live *client.Live) bool {
	return live.Workflow != nil && live.Workflow.Open() && live.Workflow.Begins.After(time.Now())
}

// removeWaiting takes away what waits for its turn or its time.
func (s *jobService) removeWaiting(ctx context.Context, live *client.Live) error {
	id := live.Job.ID
	if item := live.Waiting; item != nil {
		err := s.Client.Apply.RemoveWaiting(ctx, item.Job.Queue(), id, item.Sequence)
		if errors.Is(err, client.ErrNotFound) {
			return moved(id)
		}
		return err
	}
	return s.Client.Apply.EndWaiting(ctx, id, live.Workflow.RunID, "the job was deleted by "+callerOf(ctx))
}
