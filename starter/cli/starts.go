package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
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
			if count < 1 || count > client.MaxStarts {
				return misuse(cmd, "-n %d is not from 1 to %d", count, client.MaxStarts)
			}
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			next, err := c.Jobs.NextStarts(cmd.Context(), args[0], count)
			if err != nil {
				return aboutJob(c, args[0], err)
			}
			return i.emit(next, func(w io.Writer) error { return i.writeNext(w, next) })
		},
	}
	cmd.Flags().IntVarP(&count, "count", "n", 10, "how many starts, up to 1000")
	return cmd
}

func (i *invocation) writeNext(w io.Writer, next *client.NextStarts) error {
	if next.Paused {
		i.note("Job %s is paused (%s): it does not start until it is resumed.", next.JobID, next.PauseReason)
	}
	if !next.HeldUntil.IsZero() {
		i.note("Job %s is failing: starts before %s are held back.", next.JobID, utc(next.HeldUntil))
	}
	for _, skip := range next.Skipped {
		i.note("The start of %s is skipped by %s.", utc(skip.At), skip.By)
	}
	if len(next.Starts) == 0 {
		_, err := fmt.Fprintf(w, "Job %s has no more starts.\n", next.JobID)
		return err
	}
	zone, err := time.LoadLocation(next.TimeZone)
	if err != nil {
		zone = time.UTC
	}
	header := []string{"LOCAL TIME", "UTC", "WHEN"}
	if zone.String() != i.Location.String() && next.TimeZone != "UTC" {
		header = append(header, strings.ToUpper(next.TimeZone))
	}
	now := i.Now()
	t := newTable(header...)
	for _, at := range next.Starts {
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
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			upcoming, err := c.Jobs.Upcoming(cmd.Context(), time.Now().Add(within.Std()),
				client.JobFilter{Type: filter.jobType(i), Owner: filter.owner.String()})
			if err != nil {
				return err
			}
			if err := filter.checkMatch(i, upcoming.Count); err != nil {
				return err
			}
			if limit > 0 {
				upcoming.Starts = upcoming.Starts[:min(limit, len(upcoming.Starts))]
			}
			return i.emit(upcoming, func(w io.Writer) error { return i.writeUpcoming(w, upcoming, within) })
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

func (i *invocation) writeUpcoming(w io.Writer, upcoming *client.Upcoming, within job.Duration) error {
	t := newTable("AT", "JOB", "TYPE", "OWNER")
	if i.noteEmpty("start", upcoming.Count) {
		return t.write(w)
	}
	for _, start := range upcoming.Starts {
		t.add(i.when(start.At), start.JobID, start.Type, start.Owner)
	}
	if err := t.write(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s of %s within %s; at most %d in one second, at %s.\n",
		plural(upcoming.Count, "start", "starts"), plural(upcoming.Jobs, "job", "jobs"), within, upcoming.PeakCount, upcoming.Peak.In(i.Location).Format(time.TimeOnly))
	if more := upcoming.Count - len(upcoming.Starts); err == nil && more > 0 {
		i.note("%d more; --limit 0 lists all.", more)
	}
	return err
}

func (i *invocation) skipNextCommand() *cobra.Command {
	var by string
	cmd := &cobra.Command{
		Use:   "skip-next JOB",
		Short: "Skip the next start of a recurring job",
		Long: `skip-next skips the next start of a recurring job, and shows which one it is and
which is the next. Repeated, it skips the start after that. apply keeps the skip until
its time has passed.

Where clocks are turned back, both starts at a repeated time are skipped.`,
		Args:              arguments("JOB"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			if by == "" {
				by = cmp.Or(userName(), "someone")
			}
			result, err := c.Jobs.SkipNext(cmd.Context(), args[0], by)
			if err != nil {
				return aboutJob(c, args[0], err)
			}
			return i.emit(result, func(w io.Writer) error {
				next := "no start is left"
				if !result.Next.IsZero() {
					next = "the next start is " + utc(result.Next)
				}
				_, err := fmt.Fprintf(w, "Job %s: the start of %s is skipped; %s.\n", args[0], utc(result.Skipped), next)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&by, "by", "", "who skips it, for starter jobs next (default: your user name)")
	return cmd
}

// backfilled is what backfill did, as JSON.
type backfilled struct {
	JobID string    `json:"job_id"`
	Runs  int       `json:"runs"`
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
}

func (i *invocation) backfillCommand() *cobra.Command {
	var from, to time.Time
	var yes bool
	cmd := &cobra.Command{
		Use:   "backfill JOB",
		Short: "Run a recurring job for starts in the past",
		Long: `backfill runs a recurring job for each of its starts from --from to --to, both
included, one after the other, even if the job is paused. It shows their number and
asks. Without a terminal, and with -o json, it needs --yes. More than 1000 starts are
refused. A start that has run already runs again.`,
		Args:              arguments("JOB"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case from.IsZero():
				return misuse(cmd, "--from is missing")
			case to.IsZero():
				to = i.Now()
			}
			if from.After(to) {
				return misuse(cmd, "--from %s is after --to %s", utc(from), utc(to))
			}
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			starts, err := c.Jobs.BackfillStarts(cmd.Context(), args[0], from, to)
			if err != nil {
				return aboutJob(c, args[0], err)
			}
			result := backfilled{JobID: args[0], Runs: len(starts)}
			if len(starts) == 0 {
				return i.emit(result, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "Job %s has no start from %s to %s.\n", args[0], utc(from), utc(to))
					return err
				})
			}
			result.First, result.Last = starts[0], starts[len(starts)-1]
			if !yes {
				question := fmt.Sprintf("Run job %s %s, for its starts from %s to %s?", args[0], plural(len(starts), "time", "times"), utc(result.First), utc(result.Last))
				if err := i.ask(cmd.Context(), question, "backfill", "to start "+plural(len(starts), "run", "runs"), "nothing was started"); err != nil {
					return err
				}
			}
			if _, err := c.Jobs.Backfill(cmd.Context(), args[0], from, to); err != nil {
				return aboutJob(c, args[0], err)
			}
			return i.emit(result, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "Job %s: %s requested, for its starts from %s to %s.\n",
					args[0], plural(len(starts), "run", "runs"), utc(result.First), utc(result.Last))
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.Var(sinceValue{&from, i.Now}, "from", "the first start: 2026-05-01T12:00:00Z, or PT1H for an hour ago")
	flags.Var(sinceValue{&to, i.Now}, "to", "the last start, likewise (default: now)")
	flags.BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}
