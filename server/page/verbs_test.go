package page_test

import (
	"context"
	"encoding/json"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectinprocess"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/server/page"
	"github.com/dendrascience/dendra-jobs/verbs"
	"github.com/dendrascience/dendra-jobs/verbs/verbstest"
)

// toldJobs, toldRuns and toldQueues serve one job, run and queue in the states that a test sets:
// there are more than a test can bring about in time.
type (
	toldJobs struct {
		jobsv1connect.UnimplementedJobServiceHandler
		is *jobsv1.Job
	}
	toldRuns struct {
		jobsv1connect.UnimplementedRunServiceHandler
		is *jobsv1.Run
		// pages are those of a list.
		pages   [][]*jobsv1.Run
		mu      sync.Mutex
		retried []string
	}
	toldQueues struct {
		jobsv1connect.UnimplementedQueueServiceHandler
		is *jobsv1.Queue
	}
)

func (s *toldJobs) GetJob(context.Context, *jobsv1.GetJobRequest) (*jobsv1.GetJobResponse, error) {
	return &jobsv1.GetJobResponse{Job: s.is}, nil
}

func (s *toldRuns) GetRun(context.Context, *jobsv1.GetRunRequest) (*jobsv1.GetRunResponse, error) {
	return &jobsv1.GetRunResponse{Run: s.is}, nil
}

func (s *toldRuns) ListRuns(_ context.Context, r *jobsv1.ListRunsRequest) (*jobsv1.ListRunsResponse, error) {
	at := len(r.GetPageToken())
	if at >= len(s.pages) {
		return &jobsv1.ListRunsResponse{}, nil
	}
	response := &jobsv1.ListRunsResponse{Runs: s.pages[at]}
	if at+1 < len(s.pages) {
		response.NextPageToken = strings.Repeat("n", at+1)
	}
	return response, nil
}

func (s *toldRuns) RetryRun(_ context.Context, r *jobsv1.RetryRunRequest) (*jobsv1.RetryRunResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retried = append(s.retried, r.GetName())
	return &jobsv1.RetryRunResponse{}, nil
}

func (s *toldQueues) GetQueue(context.Context, *jobsv1.GetQueueRequest) (*jobsv1.GetQueueResponse, error) {
	return &jobsv1.GetQueueResponse{Queue: s.is}, nil
}

// toldStates are the servers of states, with their clients.
type toldStates struct {
	overview *toldOverview
	jobs     *toldJobs
	runs     *toldRuns
	queues   *toldQueues
	clients  *api.Clients
}

func tellStates() *toldStates {
	s := &toldStates{&toldOverview{changed: make(chan struct{}), is: &jobsv1.Overview{Revision: 1}}, &toldJobs{}, &toldRuns{}, &toldQueues{}, nil}
	server := connect.NewServer()
	jobsv1connect.RegisterOverviewServiceHandler(server, s.overview)
	jobsv1connect.RegisterJobServiceHandler(server, s.jobs)
	jobsv1connect.RegisterRunServiceHandler(server, s.runs)
	jobsv1connect.RegisterQueueServiceHandler(server, s.queues)
	c := connect.NewClient(connectinprocess.New(server))
	s.clients = &api.Clients{
		Calls: c, Overview: jobsv1connect.NewOverviewServiceClient(c), Jobs: jobsv1connect.NewJobServiceClient(c),
		Runs: jobsv1connect.NewRunServiceClient(c), Queues: jobsv1connect.NewQueueServiceClient(c), Changes: jobsv1connect.NewChangeServiceClient(c),
	}
	return s
}

// A button is there exactly where the list says that its verb applies, for who may press it.
func TestAButtonIsThereWhereItsVerbApplies(t *testing.T) {
	t.Parallel()
	told := tellStates()
	overview := told.overview
	forms := regexp.MustCompile(`action="/do/([a-z-]+)"|class="button" href="[^"]*#([a-z-]+)"`)
	for _, role := range []verbs.Role{verbs.RoleViewer, verbs.RoleOperator, verbs.RoleAdmin} {
		s := stacktest.Serve(t, page.New(page.Config{API: told.clients, Role: func(*http.Request) verbs.Role { return role }}))
		shows := func(path string, table []*verbs.Verb, is verbstest.State) {
			t.Helper()
			got := map[string]bool{}
			for _, found := range forms.FindAllStringSubmatch(string(getPlain(t, s+path)), -1) {
				got[found[1]+found[2]] = true
			}
			for _, v := range table {
				applies := path == "/" || is.Applies(v) // An alert offers what helps, so its verbs apply.
				require.Equal(t, applies && v.Role <= role && v.Label != "", got[v.Name], "%s for a %s: %s", v.Name, role, is.Name)
				delete(got, v.Name)
			}
			require.Equal(t, verbs.CreateSilence.Role <= role, got[verbs.CreateSilence.Name], "the dialog of all views")
			delete(got, verbs.CreateSilence.Name)
			require.Empty(t, got, is.Name)
		}
		var actions []*verbs.Verb
		overview.is.Alerts = nil
		for number := range jobsv1.AlertAction_name {
			action := jobsv1.AlertAction(number)
			overview.is.Alerts = append(overview.is.Alerts, &jobsv1.Alert{Object: "a.b", Actions: []jobsv1.AlertAction{action}})
			if v := verbs.OfAction(action); v != nil {
				actions = append(actions, v)
			}
		}
		shows("/", actions, verbstest.State{})
		for _, state := range verbstest.Jobs(t) {
			told.jobs.is = state.Job
			shows("/jobs/"+state.Job.GetId(), verbs.JobVerbs(), state)
		}
		for _, state := range verbstest.Runs(t) {
			told.runs.is = state.Run
			shows("/runs/"+url.PathEscape(state.Run.GetName()), verbs.RunVerbs(), state)
		}
		for _, state := range verbstest.Queues(t) {
			told.queues.is = state.Queue
			shows("/queues/"+state.Queue.GetName(), verbs.QueueVerbs(), state)
		}
		overview.is.Alerts = nil
		for _, state := range verbstest.Loads(t) {
			overview.is.Loads = []*jobsv1.Load{state.Load}
			shows("/loads", verbs.LoadVerbs(), state)
		}
	}
}

