package page_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/pipeline/pipelinetest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// confirm says yes to a question, and waits for the answer.
func (b *tab) confirm(question, answer string) {
	b.t.Helper()
	b.until("the question", `document.querySelector("#ask").open`)
	require.Contains(b.t, is[string](b, `document.querySelector("#ask").innerText`), question)
	b.click("#confirm")
	b.until("the answer "+answer, fmt.Sprintf(`document.querySelector("#message").innerText.includes(%q)`, answer))
}

// silences are made and ended.
func silences(t *testing.T, w *world) {
	w.run(t, w.daily(t, "silenced", map[string]any{"needs": w.marker + "-none"}), jobsv1.RunStatus_RUN_STATUS_FAILED)
	b := newTab(t, 1280, 900)
	b.open(w.url + "/alerts")
	b.script(`const form = document.querySelector('form[action="/do/create-silence"]');
		form.rule.value = "JOB_FAILING"; form.elements.name.value = "take_steps.silenced"; form.elements.for.value = "4h"; form.reason.value = "it is known"`)
	b.click(`form[action="/do/create-silence"] button`)
	b.until("what was done", `document.querySelector("#message").innerText.includes(" holds until ")`)
	b.until("the silence in the list", `document.querySelector("#alerts").innerText.includes("it is known")`)
	listed, err := w.api.Alerts.ListSilences(t.Context(), &jobsv1.ListSilencesRequest{})
	require.NoError(t, err)
	require.Len(t, listed.GetSilences(), 1)
	require.Equal(t, jobsv1.AlertRule_ALERT_RULE_JOB_FAILING, listed.GetSilences()[0].GetRule())
	require.Equal(t, "take_steps.silenced", listed.GetSilences()[0].GetObject())
	b.until("the mark of the alert", `document.querySelector("#alerts li.silenced")?.innerText.includes("take_steps.silenced")`)
	lookAt(t, w.url, map[string]string{"alerts": "/alerts"})
	b.click(`form[action="/do/delete-silence"] button`)
	b.until("the alert without it", `!document.querySelector("#alerts li.silenced")`)
	b.until("the end of the silence", `!document.querySelector("#alerts").innerText.includes("it is known")`)
	listed, err = w.api.Alerts.ListSilences(t.Context(), &jobsv1.ListSilencesRequest{})
	require.NoError(t, err)
	require.Empty(t, listed.GetSilences())
	b.requireCalm()
}

// quarantine shows what was refused, publishes it again, and drops it.
func quarantine(t *testing.T, w *world) {
	const location = "pagequarantine"
	var refused []pipeline.Quarantined
	for n := range 3 {
		refused = append(refused, pipeline.Quarantined{
			Stage: pipeline.StageLoad, Operation: pipeline.OperationLive, Name: location, Class: "RefusedPoint", Job: "live_load_influx_v1." + location,
			Reason: "field type conflict", Target: "http://127.0.0.1:8086", Subject: pipeline.PrepSubject(pipeline.OperationLive, location),
			Sequence: uint64(1_000_000 + n), Body: fmt.Appendf(nil, `{"n":%d}`, n),
		})
	}
	require.NoError(t, w.pipeline.Ready(t.Context()))
	_, err := w.pipeline.Quarantine(t.Context(), refused)
	require.NoError(t, err)
	left := func() []*jobsv1.QuarantineItem {
		answer, err := w.api.Quarantine.ListQuarantineItems(t.Context(), &jobsv1.ListQuarantineItemsRequest{Filter: &jobsv1.QuarantineFilter{Location: location}})
		require.NoError(t, err)
		return answer.GetItems()
	}
	items := left()
	require.Len(t, items, 3)
	b := newTab(t, 1280, 900)
	b.open(fmt.Sprintf("%s/quarantine/%d", w.url, items[0].GetId()))
	require.Contains(t, is[string](b, `document.querySelector("main").innerText`), `{"n":2}`)
	lookAt(t, w.url, map[string]string{"refused": fmt.Sprintf("/quarantine/%d", items[0].GetId()), "refused-list": "/quarantine?location=" + location})
	b.click(`form[action="/do/replay"] button`)
	b.confirm("Publish 1 item again?", "1 item replayed.")
	require.Len(t, left(), 2)

	b.open(w.url + "/quarantine?location=" + location)
	require.Equal(t, 2, is[int](b, `document.querySelectorAll("main tbody tr").length`))
	b.click(`[aria-label="Drop… ` + fmt.Sprint(items[1].GetId()) + `"]`)
	b.confirm("Remove 1 item for good?", "1 item dropped.")
	require.Len(t, left(), 1)
	b.open(w.url + "/quarantine?location=" + location)
	b.click(`[aria-label="Drop all of these… ` + location + `"]`)
	b.confirm("Remove 1 item for good?", "1 item dropped.")
	require.Empty(t, left())
	b.requireCalm()
}

// heldMessage is skipped, which its loader is told by NATS.
func heldMessage(t *testing.T, w *world) {
	const location = "pageheld"
	ctx := t.Context()
	held := pipelinetest.Hold(t, w.pipeline, location)
	stacktest.WaitFor(t, "the overview to have the load", func() (bool, error) {
		answer, err := w.api.Overview.GetOverview(ctx, &jobsv1.GetOverviewRequest{})
		for _, load := range answer.GetOverview().GetLoads() {
			if load.GetLocation() == location {
				return load.GetHeldSequence() > 0, nil
			}
		}
		return false, err
	})
	b := newTab(t, 1280, 900)
	b.open(w.url + "/loads")
	b.click(`[aria-label^="Skip held message… ` + location + `/"]`)
	b.confirm("Put the message that blocks "+location+"/live/default into quarantine?", fmt.Sprintf("Message %d goes into quarantine", held))
	asked, err := w.pipeline.SkipAsked(ctx, pipeline.LoadConsumer(pipeline.OperationLive, location, ""))
	require.NoError(t, err)
	require.Equal(t, held, asked.Sequence)
	b.requireCalm()
}
