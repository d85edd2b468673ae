package page_test

import (
	"context"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/runlogs"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/server/page"
	"github.com/dendrascience/dendra-jobs/workers"
)

// world is a page over a real Temporal, NATS and worker.
type world struct {
	api *api.Clients
	url string
	// client, pipeline and reads are those that the API works with.
	client   *client.Client
	pipeline *pipeline.Client
	reads    readmodel.Config
	// marker is a file: while it is there, runs of jobs that wait for it succeed.
	marker string
}

type spec struct {
	Steps int `json:"steps" minimum:"1" help:"steps of a run"`
	// Needs is a file without which a run fails.
	Needs string `json:"needs,omitempty" help:"a file that has to be there"`
	// Waits is a file that a run waits for.
	Waits string `json:"waits,omitempty" help:"a file to wait for"`
	// Fails is how many attempts fail.
	Fails int `json:"fails,omitempty" help:"attempts that fail"`
	// Lines is how many lines an attempt logs.
	Lines int `json:"lines,omitempty" help:"lines to log"`
	// Station is where the steps are taken.
	Station station `json:"station,omitzero" help:"where the steps are taken"`
}

type station struct {
	Name   string `json:"name"`
	Height int    `json:"height,omitempty" minimum:"0" maximum:"9000" help:"above the sea"`
}

func takeSteps(ctx context.Context, run job.Run, s spec) (job.Result, error) {
	if s.Needs != "" {
		if _, err := os.Stat(s.Needs); err != nil {
			return job.Result{}, job.Fail(errclass.NotArchived, "the file %s is not there", filepath.Base(s.Needs))
		}
	}
	run.Checkpoint(job.Progress{Done: 1, Total: int64(s.Steps), Message: "on the way"}, nil)
	for n := range s.Lines {
		run.Logger().Info("a line", "n", n)
	}
	if run.Attempt() <= s.Fails {
		return job.Result{}, job.Retryable("NoAnswer", 0, "the vendor does not answer")
	}
	run.Logger().Info("a step was taken", "steps", s.Steps, "where", "on <b>ice</b>")
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	said := false
	for s.Waits != "" {
		if _, err := os.Stat(s.Waits + "-say"); err == nil && !said {
			run.Logger().Warn("still waiting")
			said = true
		}
		if _, err := os.Stat(s.Waits); err == nil {
			break
		}
		select {
		case <-run.Stopping():
			return job.Result{}, job.ErrStopped
		case <-ctx.Done():
			return job.Result{}, ctx.Err()
		case <-poll.C:
		}
	}
	return job.Result{Message: "all steps taken", Counts: map[string]int64{"steps": int64(s.Steps)}}, nil
}

func types() []job.Type {
	return []job.Type{
		job.NewType("TakeSteps", "pagetest", "Takes steps.", takeSteps),
		job.NewType("KeepSteps", "pagetest", "Takes steps for ever.", takeSteps, job.ModeContinuous),
	}
}

