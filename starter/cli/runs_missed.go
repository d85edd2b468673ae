package cli

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/client"
)

// missedSince is the default of --since for missed starts.
const missedSince = 24 * time.Hour

// shownReports bounds the jobs that are summed up.
const shownReports = 10

func (i *invocation) listMissed(cmd *cobra.Command, filter *runFilters, limit int) error {
	for _, name := range filter.given(cmd) {
		if !slices.Contains([]string{"job", "type", "owner", "tag", "since"}, name) {
			return misuse(cmd, "--%s cannot be combined with --missed", name)
		}
	}
	since := filter.since
	if since.IsZero() {
		since = i.Now().Add(-missedSince)
	}
	c, err := i.connect(cmd.Context())
	if err != nil {
		return err
	}
	report, err := c.Jobs.Missed(cmd.Context(), client.MissedFilter{
		JobID: filter.jobID, Type: filter.jobType(i), Owner: filter.owner.String(), Tags: filter.tags, Since: since,
	})
	if err != nil {
		return aboutJob(c, filter.jobID, err)
	}
	if err := filter.checkMatch(i, len(report.Jobs)); err != nil {
		return err
	}
	all := len(report.Missed)
	if limit > 0 && all > limit {
		report.Missed = report.Missed[:limit]
	}
	if err := i.emit(report, func(w io.Writer) error { return i.writeMissed(w, report) }); err != nil {
		return err
	}
	if all > len(report.Missed) {
		i.note("The latest %d of %d; --limit 0 lists all.", len(report.Missed), all)
	}
	return nil
}

func (i *invocation) writeMissed(w io.Writer, report *client.StartsReport) error {
	t := newTable("JOB", "DUE", "REASON", "DETAIL")
	for _, start := range report.Missed {
		t.add(start.JobID, i.when(start.Scheduled), string(start.Reason), start.Detail)
	}
	if err := t.write(w); err != nil {
		return err
	}
	if i.noteEmpty("recurring job", len(report.Jobs)) {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	shown := 0
	for _, starts := range report.Jobs {
		if len(report.Jobs) > shownReports && starts.Missed == 0 {
			continue
		}
		if shown++; shown > shownReports {
			continue
		}
		if err := i.writeJobStarts(w, starts); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s since %s: %d without a run.\n",
		plural(len(report.Jobs), "recurring job", "recurring jobs"), i.moment(report.Since), countMissed(report))
	return err
}

func countMissed(report *client.StartsReport) int {
	missed := 0
	for _, starts := range report.Jobs {
		missed += starts.Missed
	}
	return missed
}

func (i *invocation) writeJobStarts(w io.Writer, a client.JobStarts) error {
	waiting := ""
	if a.Waiting > 0 {
		waiting = fmt.Sprintf(", %d waiting", a.Waiting)
	}
	_, err := fmt.Fprintf(w, "%s: %s since %s, %s%s, %d missed. The server counted, since %s: %d overlaps, %d outside the catch-up window, %d at a full buffer.\n",
		clean(a.JobID), plural(a.Scheduled, "start", "starts"), i.moment(a.From), plural(a.Runs, "run", "runs"), waiting, a.Missed,
		i.moment(a.ServerSince), a.ServerOverlap, a.ServerWindow, a.ServerBuffer)
	return err
}
