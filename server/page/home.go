package page

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// defaultRuns is how many outcomes the grid has.
const defaultRuns = 30

// runCounts are the numbers of outcomes to choose from.
var runCounts = []int{15, 30, 60, 100}

// home is what needs a person, and the grid of all jobs with their latest runs.
type home struct {
	*jobsv1.Overview
	selection
	layout
	Alerts   alertList
	Failures failuresView
	Queues   []queueLine
	Rows     []row
	Shown    int
	Statuses []choice
	Menus    []menu
	Runs     int
	Counts   []choice
	// Heads are those of the table.
	Heads, ChosenHeads []head
	// Choices are the columns to choose from.
	Choices []choice
	// EndedLink and ItemsLink are the addresses that show jobs that have ended, and items of
	// queues, or leave them out.
	EndedLink, ItemsLink string
	// Timeline is set if that is shown in place of the grid.
	Timeline *timeline
	// Views are the addresses of the same jobs, in the grid and on a timeline.
	Views []choice
	// Linked is the run that the address names, with the runs around it.
	Linked *linkedRun
	Bulk   []button
	// MayCreate says that there is a link to the form of a new job.
	MayCreate bool
}

// row is a job in the grid.
type row struct {
	*jobsv1.JobOverview
	Hidden bool
	// Order is what the row is ordered by, unless that is its id.
	Order string
	Cells []cell
}

func newRow(j *jobsv1.JobOverview, l layout) row {
	return row{JobOverview: j, Order: l.order(j), Cells: l.cells(j)}
}

// queueLine is a queue in the grid, in place of its items.
type queueLine struct {
	*jobsv1.Queue
	Hidden bool
	// Span is how many columns it has but for its name and status.
	Span int
}

func newQueueLine(q *jobsv1.Queue, l layout) queueLine {
	return queueLine{Queue: q, Span: 1 + len(l.Columns)}
}

// Class is as that of a row.
func (q queueLine) Class() string { return statusClass(word(q.GetStatus())) }

// Class is the class of the row: the status decides on its sign and color.
func (r row) Class() string { return statusClass(word(r.GetStatus())) }

// statusClass is the class of a status.
func statusClass(status string) string { return "s-" + strings.ReplaceAll(status, " ", "-") }

// linkedRun is a run that an address names, in the outcomes of its job around it.
type linkedRun struct {
	Run    *jobsv1.Run
	Window []windowRun
	// Older and Newer are addresses of the neighboring windows. Empty at the ends.
	Older, Newer string
}

// windowRun is a run in a window.
type windowRun struct {
	*jobsv1.Run
	Letter string
	Marked bool
}

// readOverview reads the overview with a number of outcomes.
func (p *Page) readOverview(ctx context.Context, runs int) (*jobsv1.Overview, error) {
	answer, err := p.API.Overview.GetOverview(ctx, &jobsv1.GetOverviewRequest{Runs: int32(runs)})
	if err != nil {
		return nil, err
	}
	p.samples.take(answer.GetOverview(), time.Now())
	return answer.GetOverview(), nil
}

// revision is the id of the events that an overview comes from.
func (p *Page) revision(o *jobsv1.Overview) string {
	return p.epoch + "-" + strconv.FormatInt(o.GetRevision(), 10)
}

func readRuns(values url.Values) int {
	if n, err := strconv.Atoi(values.Get("runs")); err == nil && slices.Contains(runCounts, n) {
		return n
	}
	return defaultRuns
}

func (p *Page) home(r *http.Request) (*document, error) {
	values := r.URL.Query()
	runs := readRuns(values)
	o, err := p.readOverview(r.Context(), runs)
	if err != nil {
		return nil, err
	}
	data := home{Overview: o, selection: readSelection(values), layout: readLayout(values), Runs: runs, Bulk: bulkButtons(p.role(r)), MayCreate: mayCreate(p.role(r))}
	if name := values.Get("run"); name != "" {
		if data.Linked, err = p.window(r.Context(), name, runs, func(name string) string {
			return "/?" + url.Values{"run": {name}, "runs": {strconv.Itoa(runs)}}.Encode()
		}); err != nil {
			return nil, err
		}
	}
	data.Alerts = newAlerts(p.role(r), o.GetAlerts(), fewOthers)
	data.Failures = p.topFailures(r.Context(), p.role(r))
	data.lines(o)
	if values.Get("view") == timelineView {
		return p.timelineOf(r, &data)
	}
	data.links()
	return &document{
		Title: homeTitle(data.Alerts.NeedYou()), View: "home", Section: "/", Revision: p.revision(o), Runs: runs, Sort: data.Sort, Follow: []string{"jobs"}, Data: &data,
	}, nil
}

// lines makes the rows of the grid. What is away is not even hidden: there may be thousands.
func (h *home) lines(o *jobsv1.Overview) {
	for _, q := range o.GetQueues() {
		line := newQueueLine(q, h.layout)
		line.Hidden = !h.holdsQueue(q.GetName())
		h.Queues = append(h.Queues, line)
	}
	for _, j := range o.GetJobs() {
		if h.away(j) {
			continue
		}
		line := newRow(j, h.layout)
		if line.Hidden = !h.holds(j); !line.Hidden {
			h.Shown++
		}
		h.Rows = append(h.Rows, line)
	}
	h.layout.sort(h.Rows)
}

