package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

func jobStatuses() []client.JobStatus {
	return []client.JobStatus{
		client.JobScheduled, client.JobRunning, client.JobFailing, client.JobPaused, client.JobWaiting,
		client.JobCompleted, client.JobFailed, client.JobStopped, client.JobTerminated,
	}
}

func (i *invocation) jobsCommand() *cobra.Command {
	return group("jobs", "List, describe and change jobs",
		i.jobsListCommand(), i.jobsDescribeCommand(),
		i.verbCommand(verb{
			name: "stop", done: "stop requested", short: "Stop the current run of a job",
			long: `stop asks the handler of a job to stop. The handler has the job's stop grace period
to save its position. The command does not wait for the end.

  one-shot     its run is canceled
  recurring    its current run is canceled; the schedule goes on
  continuous   its workflow ends; restart or the next apply starts it again
  queued       its run is canceled, or it leaves the queue if it waits`,
			act: (*client.JobClient).Stop, fits: mayStop,
		}),
		i.verbCommand(verb{
			name: "restart", done: "restart requested", short: "Restart a continuous job",
			long: `restart ends the current iteration of a continuous job and starts the next at
once. A continuous job that was stopped is started again. Jobs of other modes
are triggered instead.`,
			act: (*client.JobClient).Restart, fits: isContinuous,
		}),
		i.verbCommand(verb{
			name: "pause", done: "paused", short: "Keep a job from running",
			long: `pause keeps a recurring or continuous job from running until it is resumed.

  recurring    no more runs are started; one under way goes on
  continuous   the current iteration is ended gracefully; no more are started

One-shot and queued jobs cannot be paused: stop them, or pause the queue. apply
keeps a pause. Pausing a paused job adds a reason; one resume ends all pauses.`,
			act: (*client.JobClient).Pause, fits: mayPause, check: notePause,
		}),
		i.verbCommand(verb{
			name: "resume", done: "resumed", short: "Resume a paused job",
			long: `resume ends the pause of a job. A recurring job does not run the starts that it
missed. A continuous job starts an iteration at once and resets its count of
failures. If the job is not paused, the command says so and changes nothing. To run
a failing recurring job before its next run, trigger it.`,
			act: (*client.JobClient).Resume, fits: isPaused, check: checkResume,
		}),
		i.triggerCommand(), i.jobsNextCommand(), i.skipNextCommand(), i.backfillCommand(),
	)
}

