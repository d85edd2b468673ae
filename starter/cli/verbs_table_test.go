package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/starter/cli"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// toldLists serves lists that a test sets: there are more states than it can bring about. What
// is asked for beyond lists is noted, and not done.
type toldLists struct {
	jobsv1connect.UnimplementedJobServiceHandler
	runService toldRuns
	jobs       []*jobsv1.Job
}

type toldRuns struct {
	jobsv1connect.UnimplementedRunServiceHandler
	runs []*jobsv1.Run
}

func (s *toldLists) ListJobs(context.Context, *jobsv1.ListJobsRequest) (*jobsv1.ListJobsResponse, error) {
	return &jobsv1.ListJobsResponse{Jobs: s.jobs}, nil
}

// ListRuns leaves out the runs with statuses that the filter leaves out.
func (s *toldRuns) ListRuns(_ context.Context, r *jobsv1.ListRunsRequest) (*jobsv1.ListRunsResponse, error) {
	response := &jobsv1.ListRunsResponse{}
	for _, run := range s.runs {
		word := strings.ToLower(strings.TrimPrefix(run.GetStatus().String(), "RUN_STATUS_"))
		if !strings.Contains(r.GetFilter(), fmt.Sprintf(`status != "%s"`, word)) {
			response.Runs = append(response.Runs, run)
		}
	}
	return response, nil
}

// A command with filters chooses what its verb applies to, as the table says.
func TestFiltersChooseWhatAVerbAppliesTo(t *testing.T) {
	t.Parallel()
	told := &toldLists{}
	for number := range int32(len(jobsv1.JobStatus_name)) {
		for mode, j := range map[string]*jobsv1.Job{
			"once": {Mode: &jobsv1.Job_OneShot{}}, "recurring": {Mode: &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{}}},
			"loop": {Mode: &jobsv1.Job_Continuous{Continuous: &jobsv1.Continuous{}}}, "queued": {Mode: &jobsv1.Job_Queued{Queued: &jobsv1.Queued{}}},
		} {
			j.Id, j.State = fmt.Sprintf("take_steps.%s-%d", mode, number), &jobsv1.JobState{Status: jobsv1.JobStatus(number)}
			told.jobs = append(told.jobs, j)
		}
	}
	for number := range int32(len(jobsv1.RunStatus_name)) {
		id := fmt.Sprintf("take_steps.run-%d", number)
		if number > 0 { // No run has none.
			told.runService.runs = append(told.runService.runs, &jobsv1.Run{Name: "job/" + id + "@1", JobId: id, Status: jobsv1.RunStatus(number)})
		}
	}
	var mu sync.Mutex
	asked := map[string][]string{}
	note := func(next connect.ServerFunc) connect.ServerFunc {
		return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
			return next(ctx, spec, &notedRequests{stream, func(request proto.Message) {
				fields := request.ProtoReflect().Descriptor().Fields()
				object := fields.ByName("id")
				if object == nil {
					object = fields.ByName("name")
				}
				if object != nil {
					mu.Lock()
					defer mu.Unlock()
					asked[spec.Procedure] = append(asked[spec.Procedure], request.ProtoReflect().Get(object).String())
				}
			}})
		}
	}
	server := connect.NewServer(note)
	jobsv1connect.RegisterJobServiceHandler(server, told)
	jobsv1connect.RegisterRunServiceHandler(server, &told.runService)
	mux := http.NewServeMux()
	connecthttp.Mount(mux, server)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	c := console{env: map[string]string{cli.EnvServer: s.URL}}
	for _, v := range []*verbs.Verb{
		verbs.RunJob, verbs.PauseJob, verbs.ResumeJob, verbs.StopJob, verbs.RestartJob, verbs.RetryRun, verbs.CancelRun, verbs.TerminateRun,
	} {
		var want []string
		if v.Kind == verbs.KindJob {
			for _, j := range told.jobs {
				if v.AppliesAmong(verbs.OfJob(j)) {
					want = append(want, j.GetId())
				}
			}
		} else {
			for _, run := range told.runService.runs {
				if v.AppliesAmong(verbs.OfRun(run)) {
					want = append(want, run.GetName())
				}
			}
		}
		r := c.run(t.Context(), append(strings.Fields(v.Command), "--type", "TakeSteps", "--yes")...)
		got := slices.Compact(slices.Sorted(slices.Values(asked[v.Procedure])))
		require.Equal(t, slices.Sorted(slices.Values(want)), got, "%s: %s", v.Command, r.stderr)
	}
}

// notedRequests is a stream whose requests are noted.
type notedRequests struct {
	connect.ServerStream
	note func(proto.Message)
}

func (s *notedRequests) Receive(message any) error {
	if err := s.ServerStream.Receive(message); err != nil {
		return err
	}
	if request, ok := message.(proto.Message); ok {
		s.note(request)
	}
	return nil
}
