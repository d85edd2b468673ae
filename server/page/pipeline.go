package page

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job/wording"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// loadRow is a load with how far it is behind.
type loadRow struct {
	*jobsv1.Load
	Name, Status, Lag string
	// Refusals is why most points are refused. Empty if they are not.
	Refusals string
	Buttons  []button
}

type loadsView struct {
	Rows   []loadRow
	Charts *chartsView
}

func (p *Page) loads(r *http.Request) (*document, error) {
	o, err := p.readOverview(r.Context(), 1)
	if err != nil {
		return nil, err
	}
	rows := make([]loadRow, len(o.GetLoads()))
	for i, l := range o.GetLoads() {
		rows[i] = loadRow{Load: l, Name: loadName(l), Status: word(l.GetStatus()), Lag: "none"}
		if l.GetWaiting() > 0 && l.GetOldestTime() != nil {
			rows[i].Lag = wording.Span(time.Since(l.GetOldestTime().AsTime()))
		}
		if l.GetRefusingTime() != nil {
			rows[i].Refusals = api.Refusals(l)
		}
		rows[i].Buttons = buttons(p.role(r), verbs.LoadVerbs(), verbs.OfLoad(l), rows[i].Name)
	}
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row.Name
	}
	return &document{
		Title: "Loads", View: "loads", Section: "/loads", Revision: p.revision(o), Follow: []string{"loads"}, Chart: true,
		Data: loadsView{rows, p.charts(r, loadSeries, names...)},
	}, nil
}

// quarantineView is a page of items.
type quarantineView struct {
	Items    []quarantineRow
	NextPage string
	Filter   []field
	Filtered bool
	All      []button
}

type quarantineRow struct {
	*jobsv1.QuarantineItem
	Buttons []button
}

// quarantineFields are the fields that items are found by.
var quarantineFields = []string{"stage", "flow", "organization", "location", "error_class"}

func readQuarantineFilter(values url.Values) *jobsv1.QuarantineFilter {
	return &jobsv1.QuarantineFilter{
		Stage: values.Get("stage"), Flow: values.Get("flow"), Organization: values.Get("organization"),
		Location: values.Get("location"), ErrorClass: values.Get("error_class"),
	}
}

// quarantineButtons are those of items that fields name: one, or those of a filter.
func quarantineButtons(role verbs.Role, fields ...field) []button {
	return with(buttons(role, verbs.QuarantineVerbs(), verbs.Subject{}), fields...)
}

func (p *Page) quarantineRow(r *http.Request, item *jobsv1.QuarantineItem) quarantineRow {
	return quarantineRow{item, quarantineButtons(p.role(r), field{"sequence", decimal(item.GetId())})}
}

func (p *Page) quarantine(r *http.Request) (*document, error) {
	values := r.URL.Query()
	answer, err := p.API.Quarantine.ListQuarantineItems(r.Context(), &jobsv1.ListQuarantineItemsRequest{
		PageToken: values.Get("page"), Filter: readQuarantineFilter(values),
	})
	if err != nil {
		return nil, err
	}
	data, shown, filter := quarantineView{}, url.Values{}, []field{}
	for _, name := range quarantineFields {
		data.Filter = append(data.Filter, field{name, values.Get(name)})
		if value := values.Get(name); value != "" {
			data.Filtered = true
			shown.Set(name, value)
			filter = append(filter, field{name, value})
		}
	}
	for _, item := range answer.GetItems() {
		data.Items = append(data.Items, p.quarantineRow(r, item))
	}
	if len(data.Items) > 0 {
		data.All = ofAll(quarantineButtons(p.role(r), filter...), "all of these")
	}
	if token := answer.GetNextPageToken(); token != "" {
		shown.Set("page", token)
		data.NextPage = "/quarantine?" + shown.Encode()
	}
	return &document{Title: "Quarantine", View: "quarantine", Section: "/quarantine", Data: data}, nil
}

// quarantineItem is one item with what was refused.
type quarantineItem struct {
	quarantineRow
	// Text is the beginning of the body. Empty if it is no text.
	Text string
}

