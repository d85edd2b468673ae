package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

func (i *invocation) backfillCommand() *cobra.Command {
	var from, to time.Time
	cmd := i.verbCommand(verbs.BackfillJob, verbHelp{"Run a recurring job for starts in the past", `backfill runs a recurring job for each of its starts from --from to --to, both
included, one after the other, even if the job is paused. It shows their number and
asks. Without a terminal, and with -o json, it needs --yes. More than 1000 starts are
refused. A start that has run already runs again.`},
		func(ctx context.Context, a verbs.Args, yes bool) error {
			a.Start, a.End = from, to
			return i.backfill(ctx, a, yes)
		}, "JOB")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		until := to
		if to.IsZero() {
			until = i.Now() // By this clock: the end of the request is the server's now.
		}
		switch {
		case from.IsZero():
			return misuse(cmd, "--from is missing")
		case from.After(until):
			return misuse(cmd, "--from %s is after --to %s", utc(from), utc(until))
		}
		return nil
	}
	cmd.Flags().Var(sinceValue{&from, i.Now}, "from", "the first start: 2026-05-01T12:00:00Z, or PT1H for an hour ago")
	cmd.Flags().Var(sinceValue{&to, i.Now}, "to", "the last start, likewise (default: now)")
	return cmd
}

// backfill asks, unless yes is set, and then runs a job for past starts.
func (i *invocation) backfill(ctx context.Context, a verbs.Args, yes bool) error {
	a.Preview = true
	preview, err := i.do(ctx, verbs.BackfillJob, a)
	if err != nil {
		return err
	}
	answer, _ := preview.Answer.(*jobsv1.BackfillJobResponse) // The row has this type.
	starts := answer.GetStartTimes()
	if len(starts) == 0 {
		return i.tell(preview)
	}
	if !yes {
		if err := i.ask(ctx, preview.Text, "backfill", "to start "+plural(len(starts), "run", "runs"), "nothing was started"); err != nil {
			return err
		}
	}
	a.Preview, a.End = false, starts[len(starts)-1].AsTime() // No start that was not shown.
	done, err := i.do(ctx, verbs.BackfillJob, a)
	if err != nil {
		return err
	}
	return i.tell(done)
}