func (i *invocation) jobsListCommand() *cobra.Command {
	var filter jobFilters
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the jobs in Temporal",
		Long: `list shows the jobs in Temporal: all recurring ones, and the others as long as
their latest run is within the retention of the namespace. A change may take a
second to appear. Jobs that wait in a queue are listed only if a worker is running.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			rows, err := i.findJobs(cmd.Context(), c, &filter)
			if err != nil {
				return err
			}
			i.noteEmpty("job", len(rows))
			return i.emit(list(rows), func(w io.Writer) error { return i.writeJobs(w, rows) })
		},
	}
	filter.register(i, cmd)
	return cmd
}

// jobFilters are the flags by which jobs are found.
type jobFilters struct {
	filters
	status client.JobStatus
	queue  string
}

func (f *jobFilters) register(i *invocation, cmd *cobra.Command) {
	f.filters.register(i, cmd, "jobs", job.Modes()...)
	cmd.Flags().Var(choose(&f.status, jobStatuses()...), "status", "only jobs with this status: "+strings.Join(words(jobStatuses()), ", "))
	cmd.Flags().Var(nameValue{&f.queue}, "queue", "only jobs of this queue")
	completeFixed(cmd, "status", words(jobStatuses())...)
	f.names = append(f.names, "status", "queue")
}

// findJobs lists the jobs that match, and notes the queues that could not be read.
func (i *invocation) findJobs(ctx context.Context, c *client.Client, f *jobFilters) ([]client.JobRow, error) {
	filter := client.JobFilter{Type: f.jobType(i), Mode: f.mode, Status: f.status, Owner: f.owner.String(), Tags: f.tags, Queue: f.queue}
	rows, unread, err := c.Jobs.List(ctx, filter)
	if err != nil {
		return nil, err
	}
	for _, queue := range unread {
		i.note("The items that wait in queue %s are not shown: the queue does not answer.", queue)
	}
	return rows, f.checkMatch(i, len(rows))
}

// briefNote is how many characters of a note a table shows; describe has all.
const briefNote = 60

func inBrief(note string) string { return shortened(note, briefNote) }

func (i *invocation) writeJobs(w io.Writer, rows []client.JobRow) error {
	t := newTable("JOB", "MODE", "STATUS", "LAST START", "NEXT", "OWNER", "NOTE")
	for _, row := range rows {
		t.add(row.ID, string(row.Mode), string(row.Status), i.when(row.LastStart), i.when(row.Next), row.Owner, i.jobNote(row))
	}
	return t.write(w)
}

// jobNote is the cell NOTE of a job: its queue, its failure or its pause.
func (i *invocation) jobNote(row client.JobRow) string {
	switch {
	case row.Queue != "":
		return "queue " + row.Queue
	case row.Status == client.JobFailing:
		return inBrief(i.failingText(row.Failing))
	}
	return inBrief(row.PauseReason)
}

// failingText is the start and the error of a job's failures.
func (i *invocation) failingText(f *contract.Failing) string {
	return fmt.Sprintf("since %s: %s: %s", i.moment(f.Since), f.Class, f.Error)
}

// verb is a command that changes jobs.
type verb struct {
	name, done  string
	short, long string
	act         func(c *client.JobClient, ctx context.Context, jobID, reason string) error
	// check, if set, is called before act. It returns a note on the job's status, and
	// errNothingToDo if act would change nothing.
	check func(ctx context.Context, c *client.Client, jobID string) (string, error)
	// fits selects the jobs to which a command with filters applies.
	fits func(client.JobRow) bool
}

// mayStop selects jobs with something to stop; a list may be a second old.
func mayStop(row client.JobRow) bool {
	switch row.Status {
	case client.JobRunning, client.JobFailing, client.JobWaiting, client.JobPaused, client.JobScheduled:
		return true
	}
	return false
}

func isContinuous(row client.JobRow) bool { return row.Mode == job.ModeContinuous }

func isPaused(row client.JobRow) bool { return row.Status == client.JobPaused }

func mayPause(row client.JobRow) bool {
	return row.Mode == job.ModeRecurring && (row.Status == client.JobScheduled || row.Status == client.JobFailing) ||
		row.Mode == job.ModeContinuous && (row.Status == client.JobRunning || row.Status == client.JobFailing)
}

// notePause notes the reasons for which a job is paused already.
func notePause(ctx context.Context, c *client.Client, jobID string) (string, error) {
	paused, reason, err := c.Jobs.Paused(ctx, jobID)
	if err != nil || !paused {
		return "", err
	}
	return alreadyPaused(reason), nil
}

func alreadyPaused(reason string) string { return "it was paused already: " + reason }

// checkResume finds out whether a job has a pause or failures for a resume to end.
func checkResume(ctx context.Context, c *client.Client, jobID string) (string, error) {
	resumable, err := c.Jobs.Resumable(ctx, jobID)
	switch {
	case err != nil:
		return "", err
	case resumable == client.ResumableNothing:
		return "it was not paused; to run it now, trigger it", errNothingToDo
	case resumable == client.ResumableFailures:
		return "it was not paused; its count of failures is reset", nil
	}
	return "", nil
}

// verbResult is what a verb did to a job, as JSON.
type verbResult struct {
	JobID  string `json:"job_id"`
	Result string `json:"result"`
	Reason string `json:"reason"`
	Note   string `json:"note,omitempty"` // on the job's status before
}

// unchanged is the result of a verb that had nothing to do.
const unchanged = "unchanged"

// withNote is a result as a table shows it.
func withNote(result, note string) string {
	if note == "" {
		return result
	}
	return result + "; " + note
}

// apply changes one job.
func (v verb) apply(ctx context.Context, c *client.Client, jobID, reason string) (verbResult, error) {
	outcome := verbResult{JobID: jobID, Result: v.done, Reason: reason}
	if v.check != nil {
		var err error
		if outcome.Note, err = v.check(ctx, c, jobID); errors.Is(err, errNothingToDo) {
			outcome.Result = unchanged
			return outcome, nil
		} else if err != nil {
			return outcome, err
		}
	}
	return outcome, v.act(c.Jobs, ctx, jobID, reason)
}

func (i *invocation) verbCommand(v verb) *cobra.Command {
	var reason string
	var filter jobFilters
	var yes bool
	cmd := &cobra.Command{
		Use:               v.name + " JOB... | --type TYPE ...",
		Short:             v.short,
		Long:              v.long + bulkHelp("job"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := namesOrFilters(cmd, args, "JOB", &filter.filters); err != nil {
				return err
			}
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			if reason == "" {
				reason = defaultReason()
			}
			if len(args) == 1 {
				return i.changeJob(cmd.Context(), c, v, args[0], reason)
			}
			return i.changeJobs(cmd.Context(), c, v, args, &filter, reason, yes)
		},
	}
	filter.register(i, cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "reason that lists and the history show (default: your user name)")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// bulkHelp is the part of a help text on filters.
func bulkHelp(one string) string {
	return `

With filters, the command applies to every ` + one + ` that matches all of them. It shows
the matches and asks. Without a terminal, and with -o json, it needs --yes. Matching
no ` + one + ` is not an error.`
}

func (i *invocation) changeJob(ctx context.Context, c *client.Client, v verb, jobID, reason string) error {
	outcome, err := v.apply(ctx, c, jobID, reason)
	if err != nil {
		return aboutJob(c, jobID, err)
	}
	return i.emit(outcome, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "Job %s: %s.\n", jobID, clean(withNote(outcome.Result, outcome.Note)))
		return err
	})
}

// changeJobs changes the jobs of a list, or else those that match.
func (i *invocation) changeJobs(ctx context.Context, c *client.Client, v verb, ids []string, f *jobFilters, reason string, yes bool) error {
	named := len(ids) > 0
	if !named {
		var err error
		if ids, err = i.fittingJobs(ctx, c, v.name, f, v.fits); err != nil {
			return err
		}
	}
	return i.doAll(ctx, bulk{
		verb: v.name, one: "job", all: "jobs", names: ids,
		act: func(n int) (string, error) {
			outcome, err := v.apply(ctx, c, ids[n], reason)
			if err != nil && !named && errors.Is(err, client.ErrNotFound) {
				return "", fmt.Errorf("%w: %w", errNothingToDo, err) // It ended meanwhile, or never ran.
			}
			return withNote(outcome.Result, outcome.Note), aboutJob(c, ids[n], err)
		},
	}, yes || named)
}

// fittingJobs finds the jobs that match and to which a verb applies.
func (i *invocation) fittingJobs(ctx context.Context, c *client.Client, verb string, f *jobFilters, fits func(client.JobRow) bool) ([]string, error) {
	rows, err := i.findJobs(ctx, c, f)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, row := range rows {
		if fits(row) {
			ids = append(ids, row.ID)
		}
	}
	if left := len(rows) - len(ids); left > 0 {
		i.note("%s left out: there is nothing to %s.", plural(left, "job that matches is", "jobs that match are"), verb)
	}
	return ids, nil
}

func (i *invocation) triggerCommand() *cobra.Command {
	var filter jobFilters
	var yes bool
	cmd := &cobra.Command{
		Use:               "trigger JOB... | --type TYPE ...",
		Short:             "Run a job now, without waiting",
		Long:              `trigger is run --detach: it starts a run of a job that is in Temporal.` + bulkHelp("job"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := namesOrFilters(cmd, args, "JOB", &filter.filters); err != nil {
				return err
			}
			if len(args) == 1 {
				started, err := i.startRun(cmd.Context(), args, adHoc{}, "", oneShotStart{})
				if err != nil {
					return err
				}
				return i.reportStarted(started)
			}
			return i.triggerMany(cmd.Context(), args, &filter, yes)
		},
	}
	filter.register(i, cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (i *invocation) triggerMany(ctx context.Context, ids []string, f *jobFilters, yes bool) error {
	c, err := i.connect(ctx)
	if err != nil {
		return err
	}
	named := len(ids) > 0
	if !named {
		ids, err = i.fittingJobs(ctx, c, "trigger", f, func(client.JobRow) bool { return true })
		if err != nil {
			return err
		}
	}
	return i.doAll(ctx, bulk{
		verb: "trigger", one: "job", all: "jobs", names: ids,
		act: func(n int) (string, error) {
			live, err := c.Jobs.Live(ctx, ids[n])
			if err != nil {
				return "", aboutJob(c, ids[n], err)
			}
			s, err := i.trigger(ctx, c, live.Job, oneShotStart{})
			if err != nil {
				return "", err
			}
			return s.result(), nil
		},
	}, yes || named)
}
