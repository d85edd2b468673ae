package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

func (i *invocation) runsCommand() *cobra.Command {
	return group("runs", "List, describe, retry and end runs, and show their logs",
		i.runsListCommand(), i.runsDescribeCommand(), i.runsLogsCommand(),
		i.runsRetryCommand(), i.runsCancelCommand(), i.runsTerminateCommand())
}

// runFilters are the flags by which runs are found.
type runFilters struct {
	filters
	jobID, queue string
	status       client.RunStatus
	since        time.Time
}

func (f *runFilters) register(i *invocation, cmd *cobra.Command, statuses ...client.RunStatus) {
	flags := cmd.Flags()
	flags.Var(nameValue{&f.jobID}, "job", "only runs of this job")
	f.filters.register(i, cmd, "runs", job.Modes()...)
	flags.Var(nameValue{&f.queue}, "queue", "only runs of jobs of this queue")
	flags.Var(choose(&f.status, statuses...), "status", "only runs with this status: "+strings.Join(words(statuses), ", "))
	flags.Var(sinceValue{&f.since, i.Now}, "since", "only runs started since: 2026-05-01T12:00:00Z, or PT1H for the last hour")
	completeFixed(cmd, "status", words(statuses)...)
	if err := cmd.RegisterFlagCompletionFunc("job", i.completeJobs); err != nil {
		cobra.CompErrorln(err.Error())
	}
	f.names = append(f.names, "job", "queue", "status", "since")
}

func (f *runFilters) filter(i *invocation) client.RunFilter {
	return client.RunFilter{
		JobID: f.jobID, Type: f.jobType(i), Owner: f.owner.String(), Tags: f.tags, Mode: f.mode,
		Queue: f.queue, Status: f.status, Since: f.since,
	}
}

func (i *invocation) runsListCommand() *cobra.Command {
	var filter runFilters
	var limit int
	var missed bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, the latest first",
		Long: `list shows runs within the retention of the namespace, the latest first. A run may
take a second to appear.

  DUE     when a recurring or delayed run was due
  LATE    from then until a worker took the run
  TRIES   the number of attempts
  COUNTS  the counts of its result

Iterations of continuous jobs are not runs: with --job and a continuous job, list
shows its last 20 iterations, if a worker is running.

With --missed, list shows the starts of recurring jobs that have no run, of the last
24 hours unless --since is given, with their reasons. The reasons are derived from the
runs, the schedule and its pauses, and the server's counters:

  overlap        another run had not ended
  paused         the schedule was paused
  skipped        the start was skipped by skip-next
  superseded     a later start replaced its run, by the misfire policy
  failing        the job is failing, and the start came before its next run
  server_down    the server was down, and a later start replaced it
  missed_window  the server was down for longer than the catch-up window
  buffer_full    more starts waited than a schedule buffers
  unknown        the reason cannot be derived`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return misuse(cmd, "--limit %d is negative", limit)
			}
			if missed {
				return i.listMissed(cmd, &filter, limit)
			}
			if filter.mode == job.ModeContinuous && filter.jobID == "" {
				return misuse(cmd, "continuous jobs have iterations, not runs: give --job to list those of one")
			}
			return i.listRuns(cmd, &filter, limit)
		},
	}
	filter.register(i, cmd, client.RunStatuses()...)
	cmd.Flags().IntVar(&limit, "limit", 20, "show at most this many; 0: all")
	cmd.Flags().BoolVar(&missed, "missed", false, "starts of recurring jobs that have no run")
	return cmd
}

func (i *invocation) listRuns(cmd *cobra.Command, filter *runFilters, limit int) error {
	c, err := i.connect(cmd.Context())
	if err != nil {
		return err
	}
	f := filter.filter(i)
	f.Limit = limit
	runs, err := c.Runs.List(cmd.Context(), f)
	if err != nil {
		return err
	}
	if err := filter.checkMatch(i, len(runs)); err != nil {
		return err
	}
	if err := c.Runs.AddProgress(cmd.Context(), runs); err != nil {
		return err
	}
	i.noteEmpty("run", len(runs))
	if err := i.emit(list(runs), i.runTable(runs, true).write); err != nil {
		return err
	}
	if limit > 0 && len(runs) == limit && i.format == formatTable {
		i.note("The latest %d; --limit 0 lists all.", limit)
	}
	return nil
}

// runTable shows runs; the job is left out where all are of the same.
func (i *invocation) runTable(runs []client.Run, withJob bool) *table {
	header := []string{"JOB", "STATUS", "DUE", "STARTED", "LATE", "TOOK", "TRIES", "UPDATED", "WORKER", "RESULT", "COUNTS", "RUN ID"}
	first := 0
	if !withJob {
		first = 1
	}
	t := newTable(header[first:]...)
	for _, run := range runs {
		started, tookText, late := i.when(run.Started), took(i.since(run)), ""
		if run.Status == client.RunWaiting {
			started, tookText = "waits until "+i.when(run.Started), ""
		} else if !run.Scheduled.IsZero() {
			late = took(run.Lateness.Std())
		}
		tries := ""
		if run.Attempts > 0 {
			tries = fmt.Sprint(run.Attempts)
		}
		row := []string{
			run.JobID, string(run.Status), i.moment(run.Scheduled), started, late, tookText, tries,
			i.moment(run.LastUpdate), run.Worker, runResult(run), shortened(counts(run.Counts), maxCounts), runName(run),
		}
		t.add(row[first:]...)
	}
	return t
}

// runName identifies a run among those of its job.
func runName(run client.Run) string {
	if run.Iteration > 0 {
		return fmt.Sprintf("iteration %d", run.Iteration)
	}
	return run.RunID
}