// TestStack works with the page as people do.
func TestStack(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	t.Run("every view", func(t *testing.T) { t.Parallel(); everyView(t, w) })
	t.Run("retry of the filtered selection", func(t *testing.T) { t.Parallel(); bulkRetry(t, w) })
	t.Run("stopped on the way", func(t *testing.T) { t.Parallel(); brokenOff(t, w) })
	t.Run("retry keeps the old run", func(t *testing.T) { t.Parallel(); retryKeepsTheOldRun(t, w) })
	t.Run("linked old run", func(t *testing.T) { t.Parallel(); linkedOldRun(t, w) })
	t.Run("who did what", func(t *testing.T) { t.Parallel(); whoDidWhat(t, w) })
	t.Run("confirm before harm", func(t *testing.T) { t.Parallel(); confirmBeforeHarm(t, w) })
	t.Run("log of a run", func(t *testing.T) { t.Parallel(); logOfARun(t, w) })
	t.Run("what a run did", func(t *testing.T) { t.Parallel(); whatARunDid(t, w) })
	t.Run("log by keys", func(t *testing.T) { t.Parallel(); logByKeys(t, w) })
	t.Run("bound jobs", func(t *testing.T) { t.Parallel(); boundJobs(t, w) })
	t.Run("silences", func(t *testing.T) { // One after the other: each looks at the list of all.
		t.Parallel()
		silences(t, w)
		silenceByClick(t, w)
		failedAlike(t, w)
	})
	t.Run("quarantine", func(t *testing.T) { t.Parallel(); quarantine(t, w) })
	t.Run("held message", func(t *testing.T) { t.Parallel(); heldMessage(t, w) })
	t.Run("roles", func(t *testing.T) { t.Parallel(); roles(t, w) })
	t.Run("forms", func(t *testing.T) { t.Parallel(); forms(t, w) })
	t.Run("forms of other modes", func(t *testing.T) { t.Parallel(); formsOfOtherModes(t, w) })
	t.Run("a form sent twice", func(t *testing.T) { t.Parallel(); formSentTwice(t, w) })
	t.Run("other values of a continuous job", func(t *testing.T) { t.Parallel(); otherValuesOfAContinuousJob(t, w) })
	t.Run("cards", func(t *testing.T) { t.Parallel(); cards(t, w) })
	t.Run("card of a start without a run", func(t *testing.T) { t.Parallel(); cardOfAMissedStart(t, w) })
	t.Run("timeline", func(t *testing.T) { t.Parallel(); timelineOfRuns(t, w) })
	t.Run("without scripts", func(t *testing.T) { t.Parallel(); withoutScripts(t, w) })
}

func startWorld(t *testing.T) *world {
	t.Helper()
	st := stacktest.Start(t)
	return newWorld(t, st, st.Pipeline(t), types())
}

// newWorld is a page over a stack, with a worker of some types.
func newWorld(t *testing.T, st *stacktest.Stack, nats *pipeline.Client, types []job.Type) *world {
	t.Helper()
	c := client.New(st.Dial(t), st.Namespace)
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	logs := runlogs.Keep(context.Background(), nats, logger)
	t.Cleanup(logs.Close)
	workertest.Run(t, st, workers.Config{RunLogs: logs, Logger: logger, Types: types})
	workertest.WaitListed(t, c)
	reads := readmodel.Config{Temporal: st.Settings()}
	server := api.New(api.Config{
		Client: c, Pipeline: nats, Types: types, Logger: logger,
		Reads: reads,
	})
	t.Cleanup(server.Close)
	w := &world{api: server.InProcess(), client: c, pipeline: nats, reads: reads, marker: filepath.Join(t.TempDir(), "there")}
	p := page.New(page.Config{API: w.api, Logger: logger, Namespace: st.Namespace, TemporalUI: "http://127.0.0.1:8233"})
	w.url = stacktest.Serve(t, p)
	return w
}

// add makes a job. Its mode is that of the message.
func (w *world) add(t *testing.T, j *jobsv1.Job, values map[string]any) string {
	t.Helper()
	if values["steps"] == nil {
		values["steps"] = 1
	}
	return w.create(t, j, values)
}

// create makes a job of any type.
func (w *world) create(t *testing.T, j *jobsv1.Job, values map[string]any) string {
	t.Helper()
	var err error
	j.Spec, err = structpb.NewStruct(values)
	require.NoError(t, err)
	_, err = w.api.Jobs.CreateJob(t.Context(), &jobsv1.CreateJobRequest{Job: j})
	require.NoError(t, err)
	return j.GetId()
}

// daily makes a job that runs when it is told to.
func (w *world) daily(t *testing.T, key string, values map[string]any) string {
	t.Helper()
	return w.add(t, &jobsv1.Job{
		Id: "take_steps." + key, Mode: &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{RecurEvery: durationpb.New(24 * time.Hour)}},
	}, values)
}

