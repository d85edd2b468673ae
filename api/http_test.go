package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"github.com/stretchr/testify/require"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// post sends JSON, as curl would, and gives the status and the answer.
func (w *world) post(t *testing.T, method, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/dendra.jobs.v1."+method, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	return answer(t, request)
}

// get sends a request in the URL, as curl would.
func (w *world) get(t *testing.T, method, message string) (int, string) {
	t.Helper()
	query := url.Values{"encoding": {"json"}, "message": {message}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/dendra.jobs.v1."+method+"?"+query.Encode(), nil)
	require.NoError(t, err)
	return answer(t, request)
}

func answer(t *testing.T, request *http.Request) (int, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// plainHTTP calls the API as people do with curl.
func plainHTTP(t *testing.T, w *world) {
	const daily = `{"job":{"id":"take_steps.curl","spec":{"steps":1},"recurring":{"cron":"0 6 * * *"}}}`
	for _, c := range []struct {
		verb, method, body string
		status             int
		want               []string // parts of the answer
	}{
		{"POST", "JobService/CreateJob", daily, 200, []string{`"id":"take_steps.curl"`, `"action":"JOB_ACTION_CREATE"`, `"etag":"`}},
		{"POST", "JobService/CreateJob", daily, 409, []string{`"code":"already_exists"`, `"reason":"ALREADY_EXISTS"`, `"domain":"jobs.dendra.science"`}},
		{"GET", "JobService/GetJob", `{"id":"take_steps.curl"}`, 200, []string{`"spec":{"steps":1}`, `"runTimeout":"3600s"`, `"status":"JOB_STATUS_SCHEDULED"`}},
		{"POST", "JobService/GetJob", `{"id":"take_steps.curl"}`, 200, []string{`"provider":"api"`}},
		{"GET", "JobService/ListJobs", `{"filter":"id = take_steps.curl","pageSize":1}`, 200, []string{`{`}},
		{"GET", "JobService/PauseJob", `{"id":"take_steps.curl"}`, 405, nil},
		{"POST", "JobService/PauseJob", `{"id":"take_steps.curl"}`, 200, []string{`{}`}},
		{"POST", "JobService/DeleteJob", `{"id":"take_steps.curl"}`, 200, []string{`"action":"JOB_ACTION_DELETE"`}},
		{"POST", "JobService/GetJob", `{"id":"take_steps.curl"}`, 404, []string{`"reason":"NOT_FOUND"`, `job take_steps.curl: not found`}},
		{"POST", "JobService/CreateJob", `{"job":{"id":"take_steps.x","spec":{"steps":"two","stepz":1},"recurring":{"cron":"61 * * * *","recurEvery":"-5s"}}}`, 400,
			[]string{`"reason":"INVALID_REQUEST"`, `job.spec.steps: `, `job.recurring.recur_every: the duration is negative`, `"field":"job.spec.stepz"`}},
		{"POST", "JobService/CreateJob", `{"job":{"id":"../../etc/passwd","oneShot":{}}}`, 400, []string{`"reason":"INVALID_REQUEST"`, `"field":"job.id"`, `"buf.validate.Violations"`}},
		{"POST", "JobService/CreateJob", `{"job":{"id":"take_step.x","spec":{"steps":1},"oneShot":{}}}`, 400, []string{`unknown job type \"take_step\"`, `did you mean`}},
		{"POST", "JobService/CreateJob", `{"job":{"id":"only_recurring.x","spec":{"steps":1},"oneShot":{}}}`, 400, []string{`cannot run in mode one-shot`}},
		{"POST", "JobService/CreateJob", `{"job":{"id":"take_steps.x","spec":{"steps":1}}}`, 400, []string{`"reason":"INVALID_REQUEST"`, `no mode is set`}},
		{"POST", "JobService/CreateJob", `{"job":`, 400, []string{`"code":"invalid_argument"`, `"reason":"INVALID_REQUEST"`}},
		{"POST", "JobService/CreateJob", `{"nothing":1}`, 400, []string{`"reason":"INVALID_REQUEST"`, `nothing`}},
		{"POST", "JobService/CreateJob", `{"job":{"id":"take_steps.iso","spec":{"steps":1},"recurring":{"recurEvery":"P1DT1M","jitter":"1.5s"}},"validateOnly":true}`, 200,
			[]string{`"recurEvery":"86460s"`, `"jitter":"1.500s"`, `"steps":1`}},
		{"POST", "JobService/CreateJob", `{"job":{"id":"take_steps.iso","recurring":{"recurEvery":"1m"}}}`, 400, []string{`job.recurring.recurEvery: \"1m\" is not a duration: write it as PT1M or 60s`}},
		{"POST", "JobService/CreateJob", `{"job":{"id":"Take Steps","spec":{"steps":1},"oneShot":{}}}`, 400, []string{`job.id: it is the job type in snake case, a dot, and`}},
		{"GET", "RunService/GetRun", `{"name":"a b"}`, 400, []string{`name: it has 1 to 512 characters of ASCII, without spaces`}},
		{"POST", "NoService/GetIt", `{}`, 501, []string{`"code":"unimplemented"`, `"reason":"UNKNOWN_METHOD"`, `there is no method /dendra.jobs.v1.NoService/GetIt`}},
		{"GET", "NoService/GetIt", `{}`, 501, []string{`"reason":"UNKNOWN_METHOD"`}},
		{"POST", "JobService/NoSuchMethod", `{}`, 501, []string{`"reason":"UNKNOWN_METHOD"`}},
		{"GET", "WorkerService/ListWorkers", `{}`, 200, []string{`"status":"WORKER_STATUS_SERVING"`, `"lastSeenTime":"20`}},
		{"GET", "RunService/ListRuns", `{"filter":"status = COMPLETED AND nothing = 1"}`, 400, []string{`"reason":"INVALID_FILTER"`, `"field":"filter"`}},
		{"GET", "RunService/ListRuns", `{"pageToken":"e30"}`, 400, []string{`"reason":"INVALID_PAGE_TOKEN"`}},
		{"GET", "RunService/ListRuns", `{"pageToken":"` + api.RunToken("forged") + `"}`, 400, []string{`"reason":"INVALID_PAGE_TOKEN"`}},
		{"GET", "RunService/ListRuns", `{"pageToken":"` + api.RunToken(`{"CloseTime":5}`) + `"}`, 400, []string{`"reason":"INVALID_PAGE_TOKEN"`}},
		{"GET", "QueueService/GetQueue", `{"name":"no-such-queue"}`, 404, []string{`"reason":"NOT_FOUND"`}},
		{"GET", "JobSetService/GetDrift", `{"provider":"nobody"}`, 200, []string{`"namespace":"`}},
	} {
		call := w.post
		if c.verb == "GET" {
			call = w.get
		}
		status, text := call(t, c.method, c.body)
		require.Equal(t, c.status, status, "%s %s %s: %s", c.verb, c.method, c.body, text)
		compact := text
		if json.Valid([]byte(text)) {
			var b bytes.Buffer
			require.NoError(t, json.Compact(&b, []byte(text)))
			compact = b.String()
		}
		for _, part := range c.want {
			require.Contains(t, compact, part, "%s %s %s", c.verb, c.method, c.body)
		}
	}
}

// health checks by gRPC, and as a load balancer does that knows only HTTP.
func health(t *testing.T, w *world) {
	c := connect.NewClient(connecthttp.NewTransport(http2(), w.url, connecthttp.WithGRPC()))
	spec := connect.Spec{StreamType: connect.StreamTypeUnary, Procedure: "/grpc.health.v1.Health/Check"}
	for service, want := range map[string]connect.Code{"": 0, "dendra.jobs.v1.JobService": 0, "nobody.v1.Service": connect.CodeNotFound} {
		var response healthpb.HealthCheckResponse
		err := c.CallUnary(t.Context(), spec, &healthpb.HealthCheckRequest{Service: service}, &response)
		if want != 0 {
			requireError(t, err, want, jobsv1.ErrorReason_ERROR_REASON_NOT_FOUND)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, healthpb.HealthCheckResponse_SERVING, response.GetStatus())
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/grpc.health.v1.Health/Check?encoding=json&message=%7B%7D", nil)
	require.NoError(t, err)
	status, text := answer(t, request)
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"status":"SERVING"}`, text)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch := connect.Spec{StreamType: connect.StreamTypeServer, Procedure: "/grpc.health.v1.Health/Watch"}
	stream, err := c.CallServerStream(ctx, watch, &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	var response healthpb.HealthCheckResponse
	require.NoError(t, stream.Receive(&response))
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, response.GetStatus())
	cancel()
	require.Error(t, stream.Receive(&response))
}

// abuse sends what no client should.
func abuse(t *testing.T, w *world) {
	invalid := jobsv1.ErrorReason_ERROR_REASON_INVALID_REQUEST
	status, text := w.post(t, "JobService/CreateJob", `{"job":{"id":"take_steps.x","spec":{"steps":1,"gate":"`+strings.Repeat("x", 10<<20)+`"},"oneShot":{}}}`)
	require.Equal(t, 429, status)
	require.Contains(t, text, `"TOO_LARGE"`)
	require.Less(t, len(text), 2000)
	status, text = w.post(t, "JobService/GetJob", "{\"id\":\"a\xff\xfe.b\"}")
	require.Equal(t, 400, status)
	require.Contains(t, text, `"INVALID_REQUEST"`)

	c := w.transports()["protobuf"]
	_, err := c.Jobs.CreateJob(t.Context(), &jobsv1.CreateJobRequest{Job: &jobsv1.Job{
		Id: "take_steps.big", Spec: spec(t, map[string]any{"steps": 1, "gate": strings.Repeat("x", 64<<10)}), Mode: &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}},
	}})
	requireError(t, err, connect.CodeInvalidArgument, invalid)
	require.NotEmpty(t, api.ViolationsOf(err))

	// Complaints are bounded, and lists that are too long are not looked through.
	for _, wrong := range []*jobsv1.Job{{}, {Id: "stake_teps.a", Mode: &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}}} {
		_, err = c.JobSets.PlanJobSet(t.Context(), &jobsv1.PlanJobSetRequest{JobSet: &jobsv1.JobSet{Jobs: slices.Repeat([]*jobsv1.Job{wrong}, 500)}})
		requireError(t, err, connect.CodeInvalidArgument, invalid)
		require.Len(t, api.ViolationsOf(err), 20)
		require.Contains(t, err.Error(), "; and at least 1")
		_, err = c.JobSets.PlanJobSet(t.Context(), &jobsv1.PlanJobSetRequest{JobSet: &jobsv1.JobSet{Jobs: slices.Repeat([]*jobsv1.Job{wrong}, 20_001)}})
		requireError(t, err, connect.CodeInvalidArgument, invalid)
		require.Len(t, api.ViolationsOf(err), 1)
		require.Equal(t, "job_set.jobs", api.ViolationsOf(err)[0].GetField())
	}
	good := steps(t, "take_steps.good")
	good.Mode = &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}
	few := append(slices.Repeat([]*jobsv1.Job{good}, 400), &jobsv1.Job{Id: "x"}, &jobsv1.Job{Id: "y"})
	_, err = c.JobSets.PlanJobSet(t.Context(), &jobsv1.PlanJobSetRequest{JobSet: &jobsv1.JobSet{Jobs: few}})
	require.Equal(t, []string{"job_set.jobs[400].id", "job_set.jobs[401].id"}, []string{api.ViolationsOf(err)[0].GetField(), api.ViolationsOf(err)[1].GetField()})
	deep := any("x")
	for range 300 {
		deep = []any{deep}
	}
	many := make([]any, 100_000)
	for _, spoiled := range []map[string]any{{"gate": deep}, {"gate": many}} {
		_, err = c.Jobs.CreateJob(t.Context(), &jobsv1.CreateJobRequest{Job: &jobsv1.Job{Id: "take_steps.spoiled", Spec: spec(t, spoiled)}})
		requireError(t, err, connect.CodeInvalidArgument, invalid)
	}
	large := steps(t, "take_steps.large", "gate", strings.Repeat("x", 600<<10))
	compressed := w.over(&http.Client{}, connecthttp.WithSendCompression("gzip"))
	_, err = compressed.Jobs.CreateJob(t.Context(), &jobsv1.CreateJobRequest{Job: large})
	requireError(t, err, connect.CodeResourceExhausted, jobsv1.ErrorReason_ERROR_REASON_TOO_LARGE)
	require.ErrorContains(t, err, "send it as it is")

	// What would be another query, were filters passed on.
	_, err = w.client.Runs.Start(t.Context(), oneShotJob("take_steps.not-yours"), contract.StartedByHand)
	require.NoError(t, err)
	for _, filter := range []string{
		`job_id = "x' OR JobId = 'take_steps.not-yours"`, `owner = "x' OR 1=1 --"`, `queue = "\\' OR WorkflowType = 'RunJob"`, `type = "\\"`, `tags."' OR '" = "x"`,
	} {
		found, err := c.Runs.ListRuns(t.Context(), &jobsv1.ListRunsRequest{Filter: filter})
		require.NoError(t, err, filter)
		require.Empty(t, found.GetRuns(), filter)
		jobs, err := c.Jobs.ListJobs(t.Context(), &jobsv1.ListJobsRequest{Filter: strings.Replace(filter, "job_id", "id", 1)})
		require.NoError(t, err, filter)
		require.Empty(t, jobs.GetJobs(), filter)
	}
	for _, filter := range []string{`job_id = 'x' OR '1' = '1'`, `ExecutionStatus = "Running"`, `type = A) OR (type = B`} {
		_, err := c.Runs.ListRuns(t.Context(), &jobsv1.ListRunsRequest{Filter: filter})
		requireError(t, err, connect.CodeInvalidArgument, jobsv1.ErrorReason_ERROR_REASON_INVALID_FILTER)
	}

	// Names that lead elsewhere. A queue's workflow is no run.
	_, err = c.Queues.SetQueueFailurePolicy(t.Context(), &jobsv1.SetQueueFailurePolicyRequest{Queue: "abused", OnFailure: jobsv1.FailurePolicy_FAILURE_POLICY_CONTINUE})
	require.NoError(t, err)
	for _, name := range []string{"queue/abused", "../queue/abused@x", "applied/toml", "x"} {
		_, err := c.Runs.TerminateRun(t.Context(), &jobsv1.TerminateRunRequest{Name: name})
		requireError(t, err, connect.CodeInvalidArgument, invalid)
	}
	for _, name := range []string{"job/../queue/abused", "job/%2e%2e/x@" + requestID, "job/take_steps.none@not-an-id", "job/take_steps.loop-none#1", "job/" + strings.Repeat("x", 3000)} {
		_, err := c.Runs.CancelRun(t.Context(), &jobsv1.CancelRunRequest{Name: name})
		require.Contains(t, []connect.Code{connect.CodeNotFound, connect.CodeInvalidArgument, connect.CodeFailedPrecondition}, connect.CodeOf(err), "%s: %v", name, err)
	}
	for _, id := range []string{"../x", "a.b' OR 1=1", strings.Repeat("x", 3000), "take_steps.ä\x00"} {
		_, err := c.Jobs.GetJob(t.Context(), &jobsv1.GetJobRequest{Id: id})
		require.Contains(t, []connect.Code{connect.CodeNotFound, connect.CodeInvalidArgument}, connect.CodeOf(err), "%q: %v", id, err)
	}
	_, err = c.Queues.SetQueueFailurePolicy(t.Context(), &jobsv1.SetQueueFailurePolicyRequest{Queue: "../x", OnFailure: jobsv1.FailurePolicy_FAILURE_POLICY_HALT})
	requireError(t, err, connect.CodeInvalidArgument, invalid)
	_, err = c.Queues.ListQueues(t.Context(), &jobsv1.ListQueuesRequest{PageSize: -1})
	requireError(t, err, connect.CodeInvalidArgument, invalid)
	require.NotContains(t, w.log.String(), "panicked")
}

func oneShotJob(id string) job.Job {
	return job.Job{
		ID: id, Type: "TakeSteps", Worker: "apitest", Provider: job.ProviderTOML, Spec: []byte(`{"steps":1}`),
		Trigger: job.Trigger{OneShot: &job.OneShot{}}, Options: job.DefaultOptions(job.ModeOneShot),
	}
}

// secrets puts a secret where a reference belongs: it is refused, and seen nowhere.
func secrets(t *testing.T, w *world) {
	const canary = "canary-9d1f37c2"
	c := w.server.InProcess()
	j := steps(t, "take_steps.secret", "token", canary)
	j.Mode = &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}
	_, err := c.Jobs.CreateJob(t.Context(), &jobsv1.CreateJobRequest{Job: j})
	requireError(t, err, connect.CodeInvalidArgument, jobsv1.ErrorReason_ERROR_REASON_INVALID_REQUEST)
	require.Equal(t, "job.spec.token", api.ViolationsOf(err)[0].GetField())
	status, text := w.post(t, "JobService/CreateJob", `{"job":{"id":"take_steps.secret","spec":{"steps":1,"token":"`+canary+`"},"oneShot":{}}}`)
	require.Equal(t, 400, status)
	for _, seen := range []string{err.Error(), fmt.Sprint(api.ViolationsOf(err)), text, w.log.String()} {
		require.NotContains(t, seen, canary)
	}
	j = steps(t, "take_steps.secret", "token", "secret://api-key")
	j.Mode = &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}
	_, err = c.Jobs.CreateJob(t.Context(), &jobsv1.CreateJobRequest{Job: j})
	require.NoError(t, err)
}

// leftStreams opens many streams, and leaves them.
func leftStreams(t *testing.T, w *world) {
	many := stacktest.Size(100, 1000)
	gate := workertest.NewGate(t)
	c := w.transports()["grpc"]
	name := oneShot(t, c, "take_steps.watched", "gate", gate)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var started, ended sync.WaitGroup
	errs := make([]error, many)
	for i := range many {
		started.Add(1)
		ended.Go(func() {
			stream, err := c.Runs.WatchRun(ctx, &jobsv1.WatchRunRequest{Name: name})
			if err == nil {
				_, err = stream.Receive()
			}
			started.Done()
			for err == nil {
				_, err = stream.Receive()
			}
			errs[i] = err
		})
	}
	started.Wait()
	cancel()
	ended.Wait()
	for _, err := range errs {
		require.Equal(t, connect.CodeCanceled, connect.CodeOf(err), "%v", err)
	}
	workertest.Open(t, gate)
	require.Equal(t, jobsv1.RunStatus_RUN_STATUS_COMPLETED, watched(t, c, name).GetStatus())
}

// pagesOfRuns lists many runs in pages of all sizes: each run is there once.
func pagesOfRuns(t *testing.T, w *world) {
	const all = 25
	j := oneShotJob("announced_steps.pages")
	j.Type, j.Provider = "AnnouncedSteps", job.ProviderAPI
	for range all {
		ref, err := w.client.Runs.Start(t.Context(), j, contract.StartedByHand)
		require.NoError(t, err)
		_, err = w.client.Runs.Follow(t.Context(), ref, func(*client.RunDetail) {})
		require.NoError(t, err)
	}
	c := w.server.InProcess()
	list := func(filter string, size int32) []string {
		var names []string
		token := ""
		for {
			page, err := c.Runs.ListRuns(t.Context(), &jobsv1.ListRunsRequest{Filter: filter, PageSize: size, PageToken: token})
			require.NoError(t, err)
			require.LessOrEqual(t, len(page.GetRuns()), int(size))
			for _, run := range page.GetRuns() {
				names = append(names, run.GetName())
			}
			if token = page.GetNextPageToken(); token == "" {
				return names
			}
		}
	}
	const filter = "job_id = announced_steps.pages"
	stacktest.WaitFor(t, "all runs to be listed", func() (bool, error) { return len(list(filter, 1000)) == all, nil })
	whole := list(filter, 1000)
	for _, size := range []int32{1, 7, all, all + 1} {
		require.Equal(t, whole, list(filter, size), "pages of %d", size)
		require.Equal(t, whole, list(`job_id = "announced_steps.page*" AND status != FAILED`, size), "pages of %d that are looked through", size)
	}
	require.Empty(t, list(filter+" AND type != AnnouncedSteps", 5))
}

// ownership keeps the API off jobs of others, and off what only looks like a job.
func ownership(t *testing.T, w *world) {
	c := w.server.InProcess()
	declared := job.Job{
		ID: "take_steps.declared", Type: "TakeSteps", Worker: "apitest", Provider: job.ProviderTOML, Spec: []byte(`{"steps":1}`),
		Trigger: job.Trigger{Recurring: &job.Recurring{Cron: "0 6 * * *"}}, Options: job.DefaultOptions(job.ModeRecurring),
	}
	syncer := schedules.New(w.client)
	plan, err := syncer.Plan(t.Context(), []job.Job{declared}, schedules.PlanOptions{Provider: job.ProviderTOML})
	require.NoError(t, err)
	require.NoError(t, syncer.Apply(t.Context(), plan, func(schedules.Report) {}))
	m := steps(t, declared.ID)
	m.Mode = &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{Cron: "0 7 * * *"}}
	_, err = c.Jobs.CreateJob(t.Context(), &jobsv1.CreateJobRequest{Job: m})
	requireError(t, err, connect.CodeAlreadyExists, jobsv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS)
	_, err = c.Jobs.UpdateJob(t.Context(), &jobsv1.UpdateJobRequest{Job: m})
	requireError(t, err, connect.CodeFailedPrecondition, jobsv1.ErrorReason_ERROR_REASON_NOT_OWNED)
	_, err = c.Jobs.DeleteJob(t.Context(), &jobsv1.DeleteJobRequest{Id: declared.ID})
	requireError(t, err, connect.CodeFailedPrecondition, jobsv1.ErrorReason_ERROR_REASON_NOT_OWNED)
	_, err = c.Jobs.PauseJob(t.Context(), &jobsv1.PauseJobRequest{Id: declared.ID})
	require.NoError(t, err, "verbs are for jobs of all providers")
}

func TestWithoutBackends(t *testing.T) {
	t.Parallel()
	log := &stacktest.Output{}
	c := api.NewInProcess(api.Config{Logger: newLogger(log)})
	_, err := c.Loads.ListLoads(t.Context(), &jobsv1.ListLoadsRequest{})
	requireError(t, err, connect.CodeUnavailable, jobsv1.ErrorReason_ERROR_REASON_BACKEND_UNAVAILABLE)
	require.ErrorContains(t, err, "this server is not connected to NATS")

	// Without a client of Temporal its methods panic.
	_, err = c.Jobs.GetJob(t.Context(), &jobsv1.GetJobRequest{Id: "a.b"})
	requireError(t, err, connect.CodeInternal, jobsv1.ErrorReason_ERROR_REASON_INTERNAL)
	require.NotContains(t, err.Error(), "nil pointer")
	require.Contains(t, log.String(), "nil pointer")
	require.True(t, errors.As(err, new(*connect.Error)))
}
