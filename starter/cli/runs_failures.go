package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func (i *invocation) runsFailuresCommand() *cobra.Command {
	var since time.Time
	limit := 0
	cmd := &cobra.Command{
		Use:   "failures",
		Short: "Group the runs that failed lately",
		Long: `failures groups the runs that failed within the last day, and the continuous jobs that
fail now: by job type, error class and the text of the error without what differs, such as
numbers, times and addresses. The latest group comes first. To run the jobs of a group
again: starter runs retry --failure GROUP.

  GROUP   names the group, for --failure of other commands
  FAILED  how many runs
  JOBS    how many jobs
  NOW     of how many of them the latest run is one of these
  TEXT    the text of the error; … stands for what differs`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return misuse(cmd, "--limit is not below 0")
			}
			request := &jobsv1.ListFailuresRequest{Limit: int32(limit)} //nolint:gosec // Nobody asks for more.
			if !since.IsZero() {
				request.StartTime = timestamppb.New(since)
			}
			answer, err := i.api.Runs.ListFailures(cmd.Context(), request)
			if err != nil {
				return err
			}
			if !i.noteEmpty("failure", len(answer.GetGroups())) {
				i.note("All failures since %s.", i.when(answer.GetStartTime().AsTime()))
			}
			return i.emit(answer, func(w io.Writer) error {
				t := newTable("GROUP", "FAILED", "JOBS", "NOW", "FIRST", "LAST", "TYPE", "CLASS", "SUCH AS", "TEXT").
					spare("SUCH AS", "FIRST", "NOW", "TYPE").wrapLast()
				for _, g := range answer.GetGroups() {
					last := "fails now"
					if g.GetLastTime() != nil {
						last = i.when(g.GetLastTime().AsTime())
					}
					t.add(g.GetName(), fmt.Sprint(g.GetFailures()), fmt.Sprint(g.GetJobs()), fmt.Sprint(g.GetFailedJobs()),
						i.moment(toTime(g.GetFirstTime())), last, g.GetJobType(), g.GetErrorClass(), g.GetJobIds()[0], g.GetText())
				}
				return t.write(w)
			})
		},
	}
	cmd.Flags().Var(sinceValue{&since, i.Now}, "since", "only runs that ended since: 2026-05-01T12:00:00Z, or PT1H for the last hour; at most a day ago")
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many groups; 0: all")
	return cmd
}