// posts posts a form of the page, as its script does.
func posts(t *testing.T, url string, values url.Values) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(values.Encode()))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(text)
}

// A verb for many jobs is done to those to which it applies, and to the run that a retry means.
func TestABulkActionIsDoneWhereItsVerbApplies(t *testing.T) {
	t.Parallel()
	told := tellStates()
	for _, state := range verbstest.Jobs(t) {
		told.overview.is.Jobs = append(told.overview.is.Jobs, state.Overview)
	}
	var complaints strings.Builder
	server := httptest.NewUnstartedServer(page.New(page.Config{API: told.clients}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(&complaints, nil), slog.LevelError)
	server.Start()
	t.Cleanup(server.Close)
	s := server.URL
	for _, v := range verbs.ManyJobsVerbs() {
		require.Contains(t, string(getPlain(t, s+"/")), `name="verb" value="`+v.Name+`"`)
		if v.Kind != verbs.KindJob {
			continue
		}
		n := 0
		for _, state := range verbstest.Jobs(t) {
			if state.AppliesAmong(v) {
				n++
			}
		}
		require.Contains(t, posts(t, s+"/bulk", url.Values{"verb": {v.Name}, "items": {"show"}}), v.AskMany(n), v.Name)
	}

	run := func(name string, status jobsv1.RunStatus) *jobsv1.Run {
		return &jobsv1.Run{Name: "job/a.b@" + name, JobId: "a.b", Status: status}
	}
	held := run("held", jobsv1.RunStatus_RUN_STATUS_HELD_BACK)
	told.overview.is.Jobs = []*jobsv1.JobOverview{{Id: "a.b", Mode: verbs.Recurring, Outcomes: "FHH", LatestRunStatus: jobsv1.RunStatus_RUN_STATUS_FAILED}}
	retry := func(pages ...[]*jobsv1.Run) string {
		told.runs.pages = pages
		asked := posts(t, s+"/bulk", url.Values{"verb": {"retry-run"}})
		mark := regexp.MustCompile(`"chosen","Value":"([^"]+)"`).FindStringSubmatch(asked)
		require.Len(t, mark, 2, asked)
		return posts(t, s+"/bulk", url.Values{"verb": {"retry-run"}, "confirmed": {"yes"}, "chosen": {mark[1]}})
	}
	retry([]*jobsv1.Run{held, held}, []*jobsv1.Run{held, run("failed", jobsv1.RunStatus_RUN_STATUS_FAILED)})
	require.Equal(t, []string{"job/a.b@failed"}, told.runs.retried, "it is on another page")
	require.Contains(t, retry([]*jobsv1.Run{run("good", jobsv1.RunStatus_RUN_STATUS_COMPLETED), run("failed", jobsv1.RunStatus_RUN_STATUS_FAILED)}),
		"its latest run is not retried: it did not fail")
	require.Len(t, told.runs.retried, 1)
	server.Close()
	require.Empty(t, complaints.String(), "the status is sent once")
}

// A verb whose reason is shown is asked about, with a field for it, unless the form has one. Every
// other one is if people ask for it.
func TestThePageAsksWhy(t *testing.T) {
	t.Parallel()
	told := tellStates()
	s := stacktest.Serve(t, page.New(page.Config{API: told.clients}))
	for _, v := range verbs.All() {
		if v.Label == "" || v.Times || !v.TakesReason() {
			continue
		}
		form := url.Values{"name": {"a.b"}}
		if !v.ReasonShown {
			form.Set("why", "ask")
		}
		asked := posts(t, s+"/do/"+v.Name, form)
		require.Contains(t, asked, `"ask":true,"reason":true`, v.Name)
		require.NotContains(t, asked, `"Name":"why"`, v.Name)
		require.Equal(t, v.TakesDuration(), strings.Contains(asked, `"Value":"PT15M"`), v.Name)
		form = url.Values{"name": {"a.b"}, "reason": {""}, "confirmed": {"yes"}}
		require.NotContains(t, posts(t, s+"/do/"+v.Name, form), `"ask":true`, v.Name)
	}
}

// The script has the letters of the table.
func TestThePageHasTheLettersOfTheTable(t *testing.T) {
	t.Parallel()
	s := stacktest.Serve(t, page.New(page.Config{API: tellStates().clients}))
	found := regexp.MustCompile(`data-letters="([^"]*)"`).FindSubmatch(getPlain(t, s+"/"))
	require.Len(t, found, 2)
	var letters []verbs.Outcome
	require.NoError(t, json.Unmarshal([]byte(html.UnescapeString(string(found[1]))), &letters))
	require.Equal(t, verbs.Outcomes(), letters)
}