// run runs a job and gives its run once that has ended as told.
func (w *world) run(t *testing.T, id string, status jobsv1.RunStatus) *jobsv1.Run {
	t.Helper()
	started, err := w.api.Jobs.RunJob(t.Context(), &jobsv1.RunJobRequest{Id: id})
	require.NoError(t, err)
	return w.ended(t, started.GetRunName(), status)
}

func (w *world) ended(t *testing.T, name string, status jobsv1.RunStatus) *jobsv1.Run {
	t.Helper()
	var run *jobsv1.Run
	stacktest.WaitFor(t, "the run to be "+status.String(), func() (bool, error) {
		answer, err := w.api.Runs.GetRun(t.Context(), &jobsv1.GetRunRequest{Name: name})
		run = answer.GetRun()
		return run.GetStatus() == status, err
	})
	return run
}

// logged waits until the log of a run has a line: workers send lines after a while.
func (w *world) logged(t *testing.T, name, text string) {
	t.Helper()
	stacktest.WaitFor(t, text+" in the log of "+name, func() (bool, error) {
		answer, err := w.api.Runs.ListRunLogs(t.Context(), &jobsv1.ListRunLogsRequest{Name: name, Search: text})
		return len(answer.GetLines()) > 0, err
	})
}

// outcomes waits until the overview has the outcomes of a job.
func (w *world) outcomes(t *testing.T, id, want string) {
	t.Helper()
	stacktest.WaitFor(t, id+" to have the outcomes "+want, func() (bool, error) {
		answer, err := w.api.Overview.GetOverview(t.Context(), &jobsv1.GetOverviewRequest{})
		for _, j := range answer.GetOverview().GetJobs() {
			if j.GetId() == id {
				return j.GetOutcomes() == want, nil
			}
		}
		return false, err
	})
}

// everyView opens each view: without errors of the console, no wider than a narrow screen, and
// every control has a name.
func everyView(t *testing.T, w *world) {
	id := w.daily(t, "view", map[string]any{"needs": w.marker + "-none"})
	failed := w.run(t, id, jobsv1.RunStatus_RUN_STATUS_FAILED)
	loop := w.add(t, &jobsv1.Job{Id: "take_steps.loop", Mode: &jobsv1.Job_Continuous{
		Continuous: &jobsv1.Continuous{Interval: durationpb.New(time.Hour)},
	}}, map[string]any{})
	gate := w.marker + "-gate"
	for _, key := range []string{"queue-a", "queue-b", "queue-c"} {
		w.add(t, &jobsv1.Job{Id: "take_steps." + key, Mode: &jobsv1.Job_Queued{Queued: &jobsv1.Queued{Queue: "backlog"}}}, map[string]any{"waits": gate})
	}
	w.outcomes(t, id, "F")
	stacktest.WaitFor(t, "the overview to have the queue", func() (bool, error) {
		answer, err := w.api.Overview.GetOverview(t.Context(), &jobsv1.GetOverviewRequest{})
		return len(answer.GetOverview().GetQueues()) > 0, err
	})
	views := map[string]string{
		"/": "Jobs", "/jobs/" + id: "Definition", "/jobs/" + loop: "Iterations", "/runs/" + url.PathEscape(failed.GetName()): "docs/errors.md#notarchived",
		"/queues": "backlog", "/queues/backlog": "take_steps.queue-b", "/loads": "Loads", "/quarantine": "Quarantine", "/workers": "pagetest",
		"/integrations": "Integrations", "/plan": "against the last apply", "/alerts": "Silences", "/failures": "NotArchived",
	}
	for _, width := range []int64{1280, 400} {
		b := newTab(t, width, 900)
		for path, text := range views {
			b.open(w.url + path)
			require.Contains(t, is[string](b, "document.querySelector('main').innerText"), text, path)
			require.LessOrEqual(t, is[int64](b, "document.documentElement.scrollWidth"), width, "%s is wider than the screen", path)
			requireNames(t, b, path)
			still := path == "/plan" || path == "/quarantine"
			require.Equal(t, !still, is[bool](b, `!!document.querySelector("#freeze")`), path)
			require.Equal(t, still, strings.Contains(is[string](b, "document.querySelector('header').innerText"), "Not live"), path)
			if width == 400 {
				requireCards(t, b, path)
			}
		}
		b.requireCalm()
	}
	lookAt(t, w.url, map[string]string{
		"job": "/jobs/" + id, "run": "/runs/" + url.PathEscape(failed.GetName()), "queue": "/queues/backlog", "home": "/",
		"loop": "/jobs/" + loop, "backlog": "/queues", "no-loads": "/loads", "quarantine": "/quarantine", "no-integrations": "/integrations", "plan": "/plan", "silences": "/alerts", "none": "/jobs/take_steps.none",
	})
	workertest.Open(t, gate)
	b := newTab(t, 1280, 900)
	b.open(w.url + "/jobs/" + id)
	b.click(`[data-copy-from="declared"]`)
	b.until("the definition to be copied, or marked for that", `document.querySelector("#message").innerText.includes("Copied the definition") ||
		getSelection().toString().includes("[jobs.take_steps.view]")`)
	b.requireCalm()
}

