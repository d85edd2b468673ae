package page

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// column is what the grid shows of a job.
type column struct {
	Name, Title string
	// cell is what it shows; nil of a column that all grids have.
	cell func(*jobsv1.JobOverview) template.HTML
	// order is what its rows are ordered by, "" if that is not known. Numbers have leading
	// zeros.
	order func(*jobsv1.JobOverview) string
}

// fixedColumns are those that all grids have, and columns those to choose from.
var (
	fixedColumns = []column{
		{Name: "id", Title: "Job", order: (*jobsv1.JobOverview).GetId},
		{Name: "status", Title: "Status", order: func(j *jobsv1.JobOverview) string { return number(int64(urgency(j.GetStatus()))) }},
	}
	columns = []column{
		{"next", "Next start", ofTime((*jobsv1.JobOverview).GetNextStartTime, short), orderOfTime((*jobsv1.JobOverview).GetNextStartTime)},
		{"median", "Median", median, orderOfMedian},
		{"success", "Last success", ofTime((*jobsv1.JobOverview).GetLastSuccessTime, brief), orderOfTime((*jobsv1.JobOverview).GetLastSuccessTime)},
		{"fresh", "Fresh until", freshness, orderOfTime(freshUntil)},
		{"schedule", "Schedule", ofText((*jobsv1.JobOverview).GetSchedule), (*jobsv1.JobOverview).GetSchedule},
		{"owner", "Owner", ofText((*jobsv1.JobOverview).GetOwner), (*jobsv1.JobOverview).GetOwner},
	}
	defaultColumns = "next,median"
)

// urgent are the statuses that stand first, if rows are ordered by status.
var urgent = []jobsv1.JobStatus{
	jobsv1.JobStatus_JOB_STATUS_FAILING, jobsv1.JobStatus_JOB_STATUS_FAILED, jobsv1.JobStatus_JOB_STATUS_TERMINATED,
	jobsv1.JobStatus_JOB_STATUS_WAITING, jobsv1.JobStatus_JOB_STATUS_PAUSED, jobsv1.JobStatus_JOB_STATUS_CANCELING,
	jobsv1.JobStatus_JOB_STATUS_RUNNING, jobsv1.JobStatus_JOB_STATUS_SCHEDULED,
}

func urgency(status jobsv1.JobStatus) int {
	if at := slices.Index(urgent, status); at >= 0 {
		return at
	}
	return len(urgent) + int(status)
}

func number(n int64) string { return fmt.Sprintf("%019d", n) }

func ofTime(of func(*jobsv1.JobOverview) *timestamppb.Timestamp, show func(*timestamppb.Timestamp) template.HTML) func(*jobsv1.JobOverview) template.HTML {
	return func(j *jobsv1.JobOverview) template.HTML {
		if t := of(j); t != nil {
			return show(t)
		}
		return ""
	}
}

func ofText(of func(*jobsv1.JobOverview) string) func(*jobsv1.JobOverview) template.HTML {
	return func(j *jobsv1.JobOverview) template.HTML {
		return template.HTML(template.HTMLEscapeString(of(j))) //nolint:gosec // It is escaped.
	}
}

func orderOfTime(of func(*jobsv1.JobOverview) *timestamppb.Timestamp) func(*jobsv1.JobOverview) string {
	return func(j *jobsv1.JobOverview) string {
		if t := of(j); t != nil {
			return number(t.AsTime().UnixNano())
		}
		return ""
	}
}

func median(j *jobsv1.JobOverview) template.HTML {
	if j.GetMedianDuration() == nil {
		return ""
	}
	return template.HTML(took(j.GetMedianDuration())) //nolint:gosec // There are figures and units in it alone.
}

func orderOfMedian(j *jobsv1.JobOverview) string {
	if j.GetMedianDuration() == nil {
		return ""
	}
	return number(int64(j.GetMedianDuration().AsDuration()))
}

// freshUntil is when the latest success gets too old, nil without such a limit. A paused job
// is never late.
func freshUntil(j *jobsv1.JobOverview) *timestamppb.Timestamp {
	if j.GetFreshness() == nil || j.GetStatus() == jobsv1.JobStatus_JOB_STATUS_PAUSED {
		return nil
	}
	until := api.FreshUntil(j)
	if until.IsZero() {
		return nil
	}
	return timestamppb.New(until)
}

