package top

import (
	"fmt"
	"io"
	"strings"
	"time"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Write writes an overview as plain text, with tables as wide as they are.
func Write(w io.Writer, o *jobsv1.Overview, now time.Time, location *time.Location) error {
	var b strings.Builder
	c := clock{now, location}
	b.WriteString(servers(o, c) + "\n" + counts(o) + "\n")
	for _, note := range o.GetNotes() {
		b.WriteString(printable(note) + "\n")
	}
	for p := range panes {
		rows := p.rows(o, c)
		if len(rows) == 0 && p != paneAlerts {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", strings.ToUpper(p.title()))
		if len(rows) == 0 {
			b.WriteString("Nothing needs you.\n")
			continue
		}
		widths := columnWidths(p.header(), rows, 0)
		b.WriteString(line(p.header(), widths) + "\n")
		for _, r := range rows {
			b.WriteString(line(r.cells, widths) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// servers is the line about the servers.
func servers(o *jobsv1.Overview, c clock) string {
	parts := []string{"as of " + o.GetReadTime().AsTime().In(c.location).Format(time.TimeOnly)}
	for _, server := range o.GetServers() {
		state := "up " + server.GetLatency().AsDuration().Round(time.Millisecond).String()
		if !server.GetUp() {
			state = "DOWN: " + printable(server.GetErrorMessage())
		}
		parts = append(parts, server.GetName()+" "+state)
	}
	return strings.Join(parts, " · ")
}

// counts is the line about how much there is.
func counts(o *jobsv1.Overview) string {
	byStatus := map[jobsv1.JobStatus]int{}
	for _, job := range o.GetJobs() {
		byStatus[job.GetStatus()]++
	}
	jobs := fmt.Sprintf("%d jobs", len(o.GetJobs()))
	for _, status := range []jobsv1.JobStatus{
		jobsv1.JobStatus_JOB_STATUS_FAILING, jobsv1.JobStatus_JOB_STATUS_FAILED, jobsv1.JobStatus_JOB_STATUS_RUNNING,
		jobsv1.JobStatus_JOB_STATUS_WAITING, jobsv1.JobStatus_JOB_STATUS_PAUSED,
	} {
		if byStatus[status] > 0 {
			jobs += fmt.Sprintf(", %d %s", byStatus[status], word(status, "JOB_STATUS_"))
		}
	}
	parts := []string{jobs, fmt.Sprintf("%d queues", len(o.GetQueues())), fmt.Sprintf("%d loads", len(o.GetLoads())), fmt.Sprintf("%d workers", len(o.GetWorkers()))}
	for _, unserved := range o.GetUnservedTypes() {
		parts = append(parts, "no worker serves "+unserved.GetJobType())
	}
	if drift := o.GetDrift().GetJobs(); drift > 0 {
		parts = append(parts, fmt.Sprintf("drift of %d jobs", drift))
	}
	return strings.Join(parts, " · ")
}