// maxResult and maxCounts bound the widths of a result and of its counts in a table.
const (
	maxResult = 60
	maxCounts = 40
)

// shortened cuts a text to so many characters.
func shortened(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// runResult is the result or the progress of a run in a few words.
func runResult(run client.Run) string {
	text := run.Message
	switch {
	case run.Error != "":
		text = run.Class + ": " + run.Error
	case run.Status.Open() && run.Progress != nil && *run.Progress != (job.Progress{}):
		text = run.Progress.String()
	}
	return shortened(text, maxResult)
}

func (i *invocation) runsDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "describe JOB|WORKFLOW_ID [RUN_ID]",
		Short: "Show a run",
		Long: `describe shows a run: the latest of a job or of a workflow id (such as
job/archive.daily-2026-05-01T12:00:00Z), or the one with the run id.`,
		Args:              arguments("JOB or WORKFLOW_ID", "[RUN_ID]"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			runID := ""
			if len(args) > 1 {
				runID = args[1]
			}
			detail, err := findRun(cmd.Context(), c, args[0], runID)
			if err != nil {
				return err
			}
			return i.emit(detail, func(w io.Writer) error { return i.writeRun(w, detail) })
		},
	}
}

// findRun finds a run by its workflow id, or by its job's id.
func findRun(ctx context.Context, c *client.Client, name, runID string) (*client.RunDetail, error) {
	if _, isWorkflow := contract.JobIDOfSchedule(name); isWorkflow {
		detail, err := c.Runs.Get(ctx, client.RunRef{WorkflowID: name, RunID: runID})
		return detail, aboutRun(c, name, runID, err)
	}
	ref := client.RunRef{WorkflowID: contract.JobWorkflowID(name), RunID: runID}
	detail, err := c.Runs.Get(ctx, ref)
	if err != nil && (!errors.Is(err, client.ErrNotFound) || ctx.Err() != nil) {
		return nil, err
	}
	if runID != "" && err == nil {
		return detail, nil
	}
	// The workflow ids of a recurring job's runs contain their times.
	limit := 1
	if runID != "" {
		limit = 0
	}
	runs, err := c.Runs.List(ctx, client.RunFilter{JobID: name, Limit: limit})
	if err != nil {
		return nil, err
	}
	if len(runs) > 0 && runs[0].Iteration > 0 {
		return nil, fmt.Errorf("job %s is continuous and has no runs; starter runs list --job %s shows its iterations", name, name)
	}
	for _, run := range runs {
		switch {
		case runID != "" && run.RunID != runID:
			continue
		case detail != nil && !run.Started.After(detail.Started):
			return detail, nil
		}
		return c.Runs.Get(ctx, run.RunRef)
	}
	if detail == nil && runID == "" {
		return nil, fmt.Errorf("there is no run of a job %s in namespace %s", name, c.Namespace())
	}
	if detail == nil {
		return nil, fmt.Errorf("job %s has no run %s in namespace %s", name, runID, c.Namespace())
	}
	return detail, nil
}

func aboutRun(c *client.Client, workflowID, runID string, err error) error {
	if !errors.Is(err, client.ErrNotFound) {
		return err
	}
	if runID != "" {
		return fmt.Errorf("%s has no run %s in namespace %s", workflowID, runID, c.Namespace())
	}
	return fmt.Errorf("there is no run %s in namespace %s", workflowID, c.Namespace())
}

func (i *invocation) writeRun(w io.Writer, detail *client.RunDetail) error {
	var s sheet
	s.add("Job", "%s", detail.JobID)
	s.add("Type", "%s", detail.Type)
	s.add("Mode", "%s", detail.Mode)
	s.add("Queue", "%s", detail.Queue)
	s.add("Workflow", "%s", detail.WorkflowID)
	s.add("Run", "%s", detail.RunID)
	s.add("Status", "%s", statusText(detail))
	s.add("Retry of", "%s", detail.RetryOf)
	s.add("Due", "%s", i.when(detail.Scheduled))
	if !detail.Scheduled.IsZero() && detail.Status != client.RunWaiting {
		s.add("Late", "%s", took(detail.Lateness.Std()))
	}
	if detail.Status == client.RunWaiting {
		s.add("Waits until", "%s", i.when(detail.Started))
	} else {
		s.add("Started", "%s", i.when(detail.Started))
	}
	s.add("Taken", "%s", i.when(detail.Taken))
	s.add("Ended", "%s", i.when(detail.Ended))
	if detail.Status == client.RunRunning {
		s.add("Now", "%s", runProgress(detail))
		s.add("Updated", "%s", i.when(detail.LastUpdate))
	}
	if !detail.NextAttempt.IsZero() {
		s.add("Next attempt", "%s", i.when(detail.NextAttempt))
	}
	s.add("Worker", "%s", detail.Worker)
	if output := detail.Output; output != nil {
		s.add("Result", "%s", output.Message)
		s.add("Counts", "%s", counts(output.Counts))
		if len(output.Output) > 0 {
			s.add("Output", "%s", indented(output.Output))
		}
		if output.Handovers > 0 {
			s.add("Handovers", "%d", output.Handovers)
		}
		i.addBinding(&s, output.Binding)
	}
	if len(detail.Cursor) > 0 && detail.Status != client.RunCompleted {
		s.add("Cursor", "%s", detail.Cursor)
	}
	switch {
	case detail.Error != "" && detail.Class != "":
		s.add("Error", "%s: %s", detail.Class, detail.Error)
	case detail.Error != "":
		s.add("Error", "%s", detail.Error)
	}
	if detail.Job != nil {
		s.add("Spec", "%s", indented(detail.Job.Spec))
	}
	return s.write(w)
}