// links makes the addresses of other views of the same jobs.
func (h *home) links() {
	present := make([]*jobsv1.JobOverview, len(h.Rows))
	for i, line := range h.Rows {
		present[i] = line.JobOverview
	}
	h.Statuses, h.Menus = h.statuses(present, h.link), h.menus(present)
	for _, n := range runCounts {
		h.Counts = append(h.Counts, choice{Value: strconv.Itoa(n), Link: h.link("runs", strconv.Itoa(n)), Chosen: n == h.Runs})
	}
	h.Heads, h.ChosenHeads = h.heads(fixedColumns, h.link), h.heads(h.Columns, h.link)
	h.Choices = h.choices()
	other := func(is string) string {
		if is == shown {
			return ""
		}
		return shown
	}
	h.EndedLink, h.ItemsLink = h.link("ended", other(h.Ended)), h.link("items", other(h.Items))
	h.Views = []choice{
		{Value: "Grid", Link: h.link("view", ""), Chosen: h.Timeline == nil},
		{Value: "Timeline", Label: timelineView, Link: h.link("view", timelineView), Chosen: h.Timeline != nil},
	}
}

// AllFields are all that the address says, as values of a form.
func (h *home) AllFields() []field {
	fields := slices.Concat(h.selection.Fields(), h.layout.Fields())
	if h.Runs != defaultRuns {
		fields = append(fields, field{"runs", strconv.Itoa(h.Runs)})
	}
	if h.Timeline != nil {
		fields = append(fields, h.Timeline.fields()...)
	}
	return fields
}

// SelectionFields are the jobs that are shown, as values of a form.
func (h *home) SelectionFields() []field { return h.selection.Fields() }

// FieldsBut are all that the address says but for some names, as values of a form.
func (h *home) FieldsBut(names ...string) []field {
	return slices.DeleteFunc(h.AllFields(), func(f field) bool { return f.Value == "" && f.Name != "columns" || slices.Contains(names, f.Name) })
}

// link is the address of this page where one field is other.
func (h *home) link(name, value string) string {
	values := url.Values{}
	for _, f := range h.FieldsBut(name) {
		values.Set(f.Name, f.Value)
	}
	if value != "" {
		values.Set(name, value)
	}
	if len(values) == 0 {
		return "/"
	}
	return "/?" + values.Encode()
}

func homeTitle(alerts int) string {
	if alerts == 0 {
		return "Jobs"
	}
	return fmt.Sprintf("(%d) Jobs", alerts)
}

// Bounds of how far back a linked run is looked for.
const (
	windowPage  = 1000
	windowPages = 10
)

// window finds a run among those of its job, with the runs around it. link makes the address
// of the window around another run.
func (p *Page) window(ctx context.Context, name string, size int, link func(name string) string) (*linkedRun, error) {
	answer, err := p.API.Runs.GetRun(ctx, &jobsv1.GetRunRequest{Name: name})
	if err != nil {
		return nil, err
	}
	linked := &linkedRun{Run: answer.GetRun()}
	runs, at, err := p.around(ctx, linked.Run, size)
	if err != nil {
		return nil, err
	}
	if at < 0 { // It is older than what is listed.
		runs, at = append(runs, linked.Run), len(runs)
	}
	// The list begins with the latest run: the window has as many before it as after.
	first := max(0, min(at-size/2, len(runs)-size))
	last := min(len(runs), first+size)
	if last < len(runs) {
		linked.Older = link(runs[min(len(runs)-1, at+size)].GetName())
	}
	if first > 0 {
		linked.Newer = link(runs[max(0, at-size)].GetName())
	}
	for _, run := range slices.Backward(runs[first:last]) {
		linked.Window = append(linked.Window, windowRun{run, verbs.Letter(run.GetStatus()), run.GetName() == linked.Run.GetName()})
	}
	return linked, nil
}

// around lists the runs of a job from the latest to beyond a run, and says where that is.
func (p *Page) around(ctx context.Context, wanted *jobsv1.Run, beyond int) (runs []*jobsv1.Run, at int, err error) {
	at = -1
	request := &jobsv1.ListRunsRequest{PageSize: windowPage, Filter: jobFilter(wanted.GetJobId())}
	for range windowPages {
		answer, err := p.API.Runs.ListRuns(ctx, request)
		if err != nil {
			return nil, 0, err
		}
		runs = append(runs, answer.GetRuns()...)
		if at < 0 {
			at = slices.IndexFunc(runs, func(run *jobsv1.Run) bool { return run.GetName() == wanted.GetName() })
		}
		request.PageToken = answer.GetNextPageToken()
		if request.PageToken == "" || at >= 0 && at+beyond < len(runs) {
			break
		}
	}
	return runs, at, nil
}

// jobFilter is the filter for the runs of a job.
func jobFilter(id string) string { return "job_id = " + strconv.Quote(id) }
