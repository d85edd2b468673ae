package page_test

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// focused says in which row the focus is, and on what.
func (b *tab) focused() string {
	b.t.Helper()
	return is[string](b, `(at => (at.closest("tr")?.id ?? at.tagName) + " " + (at.getAttribute("href") ?? ""))(document.activeElement)`)
}

// Keys move between the cells of the grid, which is one stop of the tab key. A change of the
// row leaves the focus where it is.
func TestKeysMoveBetweenCells(t *testing.T) {
	t.Parallel()
	d := tell(t, 20)
	b := newTab(t, 1280, 900)
	b.open(d.url + "/")
	b.until("the stream of changes", `document.querySelector("#link-state").textContent === "Live"`)
	b.until("the cells", `document.querySelector("#grid .jobs .c")`)
	require.Equal(t, 1, is[int](b, `[...document.querySelectorAll("#grid tbody a")].filter(a => a.tabIndex >= 0).length`))
	require.Equal(t, 24, is[int](b, `Math.min(24, ...[...document.querySelectorAll("#grid tbody a")].slice(0, 100).map(a => a.getBoundingClientRect().height))`))

	station := func(n int) string { return fmt.Sprintf("j-extract_hobo_time_frame.station-%04d ", n) }
	cell := func(n, back int) string {
		return fmt.Sprintf("%s/jobs/extract_hobo_time_frame.station-%04d/outcomes/%d", station(n), n, back)
	}
	for _, outcomes := range []int{0, 1, 2} {
		d.change(outcomes, func(j *jobsv1.JobOverview) { j.Outcomes = strings.Repeat("C", 100) })
	}
	b.until("the changes", `[0, 1, 2].every(n => document.querySelectorAll("#j-extract_hobo_time_frame\\.station-000" + n + " .c.C").length === 30)`)
	b.do(chromedp.Focus("#grid thead .col-median a"), chromedp.KeyEvent("\t"))
	require.Equal(t, "q-late /queues/late", b.focused(), "the first row")
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.End))
	require.Equal(t, cell(0, 0), b.focused())
	b.do(chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowDown))
	require.Equal(t, cell(1, 2), b.focused())
	d.change(1, func(j *jobsv1.JobOverview) { j.Outcomes = strings.Repeat("F", 100) })
	b.until("the change", `document.activeElement.classList.contains("F")`)
	require.Equal(t, cell(1, 2), b.focused())
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(kb.ArrowRight))
	require.Equal(t, cell(1, 1), b.focused())
	b.do(chromedp.KeyEvent(kb.Home))
	require.Equal(t, station(1)+"/jobs/extract_hobo_time_frame.station-0001", b.focused())
	require.Equal(t, 1, is[int](b, `[...document.querySelectorAll("#grid tbody a")].filter(a => a.tabIndex >= 0).length`))
	b.requireCalm()
}

// How high a cell is tells how long the run took beside the median.
func TestHeightsTellDurations(t *testing.T) {
	t.Parallel()
	d := tell(t, 1)
	d.is.Jobs[0].Outcomes, d.is.Jobs[0].Durations = strings.Repeat("C", 100), strings.Repeat("0", 90)+"0123456789"
	b := newTab(t, 1280, 900)
	b.open(d.url + "/")
	b.until("the cells", `document.querySelectorAll("#grid .jobs .c").length === 30`)
	heights := is[[]float64](b, `[...document.querySelectorAll("#grid .jobs .c")].slice(-10).map(c => parseFloat(getComputedStyle(c).backgroundSize.split(" ")[1]))`)
	require.InDelta(t, heights[0], heights[1], 0.01, "what is not known is as low as what was quick")
	for n := 2; n < len(heights); n++ {
		require.Greater(t, heights[n], heights[n-1])
	}
}

