package page_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// get reads an address as a browser does, compressed, and gives the bytes that came.
func get(t *testing.T, url string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	return body
}

// A thousand jobs with thirty runs each are one small answer, and a change comes by itself.
func TestAThousandJobs(t *testing.T) {
	t.Parallel()
	d := tell(t, 1000)
	size := len(get(t, d.url+"/"))
	t.Logf("1,000 jobs x 30 runs: %d bytes compressed", size)
	require.LessOrEqual(t, size, 100<<10)

	b := newTab(t, 1280, 900)
	b.open(d.url + "/")
	b.until("the first paint", `performance.getEntriesByName("first-contentful-paint").length`)
	t.Logf("first contentful paint after %.0f ms", is[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
	t.Log(is[string](b, `JSON.stringify((e => ({response: e.responseStart, end: e.responseEnd, parsed: e.domInteractive, loaded: e.loadEventEnd}))(performance.getEntriesByType("navigation")[0]))`))
	b.until("cells on the screen", `document.querySelector("#j-extract_hobo_time_frame\\.station-0000 .c")`)
	require.Less(t, is[int](b, `document.querySelectorAll("#grid .c").length`), 4000, "cells are made for what is on the screen alone")

	b.until("the stream of changes", `document.querySelector("#link-state").textContent === "Live"`)
	began := time.Now()
	d.change(3, func(j *jobsv1.JobOverview) { j.Status = jobsv1.JobStatus_JOB_STATUS_FAILED })
	b.until("the change", `document.querySelector("#j-extract_hobo_time_frame\\.station-0003").className.startsWith("s-failed")`)
	t.Logf("a change was on the page after %d ms", time.Since(began).Milliseconds())
	b.requireCalm()
}

// Airflow #57776 and #49800: the grid read each run's summary by itself, and reloaded all.
func TestTheGridIsOneRequest(t *testing.T) {
	t.Parallel()
	d := tell(t, 200)
	b := newTab(t, 1280, 900)
	b.open(d.url + "/")
	b.until("the stream of changes", `document.querySelector("#link-state").textContent === "Live"`)
	d.change(3, func(j *jobsv1.JobOverview) { j.Status = jobsv1.JobStatus_JOB_STATUS_FAILED })
	b.until("the change", `document.querySelector("#j-extract_hobo_time_frame\\.station-0003").className.startsWith("s-failed")`)
	var documents []string
	for _, request := range d.seen() {
		if !strings.Contains(request, "/static/") && !strings.Contains(request, "favicon") {
			documents = append(documents, strings.SplitN(request, "?", 2)[0])
		}
	}
	require.Equal(t, []string{"GET /", "GET /events"}, documents, "a change needs no further request")
}

// Airflow #47887: people choose how many runs the grid has.
func TestTheNumberOfRunsIsChosen(t *testing.T) {
	t.Parallel()
	d := tell(t, 3)
	b := newTab(t, 1280, 900)
	for _, n := range []int{15, 60, 100} {
		b.open(fmt.Sprintf("%s/?runs=%d&q=station", d.url, n))
		b.until("the cells", fmt.Sprintf(`document.querySelector("#grid .jobs tr .o").childElementCount === %d`, n))
	}
	b.click(`[data-set="runs=15"]`)
	b.until("fifteen cells", `document.querySelector("#grid .jobs tr .o")?.childElementCount === 15`)
	require.Contains(t, is[string](b, "location.search"), "q=station", "the filter stays")
}

// Airflow #38032: a filter by status was gone when the mouse left it.
func TestAFilterByAClickStays(t *testing.T) {
	t.Parallel()
	d := tell(t, 20)
	b := newTab(t, 1280, 900)
	b.open(d.url + "/")
	b.click(`[data-status="failing"]`)
	require.Len(t, b.shown(), 4)
	require.Equal(t, "?status=failing", is[string](b, "location.search"))
	d.change(0, func(j *jobsv1.JobOverview) { j.Status = jobsv1.JobStatus_JOB_STATUS_FAILING })
	b.until("the job that fails now", `document.querySelectorAll("#grid .jobs tr:not([hidden])").length === 5`)
	b.do(chromedp.Reload())
	require.Len(t, b.shown(), 5, "a new load shows the same")
	require.True(t, is[bool](b, `document.querySelector("[data-status=failing]").hasAttribute("aria-current")`))
	b.click(`[data-status=""]`)
	require.Len(t, b.shown(), 20)
	b.do(chromedp.NavigateBack())
	b.until("the filter again", `document.querySelectorAll("#grid .jobs tr:not([hidden])").length === 5`)
}

// River UI #398: the search found beginnings of names alone.
func TestTheSearchFindsPartsOfNames(t *testing.T) {
	t.Parallel()
	d := tell(t, 20)
	b := newTab(t, 1280, 900)
	b.open(d.url + "/")
	b.do(chromedp.KeyEvent("/"))
	b.until("the focus", `document.activeElement.id === "q"`)
	b.script(`document.querySelector("#q").value = ""`) // The key is sent as a character too.
	b.do(chromedp.SendKeys(chromedp.CSS("#q"), "STATION-0007"))
	b.until("one row", `document.querySelectorAll("#grid .jobs tr:not([hidden])").length === 1`)
	require.Equal(t, []string{"extract_hobo_time_frame.station-0007"}, b.shown())
	require.Equal(t, "1 of 20", is[string](b, `document.querySelector("#shown").textContent`))
	require.Contains(t, string(getPlain(t, d.url+"/?q=org-3")), `id="shown" role="status">3 of 20`, "without scripts the server filters")
}

// River UI #495: on slow networks the filter in the address jumped back.
func TestFiltersInTheAddressAreNotBouncedBack(t *testing.T) {
	t.Parallel()
	d := tell(t, 20)
	b := newTab(t, 1280, 900)
	b.open(d.url + "/?status=failing")
	require.Len(t, b.shown(), 4)
	release := d.holdBack()
	b.script(`window.dispatchEvent(new Event("pageshow")); document.querySelector("#freeze").click(); document.querySelector("#freeze").click()`)
	d.seen()
	b.click(`[data-status="paused"]`)
	b.until("the search", `document.querySelector("#q")`)
	b.do(chromedp.SendKeys(chromedp.CSS("#q"), "000"))
	require.Equal(t, "?status=paused&q=000", is[string](b, "location.search"))
	release()
	b.until("the connection", `document.querySelector("#link-state").textContent === "Live"`)
	d.change(3, func(j *jobsv1.JobOverview) { j.Outcomes += "F" })
	b.until("the change", `document.querySelector("#j-extract_hobo_time_frame\\.station-0003 .o").textContent.endsWith("F")`)
	require.Equal(t, "?status=paused&q=000", is[string](b, "location.search"), "what comes late does not change the filter")
	require.Equal(t, []string{"extract_hobo_time_frame.station-0003", "extract_hobo_time_frame.station-0008"}, b.shown())
	require.Equal(t, "000", is[string](b, `document.querySelector("#q").value`))
}

// River UI #584: what was paused was read again once the window had the focus.
func TestFreezeStopsAllReading(t *testing.T) {
	t.Parallel()
	d := tell(t, 20)
	b := newTab(t, 1280, 900)
	b.open(d.url + "/")
	b.until("the stream of changes", `document.querySelector("#link-state").textContent === "Live"`)
	b.do(chromedp.KeyEvent("f"))
	b.until("the button", `document.querySelector("#freeze").getAttribute("aria-pressed") === "true"`)
	d.seen()
	d.change(3, func(j *jobsv1.JobOverview) { j.Status = jobsv1.JobStatus_JOB_STATUS_FAILED })
	b.script(`for (const n of ["focus", "online", "pageshow"]) window.dispatchEvent(new Event(n)); document.dispatchEvent(new Event("visibilitychange"))`)
	// Longer than any timer of the page but that of times, which a frozen page leaves alone.
	_, err := chromedp.Run(b, chromedp.Evaluate[bool](`new Promise(done => setTimeout(() => done(true), 1500))`, chromedp.EvalAwaitPromise))
	require.NoError(t, err)
	asked := slices.DeleteFunc(d.seen(), func(request string) bool { return strings.Contains(request, "/static/icon.svg") }) // The browser's own.
	require.Empty(t, asked, "a frozen page asks nothing")
	require.True(t, is[bool](b, `document.querySelector("#j-extract_hobo_time_frame\\.station-0003").className.startsWith("s-paused")`))
	b.do(chromedp.KeyEvent("f"))
	b.until("the change", `document.querySelector("#j-extract_hobo_time_frame\\.station-0003").className.startsWith("s-failed")`)
}

// River UI #565: what was snoozed had a negative time to wait.
func TestNoWaitIsNegative(t *testing.T) {
	t.Parallel()
	d := tell(t, 3)
	d.change(0, func(j *jobsv1.JobOverview) { j.NextStartTime.Seconds -= 90000 })
	require.Regexp(t, `(?s)station-0000".*>now</time>.*station-0001"`, string(getPlain(t, d.url+"/")))
	require.Contains(t, string(getPlain(t, d.url+"/queues")), "in 3 min")
	require.NotContains(t, string(getPlain(t, d.url+"/")), "in -")
}

// On a narrow screen nothing but tables is wider than it.
func TestANarrowScreen(t *testing.T) {
	t.Parallel()
	d := tell(t, 20)
	b := newTab(t, 400, 800)
	for _, path := range []string{"/", "/?runs=100", "/queues"} {
		b.open(d.url + path)
		require.LessOrEqual(t, is[int](b, "document.documentElement.scrollWidth"), 400, path)
	}
}

// Keys move through the rows, and Enter opens one.
func TestKeys(t *testing.T) {
	t.Parallel()
	d := tell(t, 20)
	b := newTab(t, 1280, 900)
	b.open(d.url + "/?status=failing")
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent("k"))
	require.Equal(t, "j-extract_hobo_time_frame.station-0006", is[string](b, `document.activeElement.closest("tr").id`))
	b.do(chromedp.KeyEvent("?"))
	require.True(t, is[bool](b, `document.querySelector("#keys").open`))
	require.Empty(t, strings.Join(b.barriers(), "\n"))
	b.requireCalm()
}
