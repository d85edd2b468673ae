package cli

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// missedSince is the default of --since for missed starts.
const missedSince = 24 * time.Hour

// shownReports bounds the jobs that are summed up.
const shownReports = 10

func (i *invocation) listMissed(cmd *cobra.Command, filter *runFilters, limit int) error {
	for _, name := range filter.given(cmd) {
		if !slices.Contains([]string{"job", "type", "owner", "tag", "since", "until"}, name) {
			return misuse(cmd, "--%s cannot be combined with --missed", name)
		}
	}
	since := filter.since
	if since.IsZero() {
		since = i.Now().Add(-missedSince)
	}
	q := filter.filters.query(i)
	q.is("id", filter.jobID)
	request := &jobsv1.ListMissedStartsRequest{StartTime: timestamppb.New(since), Filter: q.String()}
	if !filter.until.IsZero() {
		request.EndTime = timestamppb.New(filter.until)
	}
	report, err := i.api.Jobs.ListMissedStarts(cmd.Context(), request)
	if err != nil {
		return err
	}
	if err := filter.checkMatch(i, len(report.GetCounts())); err != nil {
		return err
	}
	all := len(report.GetMissedStarts())
	if limit > 0 && all > limit {
		report.MissedStarts = report.GetMissedStarts()[:limit]
	}
	if err := i.emit(report, func(w io.Writer) error { return i.writeMissed(w, report, since) }); err != nil {
		return err
	}
	if all > len(report.GetMissedStarts()) {
		i.note("The latest %d of %d; --limit 0 lists all.", len(report.GetMissedStarts()), all)
	}
	return nil
}

func (i *invocation) writeMissed(w io.Writer, report *jobsv1.ListMissedStartsResponse, since time.Time) error {
	t := newTable("JOB", "DUE", "REASON", "DETAIL").spare("DETAIL")
	for _, start := range report.GetMissedStarts() {
		t.add(start.GetJobId(), i.when(toTime(start.GetStartTime())), wordOf(start.GetReason()), start.GetDetail())
	}
	if err := t.write(w); err != nil {
		return err
	}
	jobs := report.GetCounts()
	if i.noteEmpty("recurring job", len(jobs)) {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	shown := 0
	for _, starts := range jobs {
		if len(jobs) > shownReports && starts.GetMissed() == 0 {
			continue
		}
		if shown++; shown > shownReports {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s: %s.\n", clean(starts.GetJobId()), i.startCounts(starts)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s since %s: %d missed.\n",
		plural(len(jobs), "recurring job", "recurring jobs"), i.moment(since), countMissed(jobs))
	return err
}

func countMissed(jobs []*jobsv1.StartCounts) int {
	missed := 0
	for _, starts := range jobs {
		missed += int(starts.GetMissed())
	}
	return missed
}

// startCounts sums up the starts of a job.
func (i *invocation) startCounts(a *jobsv1.StartCounts) string {
	text := fmt.Sprintf("%s since %s, %s", plural(int(a.GetScheduled()), "start", "starts"), i.moment(toTime(a.GetStartTime())),
		plural(int(a.GetRuns()), "run", "runs"))
	if a.GetWaiting() > 0 {
		text += fmt.Sprintf(", %d waiting", a.GetWaiting())
	}
	if a.GetLeftOut() > 0 {
		text += fmt.Sprintf(", %d left out", a.GetLeftOut())
	}
	return text + fmt.Sprintf(", %d missed", a.GetMissed())
}
