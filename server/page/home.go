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

	"connectrpc.com/connect/v2"

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
	Alerts   alertList
	Failures failuresView
	Rows     []row
	Shown    int
	Statuses []choice
	Menus    []menu
	Runs     int
	Counts   []choice
	// Linked is the run that the address names, with the runs around it.
	Linked *linkedRun
	Bulk   []button
}

// row is a job in the grid.
type row struct {
	*jobsv1.JobOverview
	Hidden bool
}

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
	data := home{Overview: o, selection: readSelection(values), Runs: runs, Bulk: bulkButtons(p.role(r))}
	if name := values.Get("run"); name != "" {
		if data.Linked, err = p.window(r.Context(), name, runs, func(name string) string {
			return "/?" + url.Values{"run": {name}, "runs": {strconv.Itoa(runs)}}.Encode()
		}); err != nil {
			return nil, err
		}
	}
	data.Alerts = newAlerts(p.role(r), o.GetAlerts(), fewOthers)
	data.Failures = p.topFailures(r.Context(), p.role(r))
	data.Rows = make([]row, len(o.GetJobs()))
	for i, j := range o.GetJobs() {
		data.Rows[i] = row{j, !data.holds(j)}
		if !data.Rows[i].Hidden {
			data.Shown++
		}
	}
	data.Statuses, data.Menus = data.statuses(o.GetJobs()), data.menus(o.GetJobs())
	for _, n := range runCounts {
		shown := data.values()
		shown.Set("runs", strconv.Itoa(n))
		data.Counts = append(data.Counts, choice{Value: strconv.Itoa(n), Link: "/?" + shown.Encode(), Chosen: n == runs})
	}
	return &document{
		Title: homeTitle(data.Alerts.NeedYou()), View: "home", Section: "/", Revision: p.revision(o), Runs: runs, Follow: []string{"jobs"}, Data: data,
	}, nil
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

// outcome leads from an outcome in the grid to its run. Outcomes are counted back from the
// latest, without starts that have no run.
func (p *Page) outcome(w http.ResponseWriter, r *http.Request) {
	back, err := strconv.Atoi(r.PathValue("back"))
	if err != nil || back < 0 || back >= windowPage {
		p.show(func(*http.Request) (*document, error) { return nil, errNoView }).ServeHTTP(w, r)
		return
	}
	p.answerOutcome(w, r, back)
}

func (p *Page) answerOutcome(w http.ResponseWriter, r *http.Request, back int) {
	id := r.PathValue("id")
	answer, err := p.API.Runs.ListRuns(r.Context(), &jobsv1.ListRunsRequest{PageSize: int32(max(100, back+1)), Filter: jobFilter(id)})
	if err == nil && back >= len(answer.GetRuns()) {
		err = connect.NewError(connect.CodeNotFound, "Temporal does not keep this run any more")
	}
	if err != nil {
		p.show(func(*http.Request) (*document, error) { return nil, err }).ServeHTTP(w, r)
		return
	}
	runs := slices.Clone(answer.GetRuns())
	slices.SortStableFunc(runs, func(a, b *jobsv1.Run) int {
		return b.GetStartTime().AsTime().Compare(a.GetStartTime().AsTime())
	})
	http.Redirect(w, r, "/runs/"+url.PathEscape(runs[back].GetName()), http.StatusSeeOther)
}
