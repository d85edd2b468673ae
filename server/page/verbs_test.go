package page_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectinprocess"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/server/page"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// toldStates serves one job, run and queue in the states that a test sets: there are more than
// a test can bring about in time.
type (
	toldJobs struct {
		jobsv1connect.UnimplementedJobServiceHandler
		is *jobsv1.Job
	}
	toldRuns struct {
		jobsv1connect.UnimplementedRunServiceHandler
		is *jobsv1.Run
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

func (s *toldQueues) GetQueue(context.Context, *jobsv1.GetQueueRequest) (*jobsv1.GetQueueResponse, error) {
	return &jobsv1.GetQueueResponse{Queue: s.is}, nil
}

// A button is there exactly where the table says that its verb applies, for who may press it.
func TestAButtonIsThereWhereItsVerbApplies(t *testing.T) {
	t.Parallel()
	jobs, runs, queues := &toldJobs{}, &toldRuns{}, &toldQueues{}
	overview := &toldOverview{changed: make(chan struct{}), is: &jobsv1.Overview{Revision: 1}}
	server := connect.NewServer()
	jobsv1connect.RegisterOverviewServiceHandler(server, overview)
	jobsv1connect.RegisterJobServiceHandler(server, jobs)
	jobsv1connect.RegisterRunServiceHandler(server, runs)
	jobsv1connect.RegisterQueueServiceHandler(server, queues)
	c := connect.NewClient(connectinprocess.New(server))
	clients := &api.Clients{
		Overview: jobsv1connect.NewOverviewServiceClient(c), Jobs: jobsv1connect.NewJobServiceClient(c),
		Runs: jobsv1connect.NewRunServiceClient(c), Queues: jobsv1connect.NewQueueServiceClient(c),
	}
	forms := regexp.MustCompile(`action="/do/([a-z-]+)"|class="button" href="[^"]*#([a-z-]+)"`)
	for _, role := range []verbs.Role{verbs.RoleViewer, verbs.RoleOperator, verbs.RoleAdmin} {
		s := httptest.NewServer(page.New(page.Config{API: clients, Role: func(*http.Request) verbs.Role { return role }}))
		t.Cleanup(s.Close)
		shows := func(path string, table []*verbs.Verb, of verbs.Subject) {
			t.Helper()
			got := map[string]bool{}
			for _, found := range forms.FindAllStringSubmatch(string(getPlain(t, s.URL+path)), -1) {
				got[found[1]+found[2]] = true
			}
			for _, v := range table {
				applies := path == "/" || v.Applies(of) // An alert offers what helps, so its verbs apply.
				require.Equal(t, applies && v.Role <= role && v.Label != "", got[v.Name], "%s for a %s: %+v", v.Name, role, of)
				delete(got, v.Name)
			}
			require.Empty(t, got, "%+v", of)
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
		shows("/", actions, verbs.Subject{})
		for number := range jobsv1.JobStatus_name {
			for _, j := range []*jobsv1.Job{
				{Mode: &jobsv1.Job_OneShot{}}, {Mode: &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{}}},
				{Mode: &jobsv1.Job_Continuous{Continuous: &jobsv1.Continuous{}}}, {Mode: &jobsv1.Job_Queued{Queued: &jobsv1.Queued{}}},
			} {
				j.Id, j.State = "a.b", &jobsv1.JobState{Status: jobsv1.JobStatus(number)}
				jobs.is = j
				shows("/jobs/a.b", verbs.JobVerbs(), verbs.OfJob(j))
			}
		}
		for number := range jobsv1.RunStatus_name {
			for iteration := range int64(2) {
				runs.is = &jobsv1.Run{Name: "job/a.b@1", JobId: "a.b", Status: jobsv1.RunStatus(number), Iteration: iteration}
				shows("/runs/"+url.PathEscape(runs.is.GetName()), verbs.RunVerbs(), verbs.OfRun(runs.is))
			}
		}
		for number := range jobsv1.QueueStatus_name {
			for waiting := range int32(2) {
				queues.is = &jobsv1.Queue{Name: "late", Status: jobsv1.QueueStatus(number), Waiting: waiting}
				shows("/queues/late", verbs.QueueVerbs(), verbs.OfQueue(queues.is))
			}
		}
	}
}
