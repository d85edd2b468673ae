package page_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// lineOf is the line of what needs a person that has a text, in a browser.
func lineOf(text string) string {
	return fmt.Sprintf(`Array.from(document.querySelectorAll(".alerts > li")).filter(li => li.textContent.includes(%q))`, text)
}

// failedAlike has two jobs fail alike: they are one line and one group, and one retry is for both.
func failedAlike(t *testing.T, w *world) {
	needs := w.marker + "-alike"
	ids := []string{w.daily(t, "alike-1", map[string]any{"needs": needs}), w.daily(t, "alike-2", map[string]any{"needs": needs})}
	for _, id := range ids {
		w.logged(t, w.run(t, id, jobsv1.RunStatus_RUN_STATUS_FAILED).GetName(), "attempt ended")
		w.outcomes(t, id, "F")
	}
	b := newTab(t, 400, 900)
	b.open(w.url + "/")
	line := lineOf(ids[0])
	b.until("one line of both", line+`.length === 1 && `+line+`[0].textContent.includes("`+ids[1]+`")`)
	require.Contains(t, is[string](b, line+"[0].innerText"), "2 jobs fail alike")
	require.Contains(t, is[string](b, line+"[0].innerText"), "To do: ")
	require.LessOrEqual(t, is[int64](b, "document.documentElement.scrollWidth"), int64(400))

	// By keyboard: the last lines of the failed run, and the other job.
	for _, details := range []string{"[data-keep^=others]", ".tail"} {
		b.script(line + `[0].querySelector("details` + details + ` > summary").focus()`)
		b.do(chromedp.KeyEvent("\r"))
	}
	b.until("the last lines", line+`[0].querySelector(".tail .tail-lines")?.innerText.includes("attempt ended")`)
	require.LessOrEqual(t, is[int](b, line+`[0].querySelectorAll(".tail .tail-lines > p").length`), 3)
	b.until("the other job", line+`[0].innerText.includes("`+ids[1]+`")`)
	b.script(line + `[0].querySelector("details[data-keep^=others] > summary").focus()`)
	again := w.daily(t, "alike-other", map[string]any{"needs": needs + "-none"})
	w.run(t, again, jobsv1.RunStatus_RUN_STATUS_FAILED)
	b.until("another line", lineOf(again)+".length === 1")
	require.True(t, is[bool](b, line+`[0].querySelector("details[data-keep^=others]").open`), "it stays open while the list changes")
	require.Contains(t, is[string](b, line+`[0].querySelector(".tail .tail-lines").innerText`), "attempt ended", "the lines stay")
	require.Equal(t, "SUMMARY", is[string](b, "document.activeElement.tagName"), "the focus stays")

	// Both are silenced by one click, and told again once that has ended.
	b.script(line + `[0].querySelector("a.silences").focus()`)
	b.do(chromedp.KeyEvent("\r"))
	b.until("the dialog", `document.querySelector("#silence").open`)
	b.script(`document.querySelector("#silence button:not([type])").click()`)
	b.until("what was done", `document.querySelector("#message").innerText.includes("Done for 2 of 2 alerts.")`)
	b.until("both silenced", line+`[0].classList.contains("silenced")`)
	listed, err := w.api.Alerts.ListSilences(t.Context(), &jobsv1.ListSilencesRequest{})
	require.NoError(t, err)
	for _, s := range listed.GetSilences() {
		if slices.Contains(ids, s.GetObject()) {
			_, err = w.api.Alerts.DeleteSilence(t.Context(), &jobsv1.DeleteSilenceRequest{Name: s.GetName()})
			require.NoError(t, err)
		}
	}

	// The view of groups, where one retry is for both.
	var group *jobsv1.FailureGroup
	stacktest.WaitFor(t, "the group", func() (bool, error) {
		answer, err := w.api.Runs.ListFailures(t.Context(), &jobsv1.ListFailuresRequest{})
		for _, g := range answer.GetGroups() {
			if g.GetJobIds()[0] == ids[0] {
				group = g
			}
		}
		return group.GetFailedJobs() == 2, err
	})
	require.EqualValues(t, 2, group.GetFailures())
	require.Equal(t, "the file "+filepath.Base(needs)+" is not there", group.GetText())
	b.open(w.url + "/failures")
	section := "#f-" + group.GetName()
	require.Contains(t, is[string](b, fmt.Sprintf("document.querySelector(%q).innerText", section)), "2 failures of 2 jobs: NotArchived")
	require.LessOrEqual(t, is[int64](b, "document.documentElement.scrollWidth"), int64(400))
	requireNames(t, b, "/failures")
	lookAt(t, w.url, map[string]string{"failures": "/failures", "needs-you": "/"})
	workertest.Open(t, needs)
	b.script(fmt.Sprintf("document.querySelector(%q).focus()", section+" [value=retry-run]"))
	b.do(chromedp.KeyEvent("\r"))
	b.until("the question", `document.querySelector("#ask").open`)
	require.Empty(t, b.barriers())
	text := is[string](b, `document.querySelector("#ask").innerText`)
	require.Contains(t, text, "Retry 2 runs?")
	require.Contains(t, text, ids[0])
	require.NotContains(t, text, again)
	b.click("#confirm")
	b.until("the end", `document.querySelector("#message").innerText.includes("Done for 2 of 2 jobs.")`)
	for _, id := range ids {
		w.outcomes(t, id, "FC")
	}
	w.outcomes(t, again, "F")
	b.until("the group without a retry", fmt.Sprintf("document.querySelector(%q) && !document.querySelector(%q)", section, section+" form"))
	b.open(w.url + "/")
	require.Equal(t, 0, is[int](b, line+".length"), "nothing needs a person there")
	b.requireCalm()
}

