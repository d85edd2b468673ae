package page_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// whoDidWhat pauses a job for a time, and runs it with a reason, by keys alone. The view of the job
// tells of both, and of a change of its definition.
func whoDidWhat(t *testing.T, w *world) {
	id := w.daily(t, "changed", map[string]any{})
	answer, err := w.api.Jobs.GetJob(t.Context(), &jobsv1.GetJobRequest{Id: id})
	require.NoError(t, err)
	j := answer.GetJob()
	j.Options.Description = "with <b>ice</b>"
	_, err = w.api.Jobs.UpdateJob(t.Context(), &jobsv1.UpdateJobRequest{Job: j, UpdateMask: "options.description", Reason: "tell <i>more</i>"})
	require.NoError(t, err)
	b := newTab(t, 1280, 900)
	b.open(w.url + "/jobs/" + id)
	b.script(`document.querySelector('form[action="/do/run-job"] button').focus()`)
	b.do(chromedp.KeyEvent("\r", chromedp.KeyModifiers(8))) // with Shift
	b.until("the question", `document.querySelector("#ask").open`)
	b.script(`document.querySelector("#ask input[name=reason]").focus()`)
	b.do(chromedp.KeyEvent("try it"))
	b.click("#confirm")
	b.until("the run", `document.querySelector("#message").innerText.includes("`+id+`")`)

	b.click(`form[action="/do/pause-job"] button`)
	b.until("the question", `document.querySelector("#ask").open`)
	b.picture("page-ask")
	require.Empty(t, strings.Join(b.barriers(), "\n"))
	b.script(`document.querySelector("#ask select").value = "PT2H"; document.querySelector("#ask input[name=reason]").value = "new disks"`)
	b.click("#confirm")
	b.until("the end of the pause", `/paused until 20\d\d-/.test(document.querySelector("#message").innerText)`)
	b.until("the pause with its end", `/until 20\d\d-.*: new disks/.test(document.querySelector("#job-now").innerText)`)

	stacktest.WaitFor(t, "four changes", func() (bool, error) {
		b.open(w.url + "/jobs/" + id)
		return is[int](b, `document.querySelectorAll("#changes-list tbody tr").length`) == 4, nil
	})
	text := is[string](b, `document.querySelector("#changes-list").innerText`)
	for _, want := range []string{"pause-job", "new disks", "run-job", "try it", "update-job", "tell <i>more</i>", "create-job"} {
		require.Contains(t, text, want)
	}
	b.click("#changes-list details summary")
	require.Equal(t, `+description = "with <b>ice</b>"`, is[string](b, `document.querySelector("#changes-list .diff ins").textContent`))
	for _, width := range []int64{1280, 400} {
		b.do(chromedp.EmulateViewport(width, 900))
		require.True(t, is[bool](b, "document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out")
		b.script(`document.querySelector("#changes").scrollIntoView()`)
		b.picture(fmt.Sprintf("page-changes-%d", width))
		require.Empty(t, strings.Join(b.barriers(), "\n"))
	}
	b.requireCalm()
}