func freshness(j *jobsv1.JobOverview) template.HTML {
	until := freshUntil(j)
	switch {
	case until == nil:
		return ""
	case until.AsTime().Before(time.Now()):
		return `<span class="over">` + brief(until) + `</span>`
	}
	return brief(until)
}

// layout is how the grid is laid out, as the address of the page says it.
type layout struct {
	Columns []column
	// Sort is the name of a column, or -NAME for the other way around; "" means by id.
	Sort string
}

func readLayout(values url.Values) layout {
	l := layout{Sort: values.Get("sort")}
	chosen := defaultColumns
	if values.Has("columns") {
		chosen = strings.Join(values["columns"], ",")
	}
	names := strings.Split(chosen, ",")
	for _, c := range columns {
		if slices.Contains(names, c.Name) {
			l.Columns = append(l.Columns, c)
		}
	}
	if _, known := l.sorted(); !known || l.Sort == "id" {
		l.Sort = ""
	}
	return l
}

// sorted is the column that the rows are ordered by.
func (l layout) sorted() (column, bool) {
	for _, c := range slices.Concat(fixedColumns, columns) {
		if c.Name == strings.TrimPrefix(l.Sort, "-") {
			return c, true
		}
	}
	return fixedColumns[0], l.Sort == ""
}

// Names are the columns that were chosen, as the address has them.
func (l layout) Names() string {
	names := make([]string, len(l.Columns))
	for i, c := range l.Columns {
		names[i] = c.Name
	}
	return strings.Join(names, ",")
}

// Fields are the layout as values of a form, as far as it is not the default one.
func (l layout) Fields() []field {
	var fields []field
	if names := l.Names(); names != defaultColumns {
		fields = append(fields, field{"columns", names})
	}
	if l.Sort != "" {
		fields = append(fields, field{"sort", l.Sort})
	}
	return fields
}

// order is what a row is ordered by; "" if rows are in the order of ids, which they have.
func (l layout) order(j *jobsv1.JobOverview) string {
	if l.Sort == "" {
		return ""
	}
	by, _ := l.sorted()
	return by.order(j)
}

// sort orders rows. Those of which it is not known by what come last, either way.
func (l layout) sort(rows []row) {
	if l.Sort == "" {
		return
	}
	way := 1
	if strings.HasPrefix(l.Sort, "-") {
		way = -1
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		if (a.Order == "") != (b.Order == "") {
			return cmp.Compare(b.Order, a.Order)
		}
		return way * cmp.Compare(a.Order, b.Order)
	})
}

// cell is what a row has in a column that was chosen.
type cell struct {
	Name, Title string
	Value       template.HTML
}

func (l layout) cells(j *jobsv1.JobOverview) []cell {
	cells := make([]cell, len(l.Columns))
	for i, c := range l.Columns {
		cells[i] = cell{c.Name, c.Title, c.cell(j)}
	}
	return cells
}

// head is the head of a column, with the address that orders the rows by it.
type head struct {
	Name, Title, Link string
	// Way is ascending or descending, and Next what a click orders by.
	Way, Next string
}

// heads are those of some columns. link makes the address of a page whose field is other.
func (l layout) heads(of []column, link func(name, value string) string) []head {
	heads := make([]head, len(of))
	for i, c := range of {
		h := head{Name: c.Name, Title: c.Title, Next: c.Name}
		switch {
		case l.Sort == c.Name, l.Sort == "" && c.Name == "id":
			h.Way, h.Next = "ascending", "-"+c.Name
		case l.Sort == "-"+c.Name:
			h.Way = "descending"
		}
		h.Link = link("sort", h.Next)
		heads[i] = h
	}
	return heads
}

// choices are the columns to choose from.
func (l layout) choices() []choice {
	var choices []choice
	for _, c := range columns {
		choices = append(choices, choice{
			Value: c.Name, Label: c.Title, Chosen: slices.ContainsFunc(l.Columns, func(other column) bool { return other.Name == c.Name }),
		})
	}
	return choices
}
