package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// runService implements dendra.jobs.v1.RunService.
type runService struct{ *Server }

// refName is the name of a run: WORKFLOW_ID@RUN_ID.
func refName(ref client.RunRef) string { return readmodel.RunName(ref) }

// iterationName is the name of an iteration: JOB_ID#NUMBER.
func iterationName(jobID string, number int64) string { return readmodel.IterationName(jobID, number) }

func runName(run client.Run) string {
	if run.Iteration > 0 {
		return iterationName(run.JobID, run.Iteration)
	}
	return refName(run.RunRef)
}

// namedRun is a run by its name.
type namedRun struct {
	client.RunRef
	jobID     string // of an iteration
	iteration int64  // 0 of a run
}

// readRunName reads the name of a run. Without a run id it is the latest of the workflow.
func readRunName(name string) (namedRun, error) {
	if jobID, number, ok := strings.Cut(name, "#"); ok {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n <= 0 {
			return namedRun{}, badRequest(violation{"name", "an iteration is named JOB_ID#NUMBER"})
		}
		return namedRun{jobID: jobID, iteration: n}, nil
	}
	workflowID, runID := name, ""
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		workflowID, runID = name[:at], name[at+1:]
	}
	if !strings.HasPrefix(workflowID, contract.JobWorkflowID("")) {
		return namedRun{}, badRequest(violation{"name", fmt.Sprintf("a run is named WORKFLOW_ID@RUN_ID, and its workflow id begins with %s", contract.JobWorkflowID(""))})
	}
	return namedRun{RunRef: client.RunRef{WorkflowID: workflowID, RunID: runID}}, nil
}

// GetRun implements the service.
func (s *runService) GetRun(ctx context.Context, r *jobsv1.GetRunRequest) (*jobsv1.GetRunResponse, error) {
	named, err := readRunName(r.GetName())
	if err != nil {
		return nil, err
	}
	if named.iteration > 0 {
		run, err := s.iteration(ctx, named)
		if err != nil {
			return nil, err
		}
		m := runMessage(run)
		m.Spans = spanMessages(client.IterationSpans(run))
		return &jobsv1.GetRunResponse{Run: m}, nil
	}
	detail, err := jobRun(ctx, s.Client, named.RunRef)
	if err != nil {
		return nil, err
	}
	spans, err := s.Client.Runs.Spans(ctx, detail)
	if err != nil {
		return nil, err
	}
	m := RunMessage(detail)
	m.Spans = spanMessages(spans)
	return &jobsv1.GetRunResponse{Run: m}, nil
}

// jobRun reads a run of a job of this system.
func jobRun(ctx context.Context, c *client.Client, ref client.RunRef) (*client.RunDetail, error) {
	detail, err := c.Runs.Get(ctx, ref)
	if err == nil && detail.JobID == "" {
		err = fmt.Errorf("run %s has no search attributes of a job: %w", ref.WorkflowID, client.ErrNotFound)
	}
	return detail, err
}

