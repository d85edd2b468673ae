package cli_test

import (
	"context"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectinprocess"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/page"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
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
	plan  *jobsv1.Plan
	drift *jobsv1.GetDriftResponse
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
	}
}

// The status page shows a plan and drift in the words of the command line.
func TestThePageShowsPlansAsTheCommandLineDoes(t *testing.T) {
	t.Parallel()
	told := &toldJobSets{plan: samplePlan(), drift: sampleDrift()}
	server := connect.NewServer()
	jobsv1connect.RegisterJobSetServiceHandler(server, told)
	shown := httptest.NewServer(page.New(page.Config{
		API:      &api.Clients{JobSets: jobsv1connect.NewJobSetServiceClient(connect.NewClient(connectinprocess.New(server)))},
		Declared: func(context.Context) (*jobsv1.JobSet, error) { return &jobsv1.JobSet{}, nil },
	}))
	t.Cleanup(shown.Close)
	text := planPage(t, shown.URL)

	program := still(plain)
	program.Location = time.UTC
	var plan, drift strings.Builder
	require.NoError(t, program.WritePlan(&plan, told.plan))
	require.NoError(t, program.WriteDrift(&drift, told.drift))
	require.Contains(t, text, ">"+plan.String()+"</pre>")
	require.Contains(t, text, ">"+drift.String()+"</pre>")
	require.Contains(t, drift.String(), "~ take_steps.b  recurring  paused: vendor is down\n")
}
