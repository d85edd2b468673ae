package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules/control"
	"github.com/dendrascience/dendra-jobs/workflows"
)

func (i *invocation) runsCommand() *cobra.Command {
	return group("runs", "List and describe runs", i.runsListCommand(), i.runsDescribeCommand())
}

func (i *invocation) runsListCommand() *cobra.Command {
	var filter control.RunFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, the latest first",
		Long: `list shows runs within the retention of the namespace, the latest first. A run
may take a second to show. Iterations of continuous jobs are not runs: jobs
describe shows them.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if filter.Limit < 0 {
				return misuse(cmd, "--limit %d is negative", filter.Limit)
			}
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			runs, err := c.Runs(cmd.Context(), filter)
			if err != nil {
				return err
			}
			if err := i.emit(list(runs), i.runTable(runs, true).write); err != nil {
				return err
			}
			if filter.Limit > 0 && len(runs) == filter.Limit && i.format == formatTable {
				i.note("The latest %d; --limit 0 lists all.", filter.Limit)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&filter.JobID, "job", "", "only runs of this job")
	flags.StringVar(&filter.Type, "type", "", "only runs of jobs of this type")
	flags.Var(choose(&filter.Mode, job.ModeOneShot, job.ModeRecurring, job.ModeQueued), "mode", "only runs of jobs of this mode: one-shot, recurring, queued")
	flags.StringVar(&filter.Queue, "queue", "", "only runs of jobs of this queue")
	flags.Var(choose(&filter.Status, control.RunStatuses()...), "status", "only runs with this status: "+strings.Join(words(control.RunStatuses()), ", "))
	flags.Var(sinceValue{&filter.Since, i.Now}, "since", "only runs started since: 2026-05-01T12:00:00Z, or PT1H for the last hour")
	flags.IntVar(&filter.Limit, "limit", 20, "at most so many; 0: all")
	completeFixed(cmd, "type", i.typeNames()...)
	completeFixed(cmd, "mode", words(job.Modes())...)
	completeFixed(cmd, "status", words(control.RunStatuses())...)
	return cmd
}

// runTable shows runs; the job is left out where all are of the same.
func (i *invocation) runTable(runs []control.Run, withJob bool) *table {
	header := []string{"JOB", "STATUS", "STARTED", "TOOK", "RUN ID"}
	first := 0
	if !withJob {
		first = 1
	}
	t := newTable(header[first:]...)
	for _, run := range runs {
		row := []string{run.JobID, string(run.Status), i.when(run.Started), took(i.since(run)), run.RunID}
		t.add(row[first:]...)
	}
	return t
}

func (i *invocation) runsDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "describe JOB|WORKFLOW_ID [RUN_ID]",
		Short: "Show all that is known of a run",
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
func findRun(ctx context.Context, c *control.Client, name, runID string) (*control.RunDetail, error) {
	if _, isWorkflow := workflows.JobIDOfSchedule(name); isWorkflow {
		detail, err := c.Run(ctx, control.RunRef{WorkflowID: name, RunID: runID})
		return detail, aboutRun(c, name, err)
	}
	ref := control.RunRef{WorkflowID: workflows.JobWorkflowID(name), RunID: runID}
	detail, err := c.Run(ctx, ref)
	if err != nil && (!errors.Is(err, control.ErrNotFound) || ctx.Err() != nil) {
		return nil, err
	}
	if runID != "" && err == nil {
		return detail, nil
	}
	// A recurring job's runs bear their time in their workflow ids.
	limit := 1
	if runID != "" {
		limit = 0
	}
	runs, err := c.Runs(ctx, control.RunFilter{JobID: name, Limit: limit})
	if err != nil {
		return nil, err
	}
	for _, run := range runs {
		switch {
		case runID != "" && run.RunID != runID:
			continue
		case detail != nil && !run.Started.After(detail.Started):
			return detail, nil
		}
		return c.Run(ctx, run.RunRef)
	}
	if detail == nil && runID == "" {
		return nil, fmt.Errorf("there is no run of a job %s in namespace %s", name, c.Namespace())
	}
	if detail == nil {
		return nil, fmt.Errorf("job %s has no run %s in namespace %s", name, runID, c.Namespace())
	}
	return detail, nil
}

func aboutRun(c *control.Client, workflowID string, err error) error {
	if !errors.Is(err, control.ErrNotFound) {
		return err
	}
	return fmt.Errorf("there is no run %s in namespace %s", workflowID, c.Namespace())
}

func (i *invocation) writeRun(w io.Writer, detail *control.RunDetail) error {
	var s sheet
	s.add("Job", "%s", detail.JobID)
	s.add("Type", "%s", detail.Type)
	s.add("Mode", "%s", detail.Mode)
	s.add("Queue", "%s", detail.Queue)
	s.add("Workflow", "%s", detail.WorkflowID)
	s.add("Run", "%s", detail.RunID)
	s.add("Status", "%s", statusText(detail))
	s.add("Due", "%s", i.when(detail.Scheduled))
	s.add("Started", "%s", i.when(detail.Started))
	s.add("Ended", "%s", i.when(detail.Ended))
	if detail.Status == control.RunRunning {
		s.add("Now", "%s", runProgress(detail))
	}
	if !detail.NextTry.IsZero() {
		s.add("Next try", "%s", i.when(detail.NextTry))
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
	if detail.Error != "" {
		s.add("Error", "%s: %s", detail.Class, detail.Error)
	}
	if detail.Job != nil {
		s.add("Spec", "%s", indented(detail.Job.Spec))
	}
	return s.write(w)
}
