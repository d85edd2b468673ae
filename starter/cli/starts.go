package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func (i *invocation) jobsNextCommand() *cobra.Command {
	var count int
	cmd := &cobra.Command{
		Use:   "next JOB",
		Short: "Show when a recurring job starts next",
		Long: `next shows the coming starts of a recurring job as the server computes them, with
jitter. Skipped starts and daylight saving are taken into account.`,
		Args:              arguments("JOB"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if count < 1 || count > api.MaxStarts {
				return misuse(cmd, "-n %d is not from 1 to %d", count, api.MaxStarts)
			}
			next, err := i.api.Jobs.ListNextStarts(cmd.Context(), &jobsv1.ListNextStartsRequest{Id: args[0], Count: int32(count)})
			if err != nil {
				return err
			}
			return i.emit(next, func(w io.Writer) error { return i.writeNext(w, args[0], next) })
		},
	}
	cmd.Flags().IntVarP(&count, "count", "n", 10, "how many starts, up to 1000")
	return cmd
}

func (i *invocation) writeNext(w io.Writer, jobID string, next *jobsv1.ListNextStartsResponse) error {
	if next.GetPaused() {
		until := "until it is resumed"
		if end := toTime(next.GetPauseEndTime()); !end.IsZero() {
			until = "before " + utc(end)
		}
		i.note("Job %s is paused (%s): it does not start %s.", jobID, clean(next.GetPauseReason()), until)
	}
	if held := toTime(next.GetHeldUntilTime()); !held.IsZero() {
		i.note("Job %s is failing: starts before %s are held back.", jobID, utc(held))
	}
	for _, skip := range next.GetSkipped() {
		i.note("The start of %s is skipped by %s.", utc(toTime(skip.GetStartTime())), clean(skip.GetSkippedBy()))
	}
	if len(next.GetStartTimes()) == 0 {
		_, err := fmt.Fprintf(w, "Job %s has no more starts.\n", jobID)
		return err
	}
	zone, err := time.LoadLocation(next.GetTimeZone())
	if err != nil {
		zone = time.UTC
	}
	header := []string{"LOCAL TIME", "UTC", "WHEN"}
	if zone.String() != i.Location.String() && next.GetTimeZone() != "UTC" {
		header = append(header, strings.ToUpper(next.GetTimeZone()))
	}
	now := i.Now()
	t := newTable(header...)
	for _, start := range next.GetStartTimes() {
		at := toTime(start)
		cells := []string{local(at, i.Location), utc(at), relative(at.Sub(now))}
		if len(header) > len(cells) {
			cells = append(cells, local(at, zone))
		}
		t.add(cells...)
	}
	return t.write(w)
}

func local(at time.Time, zone *time.Location) string {
	return at.In(zone).Format("Mon 2006-01-02 15:04:05 MST")
}

// utc is a time in the form that flags take.
func utc(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func (i *invocation) upcomingCommand() *cobra.Command {
	within := job.Duration(time.Hour)
	var filter filters
	var limit int
	cmd := &cobra.Command{
		Use:   "upcoming",
		Short: "Show the next starts of all recurring jobs",
		Long: `upcoming lists the starts of all recurring jobs that are not paused, the next
first, with jitter. A change may take a second to appear.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			const most = job.Duration(24 * time.Hour)
			switch {
			case within > most:
				return misuse(cmd, "--within %s is longer than %s", within, most)
			case limit < 0:
				return misuse(cmd, "--limit %d is negative", limit)
			}
			upcoming, err := i.api.Jobs.ListUpcomingStarts(cmd.Context(), &jobsv1.ListUpcomingStartsRequest{
				EndTime: timestamppb.New(time.Now().Add(within.Std())), Filter: filter.query(i).String(),
			})
			if err != nil {
				return err
			}
			all := upcoming.GetStarts()
			if err := filter.checkMatch(i, len(all)); err != nil {
				return err
			}
			if limit > 0 {
				upcoming.Starts = all[:min(limit, len(all))]
			}
			return i.emit(upcoming, func(w io.Writer) error { return i.writeUpcoming(w, upcoming, all, within) })
		},
	}
	flags := cmd.Flags()
	flags.Var(durationOf(&within), "within", "how far to look ahead, at most a day")
	flags.Var(nameValue{&filter.typeName}, "type", "only jobs of this type, in CamelCase or snake_case")
	flags.Var(ownerValue{&filter.owner}, "owner", "only jobs of this owner: organization:NAME or user:NAME")
	flags.IntVar(&limit, "limit", 20, "show at most this many starts; 0: all")
	completeFixed(cmd, "type", i.typeNames()...)
	return cmd
}

// writeUpcoming shows the starts of a list, out of all there are.
func (i *invocation) writeUpcoming(w io.Writer, upcoming *jobsv1.ListUpcomingStartsResponse, all []*jobsv1.UpcomingStart, within job.Duration) error {
	t := newTable("AT", "JOB", "TYPE", "OWNER")
	if i.noteEmpty("start", len(all)) {
		return t.write(w)
	}
	for _, start := range upcoming.GetStarts() {
		t.add(i.when(toTime(start.GetStartTime())), start.GetJobId(), start.GetJobType(), start.GetOwner())
	}
	if err := t.write(w); err != nil {
		return err
	}
	jobs := map[string]bool{}
	for _, start := range all {
		jobs[start.GetJobId()] = true
	}
	_, err := fmt.Fprintf(w, "\n%s of %s within %s; at most %d in one second, at %s.\n",
		plural(len(all), "start", "starts"), plural(len(jobs), "job", "jobs"), within,
		upcoming.GetPeakCount(), toTime(upcoming.GetPeakTime()).In(i.Location).Format(time.TimeOnly))
	if more := len(all) - len(upcoming.GetStarts()); err == nil && more > 0 {
		i.note("%d more; --limit 0 lists all.", more)
	}
	return err
}
