package cli_test

import (
	"context"
	"html"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"connectrpc.com/connect/v2/connectinprocess"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/server/page"
)

// planPage is what the view of plan and drift has, as people read it.
func planPage(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/plan", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", text)
	return html.UnescapeString(string(text))
}

// toldJobSets has a plan and a drift with every kind of line.
type toldJobSets struct {
	jobsv1connect.UnimplementedJobSetServiceHandler
	plan    *jobsv1.Plan
	drift   *jobsv1.GetDriftResponse
	applied []*jobsv1.ApplyJobSetResponse
}

func (s *toldJobSets) ApplyJobSet(_ context.Context, _ *jobsv1.ApplyJobSetRequest, stream jobsv1connect.JobSetServiceApplyJobSetServerStream) error {
	for _, answer := range s.applied {
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
	return nil
}

func (s *toldJobSets) PlanJobSet(context.Context, *jobsv1.PlanJobSetRequest) (*jobsv1.PlanJobSetResponse, error) {
	return &jobsv1.PlanJobSetResponse{Plan: s.plan}, nil
}

func (s *toldJobSets) GetDrift(context.Context, *jobsv1.GetDriftRequest) (*jobsv1.GetDriftResponse, error) {
	return s.drift, nil
}

func sampleDrift() *jobsv1.GetDriftResponse {
	return &jobsv1.GetDriftResponse{
		Namespace: "default", Applied: 9, Foreign: []string{"schedule job/x"},
		Drifts: []*jobsv1.JobDrift{
			{JobId: "take_steps.a", Mode: "recurring", Kind: jobsv1.DriftKind_DRIFT_KIND_EDITED, Fields: []*jobsv1.FieldChange{{Path: "owner", NewValue: `"user:<b>"`}}},
			{JobId: "take_steps.b", Mode: "recurring", Kind: jobsv1.DriftKind_DRIFT_KIND_PAUSED, Note: "vendor\nis down"},
			{JobId: "take_steps.c", Mode: "recurring", Kind: jobsv1.DriftKind_DRIFT_KIND_RESUMED},
			{JobId: "take_steps.d", Mode: "recurring", Kind: jobsv1.DriftKind_DRIFT_KIND_DELETED},
			{JobId: "take_steps.e", Mode: "continuous", Kind: jobsv1.DriftKind_DRIFT_KIND_STOPPED, Note: "completed"},
		},
		Failing: []*jobsv1.JobDrift{{JobId: "take_steps.f", Mode: "continuous", Note: "3 failures"}},
		Unread:  []*jobsv1.JobDrift{{JobId: "take_steps.g", Mode: "recurring", Note: "the server is busy"}},
	}
}

// The status page shows a plan and drift in the words of the command line.
func TestThePageShowsPlansAsTheCommandLineDoes(t *testing.T) {
	t.Parallel()
	told := &toldJobSets{plan: samplePlan(), drift: sampleDrift()}
	server := connect.NewServer()
	jobsv1connect.RegisterJobSetServiceHandler(server, told)
	shown := stacktest.Serve(t, page.New(page.Config{
		API:      &api.Clients{JobSets: jobsv1connect.NewJobSetServiceClient(connect.NewClient(connectinprocess.New(server)))},
		Declared: func(context.Context) (*jobsv1.JobSet, error) { return &jobsv1.JobSet{}, nil },
	}))
	text := planPage(t, shown)

	program := still(plain)
	program.Location = time.UTC
	var plan, drift strings.Builder
	require.NoError(t, program.WritePlan(&plan, told.plan))
	require.NoError(t, program.WriteDrift(&drift, told.drift))
	require.Contains(t, text, ">"+plan.String()+"</pre>")
	require.Contains(t, text, ">"+drift.String()+"</pre>")
	require.Contains(t, drift.String(), "~ take_steps.b  recurring  paused: vendor is down\n")
	require.Contains(t, drift.String(), "! take_steps.g  recurring  could not be read: the server is busy\n")
	require.Contains(t, drift.String(), "5 jobs have drifted, 1 resource is unmanaged, 1 job could not be read, of 9 applied.\n")
}

// Plan, drift and apply name a job that could not be read, and do not end as if all were well.
func TestAJobThatCouldNotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	const busy = "schedule of job take_steps.b: the server is busy"
	change := func(action jobsv1.JobAction, id, failed string) *jobsv1.JobChange {
		c := &jobsv1.JobChange{Action: action, JobId: id, Mode: "recurring", ErrorMessage: failed}
		if failed != "" {
			c.Note = "could not be read: " + failed
		}
		return c
	}
	created := change(jobsv1.JobAction_JOB_ACTION_CREATE, "take_steps.a", "")
	unread := change(jobsv1.JobAction_JOB_ACTION_BLOCKED, "take_steps.b", busy)
	told := &toldJobSets{
		drift: &jobsv1.GetDriftResponse{Applied: 2, Unread: []*jobsv1.JobDrift{{JobId: "take_steps.b", Mode: "recurring", Note: busy}}},
		plan:  &jobsv1.Plan{Changes: []*jobsv1.JobChange{created, unread}},
		applied: []*jobsv1.ApplyJobSetResponse{
			{Change: change(jobsv1.JobAction_JOB_ACTION_BLOCKED, "take_steps.c", busy)}, // By then it is another.
			{Change: created, Done: 1, Total: 1},
		},
	}
	server := connect.NewServer()
	jobsv1connect.RegisterJobSetServiceHandler(server, told)
	mux := http.NewServeMux()
	connecthttp.Mount(mux, server)
	served := stacktest.Serve(t, mux)
	c := console{env: map[string]string{"DENDRA_SERVER": served}}
	file := writeFile(t, "jobs.toml", "[jobs.take_steps.a]\nspec = { steps = 1 }\none_shot = {}\n")
	saved := filepath.Join(t.TempDir(), "plan")

	const end = "starter: 1 job could not be read, since Temporal is busy: try again\n"
	r := c.run(t.Context(), "plan", "-f", file, "--out", saved)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stdout, "! take_steps.b  recurring  could not be read: "+busy+"\n")
	require.Equal(t, end, r.stderr)
	require.NoFileExists(t, saved)
	r = c.run(t.Context(), "drift")
	require.Equal(t, 1, r.code)
	require.Equal(t, end, r.stderr)
	r = c.run(t.Context(), "apply", "-f", file, "--yes")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stdout, "Applied: 1 created, 0 updated, 0 deleted in ")
	require.Equal(t, "left alone: job take_steps.c could not be read: "+busy+"\n[1/1] created take_steps.a\n"+end, r.stderr)
	told.plan.Changes = told.plan.Changes[1:]
	r = c.run(t.Context(), "apply", "-f", file, "--yes")
	require.Equal(t, 1, r.code)
	require.Equal(t, end, r.stderr)
}