// silenceByClick silences an alert in its line, by keyboard.
func silenceByClick(t *testing.T, w *world) {
	id := w.daily(t, "by-click", map[string]any{"needs": w.marker + "-none-of-by-click"})
	w.run(t, id, jobsv1.RunStatus_RUN_STATUS_FAILED)
	b := newTab(t, 1280, 900)
	b.open(w.url + "/")
	line := lineOf(id)
	b.until("the alert", line+".length === 1")
	b.script(line + `[0].querySelector("a.silences").focus()`)
	b.do(chromedp.KeyEvent("\r"))
	b.until("the dialog", `document.querySelector("#silence").open`)
	require.Equal(t, "job failing "+id, is[string](b, `document.querySelector("#silence-what").innerText`))
	require.Contains(t, is[string](b, `document.querySelector("#silence [data-morning]").textContent`), "until 08:00 to")
	require.Equal(t, "SELECT", is[string](b, "document.activeElement.tagName"), "the dialog has the focus")
	require.Empty(t, b.barriers())
	b.script(`document.querySelector("#silence [name=for]").value = "4h"; document.querySelector("#silence [name=reason]").focus()`)
	b.do(chromedp.KeyEvent("it is known"), chromedp.KeyEvent("\r"))
	b.until("what was done", `document.querySelector("#message").innerText.includes(" holds until ")`)
	b.until("the mark of the alert", line+`[0].classList.contains("silenced") && `+line+`[0].innerText.includes("silenced by ")`)
	listed, err := w.api.Alerts.ListSilences(t.Context(), &jobsv1.ListSilencesRequest{})
	require.NoError(t, err)
	for _, s := range listed.GetSilences() {
		if s.GetObject() == id {
			require.Equal(t, "it is known", s.GetReason())
			_, err = w.api.Alerts.DeleteSilence(t.Context(), &jobsv1.DeleteSilenceRequest{Name: s.GetName()})
			require.NoError(t, err)
		}
	}
	b.until("the alert without it", `!`+line+`[0].classList.contains("silenced")`)

	// Without the script the button leads to the form.
	shown := string(getPlain(t, w.url+"/alerts?silence=job-failing/"+id))
	require.Regexp(t, `<option\s+selected>JOB_FAILING`, shown)
	require.Contains(t, shown, `value="`+id+`"`)
	b.requireCalm()
}
