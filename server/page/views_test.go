package page_test

import (
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// logOfARun follows the log of a run that goes on: a new line comes by itself.
func logOfARun(t *testing.T, w *world) {
	gate := w.marker + "-log"
	id := w.daily(t, "log", map[string]any{"waits": gate})
	started, err := w.api.Jobs.RunJob(t.Context(), &jobsv1.RunJobRequest{Id: id})
	require.NoError(t, err)
	w.ended(t, started.GetRunName(), jobsv1.RunStatus_RUN_STATUS_RUNNING)
	path := "/runs/" + url.PathEscape(started.GetRunName())
	b := newTab(t, 1280, 900)
	b.open(w.url + path)
	b.until("the first line", `document.querySelector("#log").innerText.includes("a step was taken")`)
	require.Contains(t, is[string](b, `document.querySelector("#log").innerText`), `steps=1 where="on <b>ice</b>"`)
	b.script(`document.querySelector("#log tbody tr").dataset.seen = "yes"`)
	require.NoError(t, os.WriteFile(gate+"-say", nil, 0o600))
	b.until("a line of the run that goes on", `document.querySelector("#log .WARN")?.innerText.includes("still waiting")`)
	require.Equal(t, "running", is[string](b, `document.querySelector("#run-now .status").textContent`))
	require.True(t, is[bool](b, `!!document.querySelector("#log tr[data-seen]")`), "the line was added, and the others were left alone")
	workertest.Open(t, gate)
	b.until("the end, by itself", `document.querySelector("#run-now .status").textContent === "completed"`)
	b.until("the last line", `document.querySelector("#log").innerText.includes("attempt ended")`)
	b.requireCalm()
	lookAt(t, w.url, map[string]string{"log": path})

	// Without NATS the view says so in a sentence, and shows the rest.
	server := api.New(api.Config{Client: w.client, Reads: w.reads, Types: types()})
	t.Cleanup(server.Close)
	text := string(getPlain(t, serveTo(t, server.InProcess())+path))
	require.Contains(t, text, "The log cannot be read: this server is not connected to NATS")
	require.Contains(t, text, "all steps taken")
}

// boundJobs are shown at the worker that has their tags.
func boundJobs(t *testing.T, w *world) {
	listed, err := w.api.Workers.ListWorkers(t.Context(), &jobsv1.ListWorkersRequest{})
	require.NoError(t, err)
	name := listed.GetWorkers()[0].GetName()
	loop := w.add(t, &jobsv1.Job{
		Id: "take_steps.bound-loop", Options: &jobsv1.JobOptions{Bind: map[string]string{"name": name}},
		Mode: &jobsv1.Job_Continuous{Continuous: &jobsv1.Continuous{Interval: durationpb.New(time.Hour)}},
	}, map[string]any{})
	daily := w.add(t, &jobsv1.Job{
		Id: "take_steps.bound-daily", Options: &jobsv1.JobOptions{Bind: map[string]string{"name": name}},
		Mode: &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{RecurEvery: durationpb.New(24 * time.Hour)}},
	}, map[string]any{})
	w.run(t, daily, jobsv1.RunStatus_RUN_STATUS_COMPLETED)
	elsewhere := w.add(t, &jobsv1.Job{
		Id: "take_steps.bound-elsewhere", Options: &jobsv1.JobOptions{Bind: map[string]string{"rack": "none"}},
		Mode: &jobsv1.Job_Continuous{Continuous: &jobsv1.Continuous{Interval: durationpb.New(time.Hour)}},
	}, map[string]any{})
	b := newTab(t, 1280, 900)
	b.open(w.url + "/workers")
	row := `document.querySelector("#workers tbody").innerText`
	b.until("the bound jobs, by themselves", row+`.includes("`+loop+` runs here") && `+row+`.includes("`+daily+`")`)
	b.until("the tags that no worker has", `[...document.querySelectorAll("#workers .note")].some((note) => note.innerText.includes("rack"))`)
	require.NotContains(t, is[string](b, row), elsewhere)
	require.NotContains(t, is[string](b, row), daily+" runs here")
	b.requireCalm()
	lookAt(t, w.url, map[string]string{"workers": "/workers"})
	_, err = w.api.Jobs.DeleteJob(t.Context(), &jobsv1.DeleteJobRequest{Id: elsewhere})
	require.NoError(t, err)
	stacktest.WaitFor(t, "the job to be gone", func() (bool, error) {
		answer, err := w.api.Overview.GetOverview(t.Context(), &jobsv1.GetOverviewRequest{})
		return len(answer.GetOverview().GetUnservedTags()) == 0, err
	})
}
