package page_test

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

const newForm = "/new?type=TakeSteps&mode=one_shot"

// field types into the field of a form, to which Tab leads.
func (b *tab) field(name, text string) {
	b.t.Helper()
	b.tabTo(`[name="` + name + `"]`)
	b.script(`document.activeElement.select()`)
	b.do(chromedp.KeyEvent(text))
}

// problem is what the form says of a field.
func (b *tab) problem(name string) string {
	b.t.Helper()
	return is[string](b, `document.getElementById("h-`+name+`").querySelector(".problem")?.textContent ?? ""`)
}

// preview has the form of a job show what would be made.
func (b *tab) preview() {
	b.t.Helper()
	b.script(`document.body.dataset.old = "yes"`)
	b.press(`button[value="preview"]`)
	b.until("the answer", `!document.body.dataset.old && document.querySelector("form.fields")`)
}

// press presses Enter on the element that a selector fits, to which Tab leads.
func (b *tab) press(selector string) {
	b.t.Helper()
	b.tabTo(selector)
	b.do(chromedp.KeyEvent("\r"))
}

// forms makes a job by keys alone on a phone, after mistakes, and runs it with other values.
func forms(t *testing.T, w *world) {
	b := newTab(t, 400, 900)
	b.open(w.url + "/")
	b.press(`a[href="/new"]`)
	b.until("the types", `document.querySelector("h1").textContent === "New job"`)
	b.press(`a[aria-label="TakeSteps, one-shot"]`)
	b.until("the form", `document.querySelector("form.fields")`)
	require.Zero(t, is[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`), "nothing is wider than the screen")

	b.field(".key", "By Form")
	b.field("spec.station.height", "9001")
	b.preview()
	b.until("the focus where it says that something is wrong", `document.activeElement.id === "wrong"`)
	require.Equal(t, "it is missing.", b.problem("spec.steps"))
	require.Equal(t, "it is missing.", b.problem("spec.station.name"))
	require.Equal(t, "By Form", is[string](b, `document.querySelector("[name='.key']").value`), "nothing that was typed is lost")

	b.field("spec.station.name", "Meadow")
	b.field("spec.steps", "none")
	b.preview()
	b.picture("page-form-wrong-400")
	require.Contains(t, b.problem("spec.steps"), "is not a whole number")
	require.Contains(t, b.problem("spec.station.height"), "9000")
	require.NotEmpty(t, b.problem(".key"))

	b.field(".key", "by-form")
	b.field("spec.station.height", "1200")
	b.field("spec.steps", "3")
	b.preview()
	b.picture("page-form-preview-400")
	b.until("the focus on the preview", `document.activeElement.id === "preview-title"`)
	require.Equal(t, "[jobs.take_steps.by-form]\none_shot = {}\n\n[jobs.take_steps.by-form.spec]\nstation = { height = 1200, name = \"Meadow\" }\nsteps = 3\n",
		is[string](b, `document.querySelector(".preview pre").textContent`))
	_, err := w.api.Jobs.GetJob(t.Context(), &jobsv1.GetJobRequest{Id: "take_steps.by-form"})
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err), "a preview makes nothing")
	b.press(`button[value="create"]`)
	b.until("the job", `document.querySelector("h1").textContent === "take_steps.by-form" && document.querySelector("#job-now .status")`)
	b.until("its end", `document.querySelector("#job-now .status").textContent === "completed"`)

	b.press(`a[href^="/new?from="]`)
	b.until("the form", `document.querySelector("form.fields")`)
	require.Equal(t, []string{"3", "Meadow", "take_steps.by-form with other values"},
		is[[]string](b, `["spec.steps", "spec.station.name", "description"].map((name) => document.querySelector("[name='" + name + "']").value)`))
	b.field(".key", "by-form-again")
	b.field("spec.steps", "5")
	b.preview()
	b.press(`button[value="create"]`)
	b.until("the job", `document.querySelector("h1").textContent === "take_steps.by-form-again"`)
	answer, err := w.api.Jobs.GetJob(t.Context(), &jobsv1.GetJobRequest{Id: "take_steps.by-form-again"})
	require.NoError(t, err)
	lookAt(t, w.url, map[string]string{"types": "/new", "form": newForm + "&from=take_steps.by-form-again"})
	require.InDelta(t, 5, answer.GetJob().GetSpec().GetFields()["steps"].GetNumberValue(), 0)
	b.requireCalm()
}

// formsOfOtherModes makes a recurring and a queued job by keys alone on a phone, and runs each with
// other values: the job itself stays as it is.
func formsOfOtherModes(t *testing.T, w *world) {
	b := newTab(t, 400, 900)
	for _, of := range []struct {
		mode, key, setting, wrong, right, declared, status string
	}{
		{"recurring", "by-form-hourly", "recurring.recur_every", "soon", "PT1H", `recurring = { recur_every = "PT1H" }`, "scheduled"},
		{"queued", "by-form-queued", "queued.queue", "Not a name", "forms", `queued = { queue = "forms" }`, "completed"},
	} {
		b.open(w.url + "/new")
		b.press(`a[aria-label="TakeSteps, ` + of.mode + `"]`)
		b.until("the form", `document.querySelector("form.fields legend").textContent === "When (`+of.mode+`)"`)
		require.Zero(t, is[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`), "nothing is wider than the screen")
		b.field(".key", of.key)
		b.field(of.setting, of.wrong)
		b.field("spec.steps", "2")
		b.field("spec.station.name", "Meadow")
		b.preview()
		b.until("the focus where it says that something is wrong", `document.activeElement.id === "wrong"`)
		require.NotEmpty(t, b.problem(of.setting))
		require.Empty(t, strings.Join(b.barriers(), "\n"))
		b.picture("page-form-" + of.mode + "-wrong-400")
		b.field(of.setting, of.right)
		b.preview()
		require.Contains(t, is[string](b, `document.querySelector(".preview pre").textContent`), of.declared)
		b.picture("page-form-" + of.mode + "-preview-400")
		b.press(`button[value="create"]`)
		id := "take_steps." + of.key
		b.until("the job", `document.querySelector("h1").textContent === "`+id+`" && document.querySelector("#job-now .status")`)
		b.until("that it is "+of.status, `document.querySelector("#job-now .status").textContent === "`+of.status+`"`)
		before, err := w.api.Jobs.GetJob(t.Context(), &jobsv1.GetJobRequest{Id: id})
		require.NoError(t, err)

		b.press(`a[href^="/new?from="]`)
		b.until("the form", `document.querySelector("form.fields")`)
		require.Equal(t, []string{"one_shot", "2", "Meadow"}, is[[]string](b, `["mode", "spec.steps", "spec.station.name"].map((name) => document.querySelector("[name='" + name + "']").value)`))
		b.field(".key", of.key+"-again")
		b.field("spec.steps", "5")
		b.preview()
		b.press(`button[value="create"]`)
		b.until("the run with other values", `document.querySelector("h1").textContent === "`+id+`-again" && document.querySelector("#job-now .status")`)
		b.until("its end", `document.querySelector("#job-now .status").textContent === "completed"`)
		after, err := w.api.Jobs.GetJob(t.Context(), &jobsv1.GetJobRequest{Id: id})
		require.NoError(t, err)
		require.True(t, proto.Equal(before.GetJob().GetSpec(), after.GetJob().GetSpec()), "the job itself stays as it is")
	}
	lookAt(t, w.url, map[string]string{
		"form-recurring": "/new?type=TakeSteps&mode=recurring&from=take_steps.by-form-hourly",
		"form-queued":    "/new?type=TakeSteps&mode=queued&from=take_steps.by-form-queued",
	})
	b.requireCalm()
}

