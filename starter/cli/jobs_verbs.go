package cli

import (
	"context"

	"github.com/spf13/cobra"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// jobVerbCommands are the commands of verbs that are done to jobs.
func (i *invocation) jobVerbCommands() []*cobra.Command {
	var commands []*cobra.Command
	for _, one := range []struct {
		verb *verbs.Verb
		help verbHelp
	}{
		{verbs.StopJob, verbHelp{"Stop the current run of a job", `stop asks the handler of a job to stop. The handler has the job's stop grace period
to save its position. The command does not wait for the end.

  one-shot     its run is canceled
  recurring    its current run is canceled; the schedule goes on
  continuous   its workflow ends; restart or the next apply starts it again
  queued       its run is canceled, or it leaves the queue if it waits`}},
		{verbs.RestartJob, verbHelp{"Restart a continuous job", `restart ends the current iteration of a continuous job and starts the next at
once. A continuous job that was stopped is started again. Jobs of other modes
are triggered instead.`}},
		{verbs.PauseJob, verbHelp{"Keep a job from running", `pause keeps a recurring or continuous job from running until it is resumed.

  recurring    no more runs are started; one under way goes on
  continuous   the current iteration is ended gracefully; no more are started

One-shot and queued jobs cannot be paused: stop them, or pause the queue. apply
keeps a pause. Pausing a paused job adds a reason; one resume ends all pauses.`}},
		{verbs.ResumeJob, verbHelp{"Resume a paused job", `resume ends the pause of a job. A recurring job does not run the starts that it
missed. A continuous job starts an iteration at once and resets its count of
failures. If the job is not paused, the command says so and changes nothing. To run
a failing recurring job before its next run, trigger it.`}},
		{verbs.RunJob, verbHelp{"Run a job now, without waiting", `trigger starts a run of a job that is in Temporal, and does not wait for its end, as
run --detach.`}},
	} {
		commands = append(commands, i.bulkCommand(one.verb, one.help, i.jobsFor(one.verb)))
	}
	return commands
}

// jobsFor are the jobs that a verb may be done to.
func (i *invocation) jobsFor(v *verbs.Verb) things {
	f := &jobFilters{}
	return things{
		use: "JOB... | --type TYPE ...", name: "JOB", filters: &f.filters,
		register: func(cmd *cobra.Command) { f.register(i, cmd) },
		check:    func(*cobra.Command) error { return nil },
		find: func(ctx context.Context, names []string) ([]thing, error) {
			if len(names) == 0 {
				var err error
				if names, err = i.fittingJobs(ctx, f, v); err != nil {
					return nil, err
				}
			}
			found := make([]thing, len(names))
			for n, name := range names {
				found[n] = thing{name, name}
			}
			return found, nil
		},
	}
}

// fittingJobs finds the jobs that match and to which a verb applies.
func (i *invocation) fittingJobs(ctx context.Context, f *jobFilters, v *verbs.Verb) ([]string, error) {
	found, err := i.findJobs(ctx, f, &jobsv1.ListJobsRequest{Filter: f.query(i).String()}, 0)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, j := range found.GetJobs() {
		if v.AppliesAmong(verbs.OfJob(j)) {
			ids = append(ids, j.GetId())
		}
	}
	if left := len(found.GetJobs()) - len(ids); left > 0 {
		i.note("%s left out: there is nothing to %s.", plural(left, "job that matches is", "jobs that match are"), word(v))
	}
	return ids, nil
}

func (i *invocation) skipNextCommand() *cobra.Command {
	var by string
	cmd := i.verbCommand(verbs.SkipNextStart, verbHelp{"Skip the next start of a recurring job", `skip-next skips the next start of a recurring job, and shows which one it is and
which is the next. Repeated, it skips the start after that. apply keeps the skip until
its time has passed.

Where clocks are turned back, both starts at a repeated time are skipped.`},
		func(ctx context.Context, a verbs.Args, _ bool) error {
			if by == "" {
				by = userName()
			}
			if by == "" {
				by = "someone"
			}
			a.With = &jobsv1.SkipNextStartRequest{SkippedBy: by}
			done, err := i.do(ctx, verbs.SkipNextStart, a)
			if err != nil {
				return err
			}
			return i.tell(done)
		}, "JOB")
	cmd.Flags().StringVar(&by, "by", "", "who skips it, for starter jobs next (default: your user name)")
	return cmd
}
