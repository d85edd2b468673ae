package top

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Write writes an overview as plain text that is as wide as a screen, of any width if that
// is 0. Without all it leaves out jobs that have ended, and items of queues. It gives the names
// of the columns that there was no room for.
func Write(w io.Writer, o *jobsv1.Overview, now time.Time, location *time.Location, width int, all bool) (left []string, err error) {
	var b strings.Builder
	c := clock{now, location}
	for _, text := range append([]string{servers(o, c), counts(o)}, o.GetNotes()...) {
		b.WriteString(ansi.Wrap(plantext.Clean(text), width, "") + "\n")
	}
	for p := range panes {
		rows := p.rows(o, c, all)
		if len(rows) == 0 && p != paneAlerts {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", strings.ToUpper(p.title()))
		if len(rows) == 0 {
			b.WriteString("Nothing needs you.\n")
			continue
		}
		lines, dropped := p.fit(rows, width)
		for _, line := range lines {
			b.WriteString(line + "\n")
		}
		if n := leftOut(o); n > 0 && p == paneJobs && !all {
			fmt.Fprintf(&b, "%s left out: --all shows them.\n", plantext.Counted(n, "job that has ended or waits in a queue is", "jobs that have ended or wait in a queue are"))
		}
		for _, name := range dropped {
			if !slices.Contains(left, name) {
				left = append(left, name)
			}
		}
	}
	_, err = io.WriteString(w, b.String())
	return left, err
}

// servers is the line about the servers.
func servers(o *jobsv1.Overview, c clock) string {
	parts := []string{"as of " + o.GetReadTime().AsTime().In(c.location).Format(time.TimeOnly)}
	for _, server := range o.GetServers() {
		state := "up " + server.GetLatency().AsDuration().Round(time.Millisecond).String()
		if !server.GetUp() {
			state = "DOWN: " + plantext.Clean(server.GetErrorMessage())
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