// On a screen for fingers cells are wide, and a row has the latest ones that fit.
func TestCellsForFingers(t *testing.T) {
	t.Parallel()
	d := tell(t, 3)
	b := newTab(t, 400, 800)
	b.open(d.url + "/")
	b.until("the cells", `document.querySelector("#grid .jobs .c")`)
	require.GreaterOrEqual(t, is[float64](b, `document.querySelector("#grid .jobs .c").getBoundingClientRect().width`), 24.0)
	require.GreaterOrEqual(t, is[float64](b, `document.querySelector("#grid .jobs .c").getBoundingClientRect().height`), 24.0)
	require.Greater(t, is[int](b, `document.querySelector("#grid .jobs .o").childElementCount`), 10)
	require.LessOrEqual(t, is[float64](b, `document.querySelector("#grid .jobs .c:last-child").getBoundingClientRect().right`), 400.0)
	require.True(t, is[bool](b, `/outcomes\/0$/.test([...document.querySelectorAll("#grid .jobs tr:first-child .c")].pop().href) ||
		/#starts$/.test([...document.querySelectorAll("#grid .jobs tr:first-child .c")].pop().href)`), "the latest one is there")

	const cell = "#grid .jobs .c.C"
	b.script(`document.querySelector("` + cell + `").scrollIntoView({ block: "center" })`)
	b.tap(cell)
	b.until("the card", `!document.querySelector("#card").hidden`)
	require.Equal(t, "/", is[string](b, "location.pathname"), "the first tap opens the card alone")
	b.tap(cell)
	b.until("the run", `location.pathname.includes("/outcomes/")`)
}

// cards opens the card of an outcome by keys and by the pointer, in the grid and in the view of
// a job. Escape closes it, and Enter opens the run.
func cards(t *testing.T, w *world) {
	needs := w.marker + "-cards"
	id := w.daily(t, "cards", map[string]any{"needs": needs})
	failed := w.run(t, id, jobsv1.RunStatus_RUN_STATUS_FAILED)
	workertest.Open(t, needs)
	w.run(t, id, jobsv1.RunStatus_RUN_STATUS_COMPLETED)
	w.outcomes(t, id, "FC")
	told := `document.querySelector("#card").innerText`
	for _, path := range []string{"/?q=" + id, "/jobs/" + id} {
		b := newTab(t, 1280, 900)
		b.open(w.url + path)
		b.until("the cells", `document.querySelectorAll(".o .c").length === 2`)
		b.until("the stream of changes", `document.querySelector("#link-state").textContent === "Live"`)
		b.script(`document.querySelector("#grid thead a")?.focus()`) // There may be any number of alerts before it.
		for range 40 {
			if b.do(chromedp.KeyEvent("\t")); is[bool](b, `document.activeElement.matches(".o .c, #grid .jobs a")`) {
				break
			}
		}
		b.do(chromedp.KeyEvent(kb.End))
		b.until("the card of the latest run", told+`.includes("completed") && `+told+`.includes("all steps taken")`)
		b.do(chromedp.KeyEvent(kb.ArrowLeft))
		b.until("the card of the failed run", told+`.includes("failed") && `+told+`.includes("cards is not there")`)
		for _, text := range []string{"Started", "Took", "Attempts", "Worker"} {
			require.Contains(t, is[string](b, told), text)
		}
		require.Equal(t, "card", is[string](b, `document.activeElement.getAttribute("aria-describedby")`))
		b.picture("card-" + is[string](b, "document.body.dataset.view"))
		require.Empty(t, strings.Join(b.barriers(), "\n"))
		b.do(chromedp.KeyEvent("\t"))
		require.Equal(t, "/runs/"+url.PathEscape(failed.GetName())+"#log-title", is[string](b, `document.activeElement.getAttribute("href")`), "the tab key leads into the card")
		b.do(chromedp.KeyEvent(kb.Escape))
		require.True(t, is[bool](b, `document.querySelector("#card").hidden && document.activeElement.matches(".c.F")`), "Escape closes the card")

		// A row that changes meanwhile is another one, and alerts above may push it out of sight.
		stacktest.WaitFor(t, "the card under the pointer", func() (bool, error) {
			b.script(`document.querySelector(".o .c.C").scrollIntoView({ block: "center" })`)
			place := is[[]float64](b, `(({x, y}) => [x + 5, y + 5])(document.querySelector(".o .c.C").getBoundingClientRect())`)
			b.do(chromedp.MouseEvent("mouseMoved", 1, 1), chromedp.MouseEvent("mouseMoved", place[0], place[1]))
			return chromedp.Run(b, chromedp.Evaluate[bool](`new Promise((done) => setTimeout(() => done(!document.querySelector("#card").hidden && `+told+`.includes("completed")), 1000))`, chromedp.EvalAwaitPromise))
		})
		b.do(chromedp.KeyEvent("\r"))
		b.until("the run", `location.pathname === "/runs/`+url.PathEscape(failed.GetName())+`"`)
		b.requireCalm()
	}
}

