package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/api/plantext"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// lookEvery is how often the jobs file is looked at.
const lookEvery = 2 * time.Second

// fileSync keeps Temporal in line with a jobs file. Each change of a job names the state
// that it changes, so that of several replicas one makes it, and the others find it made.
type fileSync struct {
	path   string
	prune  bool
	every  time.Duration
	types  JobTypes
	logger *slog.Logger
}

// run compares when the file changes, and from time to time. What fails is tried again: a
// file may be mended, and a worker announce a type that the file needs.
func (s *fileSync) run(ctx context.Context, clients *api.Clients) error {
	var done [sha256.Size]byte // the file that Temporal is in line with
	var at time.Time
	told, gone := "", false
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		sum, err := s.sum()
		missing := errors.Is(err, fs.ErrNotExist)
		switch {
		case missing && !gone:
			err = nil // An editor may be replacing it.
		case err == nil && (sum != done || time.Since(at) >= s.every):
			var jobs, changed int
			if jobs, changed, err = s.sync(ctx, clients); err != nil {
				break
			}
			if sum != done {
				s.logger.InfoContext(ctx, "Temporal is in line with the jobs file", "jobs", jobs, "changed", changed)
			}
			done, at = sum, time.Now()
		}
		gone = missing
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			told = ""
		case err.Error() != told: // Once, and not every two seconds.
			told = err.Error()
			s.logger.WarnContext(ctx, "Temporal is not in line with the jobs file: it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *fileSync) sum() ([sha256.Size]byte, error) {
	text, err := os.ReadFile(s.path)
	return sha256.Sum256(text), err
}

// read reads the jobs of the file.
func (s *fileSync) read(ctx context.Context) (*jobsv1.JobSet, error) {
	r, err := s.types.ReadJobs(ctx, s.path)
	if err != nil {
		return nil, err
	}
	if r.OnlyUnknown() {
		return nil, errors.Join(fmt.Errorf("no worker has announced the job types %s of %s", plantext.Clean(strings.Join(r.UnknownTypes(), ", ")), s.path), r.Incomplete)
	}
	if len(r.Problems) > 0 {
		var texts []string
		for _, problem := range r.Problems {
			texts = append(texts, plantext.Clean(problem.String()))
		}
		return nil, fmt.Errorf("%s has %s: %s", s.path, plantext.Counted(len(r.Problems), "problem", "problems"), strings.Join(texts, "; "))
	}
	if len(r.File.Jobs) == 0 && s.prune {
		return nil, fmt.Errorf("%s declares no job, and --prune would delete all there are", s.path)
	}
	set := &jobsv1.JobSet{Provider: string(job.ProviderTOML), Prune: s.prune}
	for _, j := range r.File.Jobs {
		set.Jobs = append(set.Jobs, api.JobMessage(j))
	}
	return set, nil
}

// sync compares, and applies what differs. It says how many jobs the file has, and how many
// were changed.
func (s *fileSync) sync(ctx context.Context, clients *api.Clients) (jobs, changed int, _ error) {
	set, err := s.read(ctx)
	if err != nil {
		return 0, 0, err
	}
	jobs = len(set.GetJobs())
	response, err := clients.JobSets.PlanJobSet(ctx, &jobsv1.PlanJobSetRequest{JobSet: set})
	if err != nil {
		return jobs, 0, err
	}
	plan := response.GetPlan()
	for _, change := range plan.GetChanges() {
		if plantext.IsUnread(change) {
			continue // It makes the sync fail, so that it is tried again.
		}
		switch change.GetAction() {
		case jobsv1.JobAction_JOB_ACTION_CREATE, jobsv1.JobAction_JOB_ACTION_UPDATE, jobsv1.JobAction_JOB_ACTION_DELETE:
			changed++
		case jobsv1.JobAction_JOB_ACTION_BLOCKED:
			s.logger.WarnContext(ctx, "a job is blocked", "job_id", change.GetJobId(), "reason", change.GetNote())
		default:
		}
	}
	if changed == 0 {
		return jobs, 0, plantext.UnreadError(plantext.Unread(plan))
	}
	return jobs, changed, s.apply(ctx, clients, &jobsv1.ApplyJobSetRequest{JobSet: set, Etag: plan.GetEtag()})
}

func (s *fileSync) apply(ctx context.Context, clients *api.Clients, request *jobsv1.ApplyJobSetRequest) error {
	stream, err := clients.JobSets.ApplyJobSet(ctx, request)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // It is read to its end.
	var failures []error
	for {
		response, err := stream.Receive()
		switch change := response.GetChange(); {
		case errors.Is(err, io.EOF):
			return errors.Join(failures...)
		case connect.CodeOf(err) == connect.CodeAborted && err != nil:
			return fmt.Errorf("another replica, or a person, is at it: %w", err)
		case err != nil:
			return err
		case change.GetErrorMessage() != "":
			failures = append(failures, fmt.Errorf("job %s: %s", change.GetJobId(), change.GetErrorMessage()))
		default:
			s.logger.InfoContext(ctx, "a job was changed", "job_id", change.GetJobId(), "action", strings.ToLower(strings.TrimPrefix(change.GetAction().String(), "JOB_ACTION_")))
		}
	}
}