// formSentTwice sends a form at the same time without a script: one job, one run.
func formSentTwice(t *testing.T, w *world) {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	send := func(method, path string, values url.Values) (*http.Response, error) {
		request, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(values.Encode()))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return client.Do(request)
	}
	read := func(response *http.Response, err error) (string, *http.Response) {
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return string(body), response
	}
	text, _ := read(send(http.MethodGet, newForm, nil))
	id := regexp.MustCompile(`name="request_id" value="([^"]+)"`).FindStringSubmatch(text)
	require.Len(t, id, 2)
	values := url.Values{
		"type": {"TakeSteps"}, "mode": {"one_shot"}, "request_id": {id[1]}, ".key": {"twice-sent"}, "spec.steps": {"1"}, "step": {"create"},
		"seen": {"[jobs.take_steps.twice-sent]\none_shot = {}\n\n[jobs.take_steps.twice-sent.spec]\nsteps = 2\n"},
	}
	text, response := read(send(http.MethodPost, "/new", values))
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Contains(t, text, "This is what will be made", "what was seen is not what would be made")
	values.Set("seen", strings.ReplaceAll(strings.Replace(values.Get("seen"), "steps = 2", "steps = 1", 1), "\n", "\r\n"))
	var sent sync.WaitGroup
	for range 2 {
		sent.Go(func() {
			response, err := send(http.MethodPost, "/new", values)
			if err == nil {
				err = response.Body.Close()
			}
			if err != nil || response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != "/jobs/take_steps.twice-sent" {
				t.Errorf("answered %+v, %v", response, err)
			}
		})
	}
	sent.Wait()
	w.ended(t, "job/take_steps.twice-sent", jobsv1.RunStatus_RUN_STATUS_COMPLETED)
	stacktest.WaitFor(t, "the run in the list", func() (bool, error) {
		runs, err := w.api.Runs.ListRuns(t.Context(), &jobsv1.ListRunsRequest{Filter: `job_id = "take_steps.twice-sent"`})
		require.LessOrEqual(t, len(runs.GetRuns()), 1)
		return len(runs.GetRuns()) == 1, err
	})
}

// otherValuesOfAContinuousJob: its type has no one-shots, so the form is one of a continuous job.
func otherValuesOfAContinuousJob(t *testing.T, w *world) {
	const id = "keep_steps.hourly"
	spec, err := structpb.NewStruct(map[string]any{"steps": 1})
	require.NoError(t, err)
	_, err = w.api.Jobs.CreateJob(t.Context(), &jobsv1.CreateJobRequest{Job: &jobsv1.Job{
		Id: id, Type: "KeepSteps", Spec: spec, Mode: &jobsv1.Job_Continuous{Continuous: &jobsv1.Continuous{Interval: durationpb.New(time.Hour)}},
	}})
	require.NoError(t, err)
	b := newTab(t, 400, 900)
	b.open(w.url + "/jobs/" + id)
	b.press(`a[href^="/new?from="]`)
	b.until("the form", `document.querySelector("form.fields")`)
	require.Equal(t, []string{"continuous", "1"}, is[[]string](b, `["mode", "spec.steps"].map((name) => document.querySelector("[name='" + name + "']").value)`))
	b.requireCalm()
}