// maxBody is how much of a body is shown, in bytes.
const maxBody = 64 << 10

func (p *Page) quarantineItem(r *http.Request) (*document, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, errNoView
	}
	answer, err := p.API.Quarantine.GetQuarantineItem(r.Context(), &jobsv1.GetQuarantineItemRequest{Id: id})
	if err != nil {
		return nil, err
	}
	item := answer.GetItem()
	data := quarantineItem{quarantineRow: p.quarantineRow(r, item)}
	if body := item.GetBody(); utf8.Valid(body) {
		data.Text = string(body[:min(len(body), maxBody)])
	}
	return &document{Title: "Quarantine " + decimal(id), View: "quarantine-item", Section: "/quarantine", Data: data}, nil
}

// workerRow is a worker with the jobs that are bound to its tags.
type workerRow struct {
	*jobsv1.Worker
	Status string
	Bound  []boundJob
}

// boundJob is a job that asks for tags that a worker has.
type boundJob struct {
	Id string
	// Chosen says that its iterations go to this worker, and to no other.
	Chosen bool
}

type workersView struct {
	Charts        *chartsView
	Workers       []workerRow
	UnservedTypes []*jobsv1.UnservedType
	UnservedTags  []unservedTags
}

// unservedTags are tags that no worker has, as text.
type unservedTags struct {
	JobType, Tags string
	Jobs          int32
}

func (p *Page) workers(r *http.Request) (*document, error) {
	o, err := p.readOverview(r.Context(), 1)
	if err != nil {
		return nil, err
	}
	data := workersView{UnservedTypes: o.GetUnservedTypes()}
	for _, worker := range o.GetWorkers() {
		data.Workers = append(data.Workers, workerRow{Worker: worker, Status: word(worker.GetStatus()), Bound: boundJobs(worker, o.GetJobs())})
	}
	for _, unserved := range o.GetUnservedTags() {
		tags, err := json.Marshal(unserved.GetTags())
		if err != nil {
			return nil, err
		}
		data.UnservedTags = append(data.UnservedTags, unservedTags{unserved.GetJobType(), string(tags), unserved.GetJobs()})
	}
	var kinds []string
	for _, worker := range o.GetWorkers() {
		kinds = append(kinds, worker.GetType())
	}
	slices.Sort(kinds)
	data.Charts = p.charts(r, workerSeries, slices.Compact(kinds)...)
	return &document{
		Title: "Workers", View: "workers", Section: "/workers", Revision: p.revision(o), Follow: []string{"workers", "jobs"}, Chart: true, Data: data,
	}, nil
}

// boundJobs are the jobs that are bound to a worker: its iterations go there, or it has the
// tags that they ask for.
func boundJobs(worker *jobsv1.Worker, jobs []*jobsv1.JobOverview) []boundJob {
	var bound []boundJob
	for _, j := range jobs {
		if len(j.GetBind()) == 0 || hasEnded(j.GetStatus()) || !slices.Contains(worker.GetJobTypes(), j.GetType()) {
			continue
		}
		if j.GetService() == worker.GetName() {
			bound = append(bound, boundJob{Id: j.GetId(), Chosen: true})
		} else if j.GetService() == "" && hasTags(worker.GetTags(), j.GetBind()) {
			bound = append(bound, boundJob{Id: j.GetId()})
		}
	}
	return bound
}

// hasEnded reports whether a job has no more runs ahead of it.
func hasEnded(status jobsv1.JobStatus) bool {
	switch status {
	case jobsv1.JobStatus_JOB_STATUS_COMPLETED, jobsv1.JobStatus_JOB_STATUS_FAILED, jobsv1.JobStatus_JOB_STATUS_STOPPED,
		jobsv1.JobStatus_JOB_STATUS_TERMINATED, jobsv1.JobStatus_JOB_STATUS_DELETED:
		return true
	}
	return false
}

// hasTags reports whether all tags that are wanted are among the others.
func hasTags(tags, wanted map[string]string) bool {
	for name, value := range wanted {
		if tags[name] != value {
			return false
		}
	}
	return true
}