// requireNames requires that assistive technology can name every control.
func requireNames(t *testing.T, b *tab, path string) {
	t.Helper()
	tree, err := chromedp.Run(b, func(ctx context.Context, target *chromedp.Target) (accessibility.GetFullAXTreeResult, error) {
		return cdp.Call(ctx, target, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	})
	require.NoError(t, err)
	controls, roles := 0, map[string]int{}
	for _, node := range tree.Nodes {
		if node.Ignored || node.Role == nil {
			continue
		}
		role := strings.Trim(string(node.Role.Value), `"`)
		roles[role]++
		switch role {
		case "button", "link", "textbox", "searchbox", "combobox", "spinbutton", "columnheader", "navigation", "dialog", "progressbar", "heading":
			controls++
			require.True(t, node.Name != nil && strings.Trim(string(node.Name.Value), `"`) != "", "a %s of %s has no name", role, path)
		}
	}
	require.Greater(t, controls, 8, path)
	for _, landmark := range []string{"banner", "navigation", "main"} {
		require.Positive(t, roles[landmark], "%s has no %s", path, landmark)
	}
}

// Mission Control #12 and bull-board #1262: people want to retry all that failed, as filtered.
func bulkRetry(t *testing.T, w *world) {
	needs := w.marker + "-bulk"
	var ids []string
	for _, key := range []string{"bulk-a", "bulk-b", "other-c"} {
		ids = append(ids, w.daily(t, key, map[string]any{"needs": needs}))
	}
	for _, id := range ids {
		w.run(t, id, jobsv1.RunStatus_RUN_STATUS_FAILED)
	}
	for _, id := range ids {
		w.outcomes(t, id, "F")
	}
	stopped := w.daily(t, "bulk-stopped", map[string]any{"waits": needs})
	started, err := w.api.Jobs.RunJob(t.Context(), &jobsv1.RunJobRequest{Id: stopped})
	require.NoError(t, err)
	w.ended(t, started.GetRunName(), jobsv1.RunStatus_RUN_STATUS_RUNNING)
	_, err = w.api.Jobs.StopJob(t.Context(), &jobsv1.StopJobRequest{Id: stopped})
	require.NoError(t, err)
	w.outcomes(t, stopped, "X")
	workertest.Open(t, needs)
	b := newTab(t, 1280, 900)
	b.open(w.url + "/?q=bulk-")
	b.click(`#bulk [value="retry-run"]`)
	b.until("the preview", `document.querySelector("#ask").open`)
	text := is[string](b, `document.querySelector("#ask").innerText`)
	require.Contains(t, text, "Retry 2 runs?")
	require.Contains(t, text, ids[0])
	require.NotContains(t, text, ids[2])
	require.NotContains(t, text, stopped)
	b.click("#confirm")
	b.until("the end", `document.querySelector("#message").innerText.includes("Done for 2 of 2 jobs.")`)
	w.outcomes(t, ids[0], "FC")
	w.outcomes(t, ids[1], "FC")
	w.outcomes(t, ids[2], "F")
	w.outcomes(t, stopped, "X")
	b.requireCalm()
}

// Oban #193: a retry overwrote the old run. River UI #623: a retry that collided left the page.
func retryKeepsTheOldRun(t *testing.T, w *world) {
	needs := w.marker + "-retry"
	id := w.daily(t, "retry", map[string]any{"needs": needs})
	old := w.run(t, id, jobsv1.RunStatus_RUN_STATUS_FAILED)
	workertest.Open(t, needs)
	b := newTab(t, 1280, 900)
	b.open(w.url + "/runs/" + url.PathEscape(old.GetName()))
	b.click(`form[action="/do/retry-run"] button`)
	b.until("the new run", `document.querySelector("#message a")`)
	link := is[string](b, `document.querySelector("#message a").getAttribute("href")`)
	name, err := url.PathUnescape(strings.TrimPrefix(link, "/runs/"))
	require.NoError(t, err)
	require.NotEqual(t, old.GetName(), name)
	fresh := w.ended(t, name, jobsv1.RunStatus_RUN_STATUS_COMPLETED)
	require.Equal(t, old.GetName(), fresh.GetRetryOf(), "the new run points back")
	require.Equal(t, jobsv1.RunStatus_RUN_STATUS_FAILED, w.ended(t, old.GetName(), jobsv1.RunStatus_RUN_STATUS_FAILED).GetStatus())
	b.open(w.url + link)
	require.Contains(t, is[string](b, `document.querySelector("#run-now").innerText`), "in place of")

	// Something else ran meanwhile: the retry of the old run says so, and the page stays.
	w.run(t, id, jobsv1.RunStatus_RUN_STATUS_COMPLETED)
	other := w.marker + "-retry-other"
	later := w.daily(t, "collides", map[string]any{"waits": other})
	started, err := w.api.Jobs.RunJob(t.Context(), &jobsv1.RunJobRequest{Id: later})
	require.NoError(t, err)
	w.ended(t, started.GetRunName(), jobsv1.RunStatus_RUN_STATUS_RUNNING)
	_, err = w.api.Runs.TerminateRun(t.Context(), &jobsv1.TerminateRunRequest{Name: started.GetRunName()})
	require.NoError(t, err)
	gone := w.ended(t, started.GetRunName(), jobsv1.RunStatus_RUN_STATUS_TERMINATED)
	b.open(w.url + "/runs/" + url.PathEscape(gone.GetName()))
	again, err := w.api.Jobs.RunJob(t.Context(), &jobsv1.RunJobRequest{Id: later})
	require.NoError(t, err)
	w.ended(t, again.GetRunName(), jobsv1.RunStatus_RUN_STATUS_RUNNING)
	b.click(`form[action="/do/retry-run"] button`)
	b.until("the explanation", `document.querySelector("#message").innerText.includes("Nothing was done: ")`)
	t.Log(is[string](b, `document.querySelector("#message").innerText`))
	require.Contains(t, is[string](b, "location.pathname"), "/runs/", "the page stays")
	workertest.Open(t, other)
	w.ended(t, again.GetRunName(), jobsv1.RunStatus_RUN_STATUS_COMPLETED)
	b.requireCalm()
}

// Airflow #65217: a linked old run was not in the grid.
func linkedOldRun(t *testing.T, w *world) {
	id := w.daily(t, "linked", map[string]any{})
	first := w.run(t, id, jobsv1.RunStatus_RUN_STATUS_COMPLETED)
	for range 16 {
		w.run(t, id, jobsv1.RunStatus_RUN_STATUS_COMPLETED)
	}
	w.outcomes(t, id, strings.Repeat("C", 17))
	b := newTab(t, 1280, 900)
	for _, path := range []string{"/?runs=15&run=", "/jobs/" + id + "?run="} {
		b.open(w.url + path + url.QueryEscape(first.GetName()))
		link := is[string](b, `document.querySelector("#window [aria-current]").getAttribute("href")`)
		require.Equal(t, "/runs/"+url.PathEscape(first.GetName()), link, "the linked run is in the window, and marked")
	}
	b.open(w.url + "/?runs=15&run=" + url.QueryEscape(first.GetName()))
	require.Equal(t, 15, is[int](b, `document.querySelectorAll("#window .c").length`))
	lookAt(t, w.url, map[string]string{"linked": "/?runs=15&run=" + url.QueryEscape(first.GetName())})
	b.click(`#window [rel="next"]`)
	b.until("the window of newer runs", `document.querySelector("#window [rel=prev]")`)
	b.requireCalm()
}

// River UI #545: a click too many deleted. Names are long, and people copy them.
func confirmBeforeHarm(t *testing.T, w *world) {
	gate := w.marker + "-harm"
	id := w.daily(t, "harm-with-a-name-that-is-rather-long-for-a-narrow-screen-1", map[string]any{"waits": gate})
	started, err := w.api.Jobs.RunJob(t.Context(), &jobsv1.RunJobRequest{Id: id})
	require.NoError(t, err)
	w.ended(t, started.GetRunName(), jobsv1.RunStatus_RUN_STATUS_RUNNING)
	b := newTab(t, 400, 800)
	b.open(w.url + "/runs/" + url.PathEscape(started.GetRunName()))
	require.Equal(t, started.GetRunName(), is[string](b, `document.querySelector("[data-copy]").dataset.copy`), "the whole name can be copied")
	require.Equal(t, started.GetRunName(), is[string](b, `document.querySelector(".name code").textContent`))
	b.click(`form[action="/do/terminate-run"] button`)
	b.until("the question", `document.querySelector("#ask").open`)
	require.Equal(t, "Leave it", is[string](b, `document.activeElement.textContent`), "what does no harm has the focus")
	b.click("#ask button")
	b.until("the end of the question", `!document.querySelector("#ask").open`)
	w.ended(t, started.GetRunName(), jobsv1.RunStatus_RUN_STATUS_RUNNING)
	b.click(`form[action="/do/terminate-run"] button`)
	b.until("the question", `document.querySelector("#ask").open`)
	b.click("#confirm")
	w.ended(t, started.GetRunName(), jobsv1.RunStatus_RUN_STATUS_TERMINATED)
	b.until("the run's new state, by itself", `document.querySelector("#run-now .status").textContent === "terminated"`)
	b.requireCalm()
}

// withoutScripts uses forms as browsers without scripts do.
func withoutScripts(t *testing.T, w *world) {
	id := w.daily(t, "plain", map[string]any{})
	post := func(path string, values url.Values) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+path, strings.NewReader(values.Encode()))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
	status, text := post("/do/pause-job", url.Values{"name": {id}, "reason": {"maintenance"}})
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, "Job "+id+": paused.")
	answer, err := w.api.Jobs.GetJob(t.Context(), &jobsv1.GetJobRequest{Id: id})
	require.NoError(t, err)
	require.Equal(t, jobsv1.JobStatus_JOB_STATUS_PAUSED, answer.GetJob().GetState().GetStatus())
	shown := html.UnescapeString(string(getPlain(t, w.url+"/jobs/"+id)))
	require.Contains(t, shown, "maintenance")
	require.Contains(t, shown, "[jobs.take_steps.plain]\nrecurring = { recur_every = \"P1D\" }\n")

	status, text = post("/do/stop-job", url.Values{"name": {id}})
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, `name="confirmed" value="yes"`, "a document asks")
	status, text = post("/do/resume-job", url.Values{"name": {"take_steps.none"}, "reason": {""}})
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, text, "Nothing was done")
	status, _ = post("/do/nothing", nil)
	require.Equal(t, http.StatusNotFound, status)
}