// cardOfAMissedStart says why a start has no run.
func cardOfAMissedStart(t *testing.T, w *world) {
	gate := w.marker + "-missed"
	id := w.add(t, &jobsv1.Job{
		Id: "take_steps.missed", Mode: &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{RecurEvery: durationpb.New(time.Second)}},
	}, map[string]any{"waits": gate})
	t.Cleanup(func() { _ = os.WriteFile(gate, nil, 0o600) })
	stacktest.WaitFor(t, "starts beside a run", func() (bool, error) {
		answer, err := w.api.Overview.GetOverview(t.Context(), &jobsv1.GetOverviewRequest{})
		for _, j := range answer.GetOverview().GetJobs() {
			if j.GetId() == id {
				return strings.HasPrefix(j.GetOutcomes(), "RMMM"), nil
			}
		}
		return false, err
	})
	_, err := w.api.Jobs.PauseJob(t.Context(), &jobsv1.PauseJobRequest{Id: id, Reason: "for a test"})
	require.NoError(t, err)
	b := newTab(t, 1280, 900)
	b.open(w.url + "/?q=" + id)
	b.until("the cells", `document.querySelectorAll(".o .c.M").length > 2`)
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	b.until("the reason", `document.querySelector("#card").innerText.includes("no run") && document.querySelector("#card").innerText.includes("overlap") &&
		(window.due = document.querySelector("#card dd")?.innerText)`)
	due := is[string](b, "window.due")
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	b.until("that of the next start", `document.querySelector("#card dd")?.innerText > "`+due+`"`)
	b.do(chromedp.KeyEvent("\r"))
	b.until("the starts without a run", `location.pathname.endsWith("take_steps.missed") && location.hash === "#starts"`)
	b.requireCalm()
}

