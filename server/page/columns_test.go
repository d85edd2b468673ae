package page_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Columns are chosen by keys: the address has them, and browsers remember them.
func TestColumnsAreChosen(t *testing.T) {
	t.Parallel()
	d := tell(t, 5)
	d.is.Jobs[1].Freshness, d.is.Jobs[1].LastSuccessTime = durationpb.New(time.Hour), timestamppb.New(time.Now().Add(-3*time.Hour))
	d.is.Jobs[2].Freshness, d.is.Jobs[2].LastSuccessTime = durationpb.New(4*time.Hour), timestamppb.New(time.Now().Add(-time.Hour))
	b := newTab(t, 1280, 900)
	b.open(d.url + "/?q=station")
	heads := `[...document.querySelectorAll("#grid thead th")].map(th => th.innerText).join()`
	require.Equal(t, "Job ▲,Status,Last 30 runs,Next start,Median", is[string](b, heads+`.replace("Job", "Job ▲")`))
	b.do(chromedp.Focus(".menu summary"), chromedp.KeyEvent("\r"), chromedp.KeyEvent("\t"), chromedp.KeyEvent("\t"), chromedp.KeyEvent("\t"), chromedp.KeyEvent("\t"))
	require.Equal(t, "fresh", is[string](b, "document.activeElement.value"))
	b.picture("page-columns")
	require.Empty(t, strings.Join(b.barriers(), "\n"))
	b.do(chromedp.KeyEvent(" "))
	b.until("the column", heads+`.includes("Fresh until")`)
	require.Equal(t, "?q=station&columns=next%2Cmedian%2Cfresh", is[string](b, "location.search"), "the filter stays")
	require.Equal(t, "2 h ago", is[string](b, `document.querySelector("#grid .col-fresh .over").innerText`))
	require.Regexp(t, "in [23] h", is[string](b, `document.querySelectorAll("#grid .jobs .col-fresh")[2].innerText`))
	d.change(1, func(j *jobsv1.JobOverview) { j.LastSuccessTime = timestamppb.Now() })
	b.until("the change", `document.querySelectorAll("#grid .jobs .col-fresh")[1].innerText.includes("in ")`)
	b.open(d.url + "/workers")
	b.click(`header nav a`)
	b.until("the remembered columns", heads+`.includes("Fresh until")`)
	b.requireCalm()

	text := string(getPlain(t, d.url+"/?columns=&columns=owner&columns=schedule"))
	require.Contains(t, text, `<td class="col-owner" data-label="Owner">organization:org-1</td>`, "a form without scripts")
	require.Contains(t, text, "every 15 min")
	require.NotContains(t, text, `<td class="col-median"`)
}

// Each column sorts, either way. What is not known comes last, and a row whose value changes
// moves.
func TestTheGridIsSorted(t *testing.T) {
	t.Parallel()
	d := tell(t, 4)
	for n, took := range []time.Duration{3, 1, 2} {
		d.is.Jobs[n].MedianDuration = durationpb.New(took * time.Second)
	}
	d.is.Jobs[3].MedianDuration = nil
	b := newTab(t, 1280, 900)
	b.open(d.url + "/")
	order := `[...document.querySelectorAll("#grid .jobs tr")].map(r => r.id.slice(-1)).join("")`
	b.click("#grid thead .col-median a")
	b.until("the order", `location.search === "?sort=median" && `+order+` === "1203"`)
	require.Equal(t, "ascending", is[string](b, `document.querySelector("#grid thead .col-median").ariaSort`))
	b.click("#grid thead .col-median a")
	b.until("the other order", order+` === "0213"`)
	require.Equal(t, "descending", is[string](b, `document.querySelector("#grid thead .col-median").ariaSort`))
	b.until("the stream of changes", `document.querySelector("#link-state").textContent === "Live"`)
	d.change(1, func(j *jobsv1.JobOverview) { j.MedianDuration = durationpb.New(time.Hour) })
	b.until("the row to move", order+` === "1023"`)
	b.open(d.url + "/?sort=status")
	require.Equal(t, "1", is[string](b, order)[:1], "what fails comes first")
	b.open(d.url + "/?sort=id")
	require.Equal(t, "0123", is[string](b, order))
	b.requireCalm()
}

// A queue is one row, and what has ended is away until somebody asks.
func TestQueuesAreOneRow(t *testing.T) {
	t.Parallel()
	d := tell(t, 4)
	queued := func(n int, status jobsv1.JobStatus, ended bool) {
		j := d.is.GetJobs()[n]
		j.Mode, j.Queue, j.Status, j.Ended, j.UnderWay = "queued", "late", status, ended, status == jobsv1.JobStatus_JOB_STATUS_RUNNING
	}
	queued(0, jobsv1.JobStatus_JOB_STATUS_WAITING, false)
	queued(1, jobsv1.JobStatus_JOB_STATUS_COMPLETED, true)
	queued(2, jobsv1.JobStatus_JOB_STATUS_FAILED, false)
	d.is.EndedJobs = 1
	b := newTab(t, 1280, 900)
	b.open(d.url + "/")
	ids := `[...document.querySelectorAll("#grid .jobs tr")].map(r => r.id.slice(-1)).join("")`
	require.Equal(t, "23", is[string](b, ids), "one that failed needs a person")
	require.Equal(t, "2 of 2", is[string](b, `document.querySelector("#shown").innerText`))
	require.Contains(t, is[string](b, `document.querySelector("#q-late").innerText`), "3 waiting")
	b.until("the stream of changes", `document.querySelector("#link-state").textContent === "Live"`)
	d.change(3, func(j *jobsv1.JobOverview) {
		j.Mode, j.Status, j.Ended = "one_shot", jobsv1.JobStatus_JOB_STATUS_COMPLETED, true
		d.is.EndedJobs = 2
	})
	b.until("the job that has ended to be away", ids+` === "2"`)
	require.Equal(t, "Ended jobs 2", is[string](b, `document.querySelector("#ended").innerText`))
	b.do(chromedp.Focus("#ended"), chromedp.KeyEvent("\r"))
	b.until("what has ended", ids+` === "123"`)
	require.Equal(t, "?ended=show", is[string](b, "location.search"))
	b.click(`[data-set="items=show"]`)
	b.until("the items too", ids+` === "0123"`)
	b.requireCalm()
}

// requireCards requires of a view on a narrow screen that nothing is to be scrolled sideways,
// and that every button can be reached by a finger.
func requireCards(t *testing.T, b *tab, path string) {
	t.Helper()
	require.Empty(t, is[string](b, `[...document.querySelectorAll(".scroll")].filter(s => s.scrollWidth > s.clientWidth + 1).map(s => s.id || s.innerText.slice(0, 80)).join()`),
		"%s is to be scrolled sideways", path)
	require.Empty(t, is[string](b, `[...document.querySelectorAll("main button, main .button")].filter(e => e.offsetParent && (e.getBoundingClientRect().right > 400 ||
		e.getBoundingClientRect().height < 24)).map(e => e.innerText).join()`), "buttons of %s", path)
}
