package top

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/starter/columns"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// pane is one of the lists.
type pane int

const (
	paneAlerts pane = iota
	paneJobs
	paneQueues
	paneLoads
	paneWorkers
	paneIntegrations
	panes
)

// title is the name of a pane.
func (p pane) title() string {
	return [...]string{"alerts", "jobs", "queues", "loads", "workers", "integrations"}[p]
}

// row is a line of a pane.
type row struct {
	// name is that of what it shows, for actions.
	name  string
	cells []string
	// urgent rows are painted.
	urgent bool
	alert  *jobsv1.Alert
	// of decides on the keys of a job and of a queue.
	of verbs.Subject
}

// text is all that a filter looks at.
func (r row) text() string { return strings.ToLower(strings.Join(r.cells, " ")) }

// clock turns times into text.
type clock struct {
	now      time.Time
	location *time.Location
}

// ago is how long ago a time was.
func (c clock) ago(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	return short(c.now.Sub(t.AsTime()))
}

// in is how long it is until a time: a time that has come is now.
func (c clock) in(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	if left := t.AsTime().Sub(c.now); left > 0 {
		return short(left)
	}
	return "now"
}

// short is a duration in its largest unit.
func short(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// word is the name of a value of an enum without its prefix, as JOB_STATUS_FAILING is failing.
func word(name fmt.Stringer, prefix string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name.String(), prefix)), "_", " ")
}

// fit gives the lines of a header and of rows, as wide as a screen, and the columns that
// there was no room for.
func (p pane) fit(rows []row, width int) (lines, left []string) {
	cells := make([][]string, len(rows))
	for n, r := range rows {
		cells[n] = r.cells
	}
	return columns.Fit(p.header(), cells, p.spares(), width)
}

// spares are the columns that a narrow screen does without, the least important first.
func (p pane) spares() []string {
	switch p {
	case paneAlerts:
		return []string{"OWNER", "HELPS", "SEVERITY", "SINCE"}
	case paneJobs:
		return []string{"TAKES", "NEXT", "OK", "LATEST RUNS", "NOTE"}
	case paneQueues:
		return []string{"HOUR", "RUNNING", "OLDEST", "DEAD", "NOTE"}
	case paneLoads:
		return []string{"POINTS/S", "LAG", "QUARANTINED", "NOTE"}
	case paneWorkers:
		return []string{"TAGS", "VERSION", "POLLED"}
	case paneIntegrations:
		return []string{"TYPE", "STATION", "ORGANIZATION", "NOTE"}
	}
	return nil
}

// header and rows give a pane's columns, the most important first after the name.
func (p pane) header() []string {
	switch p {
	case paneAlerts:
		return []string{"OBJECT", "SEVERITY", "SINCE", "WHAT", "HELPS", "OWNER"}
	case paneJobs:
		return []string{"JOB", "STATUS", "LATEST RUNS", "OK", "NEXT", "TAKES", "NOTE"}
	case paneQueues:
		return []string{"QUEUE", "STATUS", "WAITING", "OLDEST", "RUNNING", "HOUR", "DEAD", "NOTE"}
	case paneLoads:
		return []string{"LOAD", "STATUS", "WAITING", "LAG", "POINTS/S", "QUARANTINED", "NOTE"}
	case paneWorkers:
		return []string{"WORKER", "STATUS", "RUNNING", "POLLED", "VERSION", "TAGS"}
	case paneIntegrations:
		return []string{"CONFIG", "STATUS", "TYPE", "ORGANIZATION", "STATION", "NOTE"}
	}
	return nil
}

// count is how many rows there are: of alerts, those that are not silenced.
func (p pane) count(rows []row) int {
	n := len(rows)
	if p == paneAlerts {
		n = 0
		for _, r := range rows {
			if r.urgent {
				n++
			}
		}
	}
	return n
}

// away reports whether a job is left out: it has ended, or its queue tells of it.
func away(j *jobsv1.JobOverview) bool { return j.GetEnded() || readmodel.InQueue(j) }

// leftOut counts the jobs that are left out.
func leftOut(o *jobsv1.Overview) int {
	n := 0
	for _, j := range o.GetJobs() {
		if away(j) {
			n++
		}
	}
	return n
}

// rows are those of the pane, with all jobs or without those that are left out.
func (p pane) rows(o *jobsv1.Overview, c clock, all bool) []row {
	var rows []row
	switch p {
	case paneAlerts:
		for _, group := range readmodel.GroupAlerts(o.GetAlerts()) {
			rows = append(rows, alertRow(group, c))
		}
	case paneJobs:
		for _, job := range o.GetJobs() {
			if all || !away(job) {
				rows = append(rows, jobRow(job, c))
			}
		}
	case paneQueues:
		for _, queue := range o.GetQueues() {
			rows = append(rows, queueRow(queue, c))
		}
	case paneLoads:
		for _, load := range o.GetLoads() {
			rows = append(rows, loadRow(load, c))
		}
	case paneWorkers:
		for _, worker := range o.GetWorkers() {
			rows = append(rows, workerRow(worker, c))
		}
	case paneIntegrations:
		for _, integration := range o.GetIntegrations() {
			rows = append(rows, integrationRow(integration, c))
		}
	}
	return rows
}