// iteration finds an iteration that its job remembers.
func (s *runService) iteration(ctx context.Context, named namedRun) (client.Run, error) {
	runs, err := s.Client.Runs.List(ctx, client.RunFilter{JobID: named.jobID, Mode: job.ModeContinuous})
	for _, run := range runs {
		if run.Iteration == named.iteration {
			return run, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("iteration %d of job %s: %w", named.iteration, named.jobID, client.ErrNotFound)
	}
	return client.Run{}, err
}

// ListRuns implements the service.
func (s *runService) ListRuns(ctx context.Context, r *jobsv1.ListRunsRequest) (*jobsv1.ListRunsResponse, error) {
	terms, err := readFilter(r.GetFilter(), runFields())
	if err != nil {
		return nil, err
	}
	pages := pagesOf[client.RunPlace](r)
	place, err := pages.read(r.GetPageToken())
	if err != nil {
		return nil, err
	}
	filter, possible := runFilter(terms)
	if !possible {
		return &jobsv1.ListRunsResponse{}, nil
	}
	var keep func(client.Run) bool
	if lookedThrough(terms) {
		keep = func(run client.Run) bool { return matchesRun(terms, run) }
	}
	page, err := s.Client.Runs.Page(ctx, filter, keep, place, pageSize(r.GetPageSize()))
	if errors.Is(err, client.ErrPlace) {
		return nil, badToken()
	}
	if err != nil {
		return nil, err
	}
	response := &jobsv1.ListRunsResponse{}
	for _, run := range page.Runs {
		response.Runs = append(response.Runs, runMessage(run))
	}
	if page.Next != nil {
		response.NextPageToken = pages.write(*page.Next)
	}
	return response, nil
}

// ListFailures implements the service.
func (s *runService) ListFailures(ctx context.Context, r *jobsv1.ListFailuresRequest) (*jobsv1.ListFailuresResponse, error) {
	if r.GetStartTime().CheckValid() != nil && r.GetStartTime() != nil {
		return nil, badRequest(violation{"start_time", "it is not a time"})
	}
	reader, err := s.overview(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := reader.Await(ctx); err != nil {
		return nil, err
	}
	var since time.Time
	if r.GetStartTime() != nil {
		since = r.GetStartTime().AsTime()
	}
	groups, from := reader.Failures(since, time.Now())
	response := &jobsv1.ListFailuresResponse{StartTime: timeOf(from), TotalGroups: int32(len(groups))}
	if n := int(r.GetLimit()); n > 0 {
		groups = groups[:min(n, len(groups))]
	}
	response.Groups = groups
	return response, nil
}

// WatchRun implements the service.
func (s *runService) WatchRun(ctx context.Context, r *jobsv1.WatchRunRequest, stream jobsv1connect.RunServiceWatchRunServerStream) error {
	named, err := readRunName(r.GetName())
	if err != nil {
		return err
	}
	if named.iteration > 0 {
		return s.watchIteration(ctx, named, stream)
	}
	return s.watches.follow(ctx, named.RunRef, func(run *jobsv1.Run) error {
		return stream.Send(&jobsv1.WatchRunResponse{Run: run})
	})
}

// watchIteration sends an iteration now and when it has ended.
func (s *runService) watchIteration(ctx context.Context, named namedRun, stream jobsv1connect.RunServiceWatchRunServerStream) error {
	run, err := s.iteration(ctx, named)
	if err == nil {
		err = stream.Send(&jobsv1.WatchRunResponse{Run: runMessage(run)})
	} else if errors.Is(err, client.ErrNotFound) {
		// It may be one to come.
		if live, known := s.Client.Jobs.LiveWorkflow(ctx, named.jobID); known == nil && live != nil && live.Workflow.Open() {
			err = nil
		}
	}
	if err != nil || run.Status != "" && !run.Status.Open() {
		return err
	}
	ended, err := s.Client.Runs.FollowIteration(ctx, named.jobID, named.iteration, func(*contract.ContinuousState) {})
	if err != nil {
		return err
	}
	if ended.Start.IsZero() { // The job has forgotten it.
		forgotten := &jobsv1.Run{Name: iterationName(named.jobID, named.iteration), JobId: named.jobID, Iteration: named.iteration}
		return stream.Send(&jobsv1.WatchRunResponse{Run: forgotten})
	}
	if run, err = s.iteration(ctx, named); err != nil {
		return err
	}
	return stream.Send(&jobsv1.WatchRunResponse{Run: runMessage(run)})
}

// RetryRun implements the service.
func (s *runService) RetryRun(ctx context.Context, r *jobsv1.RetryRunRequest) (*jobsv1.RetryRunResponse, error) {
	ref, err := s.named(ctx, r.GetName(), verbs.RetryRun)
	if err != nil {
		return nil, err
	}
	retried, err := s.Client.Runs.Retry(ctx, ref)
	if err != nil {
		return nil, err
	}
	response := &jobsv1.RetryRunResponse{}
	if receipt := retried.Receipt; receipt != nil {
		response.Sequence, response.Ahead, response.Duplicate = receipt.Sequence, int32(receipt.Ahead), receipt.Duplicate
		response.Queue = retried.Job.Queue()
	} else {
		response.RunName = refName(retried.Run)
	}
	if retried.ExistedBefore {
		response.ExistingStatus = enumOf[jobsv1.RunStatus](retried.Status)
	}
	return response, nil
}

// named is the run that a verb is to be done to. An iteration is none, and neither is a workflow
// that is no run of a job. Whether the verb applies to the run, the client finds out as it acts.
func (s *runService) named(ctx context.Context, name string, v *verbs.Verb) (client.RunRef, error) {
	named, err := readRunName(name)
	if err == nil && named.iteration > 0 {
		err = newError(connect.CodeFailedPrecondition, unsupported, "%s", verbs.About(name, v.WhyNot(verbs.Subject{Iteration: true})))
	}
	if err != nil {
		return client.RunRef{}, err
	}
	detail, err := jobRun(ctx, s.Client, named.RunRef)
	if err != nil {
		return client.RunRef{}, err
	}
	return detail.RunRef, nil
}

// CancelRun implements the service.
func (s *runService) CancelRun(ctx context.Context, r *jobsv1.CancelRunRequest) (*jobsv1.CancelRunResponse, error) {
	ref, err := s.named(ctx, r.GetName(), verbs.CancelRun)
	if err != nil {
		return nil, err
	}
	return &jobsv1.CancelRunResponse{}, s.Client.Runs.Cancel(ctx, ref, reasonOr(ctx, r.GetReason()))
}

// TerminateRun implements the service.
func (s *runService) TerminateRun(ctx context.Context, r *jobsv1.TerminateRunRequest) (*jobsv1.TerminateRunResponse, error) {
	ref, err := s.named(ctx, r.GetName(), verbs.TerminateRun)
	if err != nil {
		return nil, err
	}
	return &jobsv1.TerminateRunResponse{}, s.Client.Runs.Terminate(ctx, ref, reasonOr(ctx, r.GetReason()))
}
