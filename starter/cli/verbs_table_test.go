package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/starter/cli"
	"github.com/dendrascience/dendra-jobs/verbs"
	"github.com/dendrascience/dendra-jobs/verbs/verbstest"
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
	told, jobs, runs := &toldLists{}, []verbstest.State{}, []verbstest.State{}
	for _, state := range verbstest.Jobs(t) {
		jobs, told.jobs = append(jobs, state), append(told.jobs, state.Job)
	}
	for _, state := range verbstest.Runs(t) {
		if state.Run.GetIteration() == 0 { // The commands take no iterations.
			runs, told.runService.runs = append(runs, state), append(told.runService.runs, state.Run)
		}
	}
	// Of a job, the latest run that tells how it does decides.
	var again string
	for _, status := range []jobsv1.RunStatus{jobsv1.RunStatus_RUN_STATUS_COMPLETED, jobsv1.RunStatus_RUN_STATUS_HELD_BACK} {
		id := "take_steps.failed-before-" + strings.ToLower(status.String())
		latest := &jobsv1.Run{Name: "job/" + id + "@2", JobId: id, Status: status}
		failed := &jobsv1.Run{Name: "job/" + id + "@1", JobId: id, Status: jobsv1.RunStatus_RUN_STATUS_FAILED}
		told.runService.runs = append(told.runService.runs, latest, failed)
		again = failed.GetName() // of the last
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
	s := stacktest.Serve(t, mux)
	c := console{env: map[string]string{cli.EnvServer: s}}
	for _, v := range append(verbs.ManyJobsVerbs(), verbs.CancelRun, verbs.TerminateRun) {
		var want []string
		for _, state := range append(jobs, runs...) {
			if state.Job != nil && v.Kind == verbs.KindJob && state.AppliesAmong(v) {
				want = append(want, state.Job.GetId())
			} else if state.Run != nil && v.Kind == verbs.KindRun && state.AppliesAmong(v) {
				want = append(want, state.Run.GetName())
			}
		}
		if v == verbs.RetryRun {
			want = append(want, again)
		}
		r := c.run(t.Context(), append(strings.Fields(v.Command), "--type", "TakeSteps", "--yes")...)
		got := slices.Compact(slices.Sorted(slices.Values(asked[v.Procedure])))
		require.Equal(t, slices.Sorted(slices.Values(want)), got, "%s: %s", v.Command, r.stderr)
	}
}

// Every command that the table names is there, asks where its verb asks, and takes a reason where
// its verb takes one.
func TestCommandsOfTheTableAreThere(t *testing.T) {
	t.Parallel()
	var c console
	for _, v := range verbs.All() {
		if v.Command == "" {
			continue
		}
		help := c.ok(t, append(strings.Fields(v.Command), "--help")...)
		require.Contains(t, help, "starter "+v.Command, v.Name)
		require.Equal(t, v.TakesReason() || v == verbs.CreateSilence, strings.Contains(help, "--reason"), v.Name)
		if v.Asks() {
			require.Contains(t, help, "--yes", v.Name)
		}
	}
	for _, v := range []*verbs.Verb{verbs.StopJob, verbs.DrainQueue, verbs.SkipFailedItem} {
		r := c.run(t.Context(), append(strings.Fields(v.Command), "a.b")...)
		require.Equal(t, 1, r.code)
		require.Contains(t, r.stderr, "there is no terminal to ask on: add --yes to ", v.Name)
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
