package page_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// whatARunDid looks at the attempts of a run on a line, and at its duration among others.
func whatARunDid(t *testing.T, w *world) {
	gate := w.marker + "-did"
	id := w.add(t, &jobsv1.Job{
		Id: "take_steps.did", Mode: &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{RecurEvery: durationpb.New(24 * time.Hour)}},
		Options: &jobsv1.JobOptions{RetryBackoff: &jobsv1.RetryBackoff{
			Initial: durationpb.New(400 * time.Millisecond), Max: durationpb.New(time.Second), Coefficient: 1,
		}},
	}, map[string]any{"fails": 2, "waits": gate})
	started, err := w.api.Jobs.RunJob(t.Context(), &jobsv1.RunJobRequest{Id: id})
	require.NoError(t, err)
	path := "/runs/" + url.PathEscape(started.GetRunName())
	var tabs []*tab
	for _, width := range []int64{1280, 400} {
		b := newTab(t, width, 900)
		b.open(w.url + path)
		b.until("the third attempt, by itself", `document.querySelector(".spans tbody")?.innerText.includes("attempt 3 on")`)
		require.Equal(t, 2, is[int](b, `document.querySelectorAll(".spans svg .span-failed").length`))
		require.Equal(t, 1, is[int](b, `document.querySelectorAll(".spans svg .span-runs").length`))
		text := is[string](b, `document.querySelector(".spans tbody").innerText`)
		require.Equal(t, 2, strings.Count(text, "NoAnswer: the vendor does not answer"))
		require.Contains(t, text, "backed off")
		require.LessOrEqual(t, is[int64](b, "document.documentElement.scrollWidth"), width)
		require.True(t, is[bool](b, `[...document.querySelectorAll(".spans rect")].every((r) => {
			const box = r.getBoundingClientRect(), all = r.ownerSVGElement.getBoundingClientRect();
			return box.width > 0 && box.left >= all.left - 1 && box.right <= all.right + 1 })`), "each bar is within the picture")
		tabs = append(tabs, b)
	}
	lookAt(t, w.url, map[string]string{"attempts": path})
	workertest.Open(t, gate)
	w.ended(t, started.GetRunName(), jobsv1.RunStatus_RUN_STATUS_COMPLETED)
	for _, b := range tabs {
		b.until("the end, by itself", `document.querySelectorAll(".spans svg .span-done").length === 1`)
		b.requireCalm()
	}
	shown := string(getPlain(t, w.url+path))
	require.NotContains(t, shown, "style=", "the policy of the page forbids it")

	// Among other runs, which the list has a moment later.
	for range 2 {
		w.run(t, id, jobsv1.RunStatus_RUN_STATUS_COMPLETED)
	}
	stacktest.WaitFor(t, "three durations", func() (bool, error) {
		return strings.Contains(string(getPlain(t, w.url+path)), "among the latest 3 runs"), nil
	})
	b := tabs[0]
	b.open(w.url + path)
	require.Equal(t, 1, is[int](b, `document.querySelectorAll(".durations rect.this-run").length`))
	require.Regexp(t, `^It took .+ the usual .+\.$`, is[string](b, `document.querySelector(".durations p").innerText`))
	require.Contains(t, is[string](b, `document.querySelector(".durations .key").innerText`), "the limit of an attempt, 1 h")
	lookAt(t, w.url, map[string]string{"durations": path})
}

// logByKeys searches a log, follows it and takes it away, by keys alone.
func logByKeys(t *testing.T, w *world) {
	gate := w.marker + "-keys"
	id := w.daily(t, "keys", map[string]any{"waits": gate, "lines": 150})
	started, err := w.api.Jobs.RunJob(t.Context(), &jobsv1.RunJobRequest{Id: id})
	require.NoError(t, err)
	path := "/runs/" + url.PathEscape(started.GetRunName())
	lines := `document.querySelectorAll("#log tbody tr").length`
	for _, width := range []int64{1280, 400} {
		b := newTab(t, width, 900)
		b.open(w.url + path)
		b.until("the lines", `document.querySelector("#log").innerText.includes("a step was taken")`)
		atEnd := `(({scrollTop, clientHeight, scrollHeight}) => scrollTop + clientHeight >= scrollHeight - 2)(document.querySelector("#log-box"))`
		b.until("the newest line in sight", atEnd)
		b.tabTo("#log-box")
		b.do(chromedp.KeyEvent(kb.Home))
		b.until("the reader to have left the end", `!document.querySelector("#log-follow").checked && document.querySelector("#log-box").scrollTop === 0`)
		b.tabTo("#log-follow", chromedp.KeyModifiers(chromedp.ModifierShift))
		b.do(chromedp.KeyEvent(" "))
		b.until("the newest line again", atEnd)

		b.do(chromedp.KeyEvent("/"))
		b.until("the focus", `document.activeElement.id === "q"`)
		b.script(`document.querySelector("#q").value = ""`) // The key is sent as a character too.
		b.do(chromedp.KeyEvent("N=149" + kb.Enter))
		b.until("the line that was searched for", `location.search.includes("search=N%3D149") && document.documentElement.classList.contains("js") && `+lines+` === 1`)
		require.LessOrEqual(t, is[int64](b, "document.documentElement.scrollWidth"), width)
		b.open(w.url + path + "?level=WARN")
		require.Contains(t, is[string](b, `document.querySelector("#log-note").innerText`), "lines fits.")
		b.requireCalm()
	}
	workertest.Open(t, gate+"-say")
	stacktest.WaitFor(t, "the warning", func() (bool, error) {
		return strings.Contains(string(getPlain(t, w.url+path+"?level=WARN")), "still waiting"), nil
	})
	workertest.Open(t, gate)
	w.ended(t, started.GetRunName(), jobsv1.RunStatus_RUN_STATUS_COMPLETED)
	stacktest.WaitFor(t, "the last line", func() (bool, error) {
		return strings.Contains(string(getPlain(t, w.url+path+"/log?format=text")), "attempt ended"), nil
	})

	// As files, whole.
	text := strings.Split(strings.TrimSpace(string(getPlain(t, w.url+path+"/log?format=text"))), "\n")
	require.Len(t, text, 154)
	require.Regexp(t, `^\S+ \S+ INFO  attempt 1: a line n=0$`, text[1])
	for n, line := range strings.Split(strings.TrimSpace(string(getPlain(t, w.url+path+"/log?format=json&search=a+line"))), "\n") {
		var one struct {
			Message    string
			Attributes map[string]any
		}
		require.NoError(t, json.Unmarshal([]byte(line), &one))
		require.Equal(t, fmt.Sprint("a line ", n), fmt.Sprint(one.Message, " ", one.Attributes["n"]))
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+path+"/log?format=pdf", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusNotFound, response.StatusCode)
	request.URL.RawQuery = "format=json"
	response, err = http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Regexp(t, `^attachment; filename=\S+\.jsonl$`, response.Header.Get("Content-Disposition"))
}