// alertRow is a row of an alert with all that it explains.
func alertRow(g readmodel.AlertGroup, c clock) row {
	a := g.Alert
	helps := make([]string, len(a.GetActions()))
	for n, action := range a.GetActions() {
		helps[n] = word(action, "ALERT_ACTION_")
	}
	text := a.GetText()
	if extent := g.Extent(); extent != "" {
		text += " (" + extent + ")"
	}
	if a.GetSilence() != "" {
		text = fmt.Sprintf("(silenced by %s for %s) %s", a.GetSilencedBy(), short(a.GetSilencedUntil().AsTime().Sub(c.now)), text)
	}
	return row{
		name: a.GetObject(), urgent: a.GetSilence() == "", alert: a,
		cells: []string{a.GetObject(), api.Word(a.GetSeverity()), c.ago(a.GetFireTime()), text, strings.Join(helps, ", "), a.GetOwner()},
	}
}

func jobRow(j *jobsv1.JobOverview, c clock) row {
	takes := "-"
	if j.GetMedianDuration() != nil {
		takes = short(j.GetMedianDuration().AsDuration())
	}
	return row{
		name: j.GetId(), urgent: urgentJob(j.GetStatus()), of: verbs.OfOverview(j),
		cells: []string{
			j.GetId(), word(j.GetStatus(), "JOB_STATUS_"), j.GetOutcomes(), c.ago(j.GetLastSuccessTime()),
			c.in(j.GetNextStartTime()), takes, j.GetReason(),
		},
	}
}

func urgentJob(s jobsv1.JobStatus) bool {
	return s == jobsv1.JobStatus_JOB_STATUS_FAILING || s == jobsv1.JobStatus_JOB_STATUS_FAILED || s == jobsv1.JobStatus_JOB_STATUS_TERMINATED
}

func queueRow(q *jobsv1.Queue, c clock) row {
	status := q.GetStatus()
	return row{
		name: q.GetName(), of: verbs.OfQueue(q),
		urgent: status == jobsv1.QueueStatus_QUEUE_STATUS_HALTED || status == jobsv1.QueueStatus_QUEUE_STATUS_ENDED,
		cells: []string{
			q.GetName(), word(status, "QUEUE_STATUS_"), fmt.Sprint(q.GetWaiting()), c.ago(q.GetOldestTime()),
			q.GetRunning().GetJobId(), fmt.Sprint(q.GetRanLastHour()), fmt.Sprint(q.GetDeadLetters()), q.GetReason(),
		},
	}
}

func loadRow(l *jobsv1.Load, c clock) row {
	return row{
		name: readmodel.LoadName(l), urgent: l.GetStatus() != jobsv1.LoadStatus_LOAD_STATUS_OK,
		cells: []string{
			readmodel.LoadName(l), word(l.GetStatus(), "LOAD_STATUS_"), fmt.Sprint(l.GetWaiting()), c.ago(l.GetOldestTime()),
			fmt.Sprintf("%.0f", l.GetPointsPerSecond()), fmt.Sprint(l.GetQuarantined()), wrongWithLoad(l),
		},
	}
}

func wrongWithLoad(l *jobsv1.Load) string {
	if l.GetErrorMessage() == "" && l.GetRefusingTime() != nil {
		return api.Refusals(l)
	}
	return l.GetErrorMessage()
}

func workerRow(w *jobsv1.Worker, c clock) row {
	tags := make([]string, 0, len(w.GetTags()))
	for _, name := range slices.Sorted(maps.Keys(w.GetTags())) {
		tags = append(tags, name+"="+w.GetTags()[name])
	}
	return row{
		name: readmodel.WorkerName(w), urgent: w.GetStatus() == jobsv1.WorkerStatus_WORKER_STATUS_LOST,
		cells: []string{
			readmodel.WorkerName(w), word(w.GetStatus(), "WORKER_STATUS_"), fmt.Sprintf("%d of %d", w.GetRunning(), w.GetSlots()),
			c.ago(w.GetLastPollTime()), w.GetVersion(), strings.Join(tags, " "),
		},
	}
}

func integrationRow(i *jobsv1.IntegrationOverview, c clock) row {
	return row{
		name: i.GetName(), urgent: readmodel.IntegrationFails(i, c.now),
		cells: []string{i.GetName(), word(i.GetState(), "INTEGRATION_STATE_"), i.GetType(), i.GetOrganization(), i.GetStation(), i.GetReason()},
	}
}
