package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules/control"
)

func jobStatuses() []control.JobStatus {
	return []control.JobStatus{
		control.JobScheduled, control.JobRunning, control.JobPaused, control.JobWaiting,
		control.JobCompleted, control.JobFailed, control.JobStopped,
	}
}

func (i *invocation) jobsCommand() *cobra.Command {
	return group("jobs", "List, describe and steer jobs",
		i.jobsListCommand(), i.jobsDescribeCommand(),
		i.verbCommand(verb{
			name: "stop", done: "told to stop", short: "End what a job does now",
			long: `stop ends what a job does now. Its handler is told, and has the job's stop grace
period to save its position; stop does not wait for it.

  one-shot     its run is canceled
  recurring    its current run is canceled; the schedule goes on
  continuous   it ends for good; restart or the next apply starts it again
  queued       its run is canceled, or it leaves the queue if it waits`,
			act: (*control.Client).Stop,
		}),
		i.verbCommand(verb{
			name: "restart", done: "told to restart", short: "Restart a continuous job",
			long: `restart ends the current iteration of a continuous job and starts the next at
once. A continuous job that was stopped is started again. Jobs of other modes
are triggered instead.`,
			act: (*control.Client).Restart,
		}),
		i.verbCommand(verb{
			name: "pause", done: "paused", short: "Keep a job from running",
			long: `pause keeps a recurring or continuous job from running until it is resumed.

  recurring    no more runs are started; one under way goes on
  continuous   the current iteration is ended gracefully; no more are started

One-shot and queued jobs cannot be paused: stop them, or pause the queue. A
pause is kept by apply.`,
			act: (*control.Client).Pause,
		}),
		i.verbCommand(verb{
			name: "resume", done: "resumed", short: "Let a paused job go on",
			long: `resume lets a paused job go on. What a recurring job missed meanwhile is not
made up for; a continuous job starts an iteration at once and forgets its
failures.`,
			act: (*control.Client).Resume,
		}),
		i.triggerCommand(), i.jobsNextCommand(), i.skipNextCommand(), i.backfillCommand(),
	)
}

func (i *invocation) jobsListCommand() *cobra.Command {
	var filter control.JobFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the jobs that Temporal knows",
		Long: `list shows the jobs that Temporal knows: all recurring ones, and the others as
long as their latest run is within the retention of the namespace. A change may
take a second to show. Which jobs wait in a queue only a live worker can tell.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			rows, unread, err := c.Jobs(cmd.Context(), filter)
			if err != nil {
				return err
			}
			for _, queue := range unread {
				i.note("What waits in queue %s is not shown: no worker answers.", queue)
			}
			return i.emit(list(rows), func(w io.Writer) error { return i.writeJobs(w, rows) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&filter.Type, "type", "", "only jobs of this type")
	flags.Var(choose(&filter.Mode, job.Modes()...), "mode", "only jobs of this mode: "+strings.Join(words(job.Modes()), ", "))
	flags.Var(choose(&filter.Status, jobStatuses()...), "status", "only jobs with this status: "+strings.Join(words(jobStatuses()), ", "))
	flags.StringVar(&filter.Owner, "owner", "", "only jobs of this owner: organization:NAME or user:NAME")
	completeFixed(cmd, "type", i.typeNames()...)
	completeFixed(cmd, "mode", words(job.Modes())...)
	completeFixed(cmd, "status", words(jobStatuses())...)
	return cmd
}

func (i *invocation) writeJobs(w io.Writer, rows []control.JobRow) error {
	t := newTable("JOB", "MODE", "STATUS", "LAST START", "NEXT", "OWNER", "NOTE")
	for _, row := range rows {
		note := row.PauseReason
		if row.Queue != "" {
			note = "queue " + row.Queue
		}
		t.add(row.ID, string(row.Mode), string(row.Status), i.when(row.LastStart), i.when(row.Next), row.Owner, note)
	}
	return t.write(w)
}

// verb is something that a job can be told.
type verb struct {
	name, done  string
	short, long string
	act         func(c *control.Client, ctx context.Context, jobID, reason string) error
}

// told is what a verb has done, as JSON.
type told struct {
	JobID  string `json:"job_id"`
	Done   string `json:"done"`
	Reason string `json:"reason"`
}

func (i *invocation) verbCommand(v verb) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               v.name + " JOB",
		Short:             v.short,
		Long:              v.long,
		Args:              arguments("JOB"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			if reason == "" {
				reason = defaultReason()
			}
			if err := v.act(c, cmd.Context(), args[0], reason); err != nil {
				return aboutJob(c, args[0], err)
			}
			return i.emit(told{args[0], v.done, reason}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "Job %s: %s.\n", args[0], v.done)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "a few words for those who find it so (default: your user name)")
	return cmd
}

func (i *invocation) triggerCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "trigger JOB",
		Short:             "Run a job now, without waiting",
		Long:              `trigger is run --detach: it sets off a run of a job that Temporal has.`,
		Args:              arguments("JOB"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			started, err := i.startRun(cmd.Context(), args, adHoc{}, "")
			if err != nil {
				return err
			}
			return i.reportStarted(started)
		},
	}
}