// timelineOfRuns chooses a span by keys: the address and the list follow.
func timelineOfRuns(t *testing.T, w *world) {
	id := w.daily(t, "timeline", map[string]any{"needs": w.marker + "-timeline"})
	failed := w.run(t, id, jobsv1.RunStatus_RUN_STATUS_FAILED)
	w.outcomes(t, id, "F")
	b := newTab(t, 1280, 900)
	b.open(w.url + "/?view=timeline&hours=1&q=" + id)
	b.until("what is drawn", `document.querySelector("#timeline-sum").textContent.includes("1 run of 1 job, 1 failed")`)
	row := `document.querySelector("#span-runs").innerText`
	require.Contains(t, is[string](b, row), id)
	b.do(chromedp.Focus("#q"))
	for range 60 {
		if b.do(chromedp.KeyEvent("\t")); is[bool](b, `document.activeElement.id === "axis"`) {
			break
		}
	}
	b.do(chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.ArrowRight, chromedp.KeyModifiers(8)), chromedp.KeyEvent(kb.ArrowRight, chromedp.KeyModifiers(8)))
	b.picture("timeline-span")
	require.Empty(t, strings.Join(b.barriers(), "\n"))
	b.until("the list of a span before the run", row+`.includes("No run of these jobs began then.")`)
	require.Regexp(t, `since=.*&until=`, is[string](b, "location.search"))
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until("the list of all", row+`.includes("`+id+`")`)
	require.NotContains(t, is[string](b, "location.search"), "since")
	b.requireCalm()

	// Without a choice what began this minute is listed too.
	asked := time.Now()
	field := regexp.MustCompile(`name="until" value="([^"]+)"`).FindSubmatch(getPlain(t, w.url+"/?view=timeline"))
	require.NotNil(t, field)
	until, err := time.Parse("2006-01-02T15:04", string(field[1]))
	require.NoError(t, err)
	require.True(t, until.After(asked), "%s, asked at %s", until, asked)

	// Without scripts there is the list of a span.
	minute := failed.GetStartTime().AsTime().Truncate(time.Minute)
	span := func(from, to time.Duration) string {
		return string(getPlain(t, w.url+"/?"+url.Values{
			"view": {"timeline"}, "q": {id}, "since": {minute.Add(from).Format("2006-01-02T15:04")}, "until": {minute.Add(to).Format("2006-01-02T15:04")},
		}.Encode()))
	}
	require.Contains(t, span(0, time.Minute), "/runs/"+url.PathEscape(failed.GetName()))
	require.Contains(t, span(-time.Minute, 0), "No run of these jobs began then.")
}

// Forty jobs that failed at once are seen as that.
func TestFailuresAtOneTime(t *testing.T) {
	t.Parallel()
	d := tell(t, 60)
	now := time.Now().UTC().Truncate(time.Hour)
	at := now.Add(-2*time.Hour + 10*time.Minute)
	for n := range 60 {
		line := &jobsv1.JobTimeline{Id: d.is.GetJobs()[n].GetId()}
		for quarter := range 20 {
			start := now.Add(-5*time.Hour + time.Duration(quarter)*15*time.Minute + time.Duration(n)*time.Second)
			line.Runs = append(line.Runs, &jobsv1.TimelineRun{
				Status: jobsv1.RunStatus_RUN_STATUS_COMPLETED, StartTime: timestamppb.New(start), EndTime: timestamppb.New(start.Add(time.Duration(1+n%7) * time.Minute)),
			})
		}
		if n < 40 {
			line.Runs = append(line.Runs, &jobsv1.TimelineRun{
				Status: jobsv1.RunStatus_RUN_STATUS_FAILED, StartTime: timestamppb.New(at), EndTime: timestamppb.New(at.Add(time.Duration(n%3) * time.Second)),
			})
		}
		line.NextStartTimes = []*timestamppb.Timestamp{timestamppb.New(time.Now().Add(time.Duration(n) * time.Minute))}
		d.timeline = append(d.timeline, line)
	}
	b := newTab(t, 1280, 900)
	b.open(d.url + "/?view=timeline")
	b.until("what is drawn", `document.querySelector("#timeline-sum").textContent.includes("1240 runs of 60 jobs, 40 failed, 40 of them from `+at.Format("15:04")+`")`)
	require.Contains(t, is[string](b, `document.querySelector("#timeline-sum").textContent`), "60 starts to come")
	x, y := is[float64](b, `document.querySelector("#lanes").getBoundingClientRect().x + 400`), is[float64](b, `document.querySelector("#lanes").getBoundingClientRect().y + 100`)
	b.do(chromedp.MouseEvent("mousePressed", x, y, chromedp.Button("left")), chromedp.MouseEvent("mouseMoved", x+100, y, chromedp.Button("left")),
		chromedp.MouseEvent("mouseReleased", x+100, y, chromedp.Button("left")))
	b.until("the span in the address", `/since=.*&until=/.test(location.search)`)
	b.requireCalm()
	lookAt(t, d.url, map[string]string{"timeline": "/?view=timeline"})
}
