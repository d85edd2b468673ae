package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

const runsLogsHelp = `logs shows what the handler of a run logged, on all workers: the latest run of a job or of
a workflow id, or the one with the run id. Of a continuous job it shows the iterations,
or the one with --iteration.

Workers keep the last 1000 lines of each run in NATS, for seven days. --follow shows
lines as they come, until the run has ended. With -o json, each line is a JSON object,
as the Job API has it. Where there is no line, a note says why.`

func (i *invocation) runsLogsCommand() *cobra.Command {
	var follow bool
	var iteration int64
	var asked logQuery
	cmd := &cobra.Command{
		Use:               "logs JOB|WORKFLOW_ID [RUN_ID]",
		Short:             "Show the log of a run",
		Long:              runsLogsHelp,
		Args:              arguments("JOB or WORKFLOW_ID", "[RUN_ID]"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			runID := ""
			if len(args) > 1 {
				runID = args[1]
			}
			name, loop, err := findLog(cmd.Context(), i.api, args[0], runID)
			switch {
			case err != nil:
				return err
			case iteration != 0 && !loop:
				return misuse(cmd, "--iteration is for continuous jobs, and %s is none", args[0])
			case iteration != 0:
				name = fmt.Sprintf("%s#%d", name, iteration)
			}
			asked.name, asked.level = name, strings.ToUpper(asked.level)
			return i.showLog(cmd.Context(), asked, follow)
		},
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "show lines as they come, until the run has ended")
	cmd.Flags().Int64Var(&iteration, "iteration", 0, "only this iteration of a continuous job")
	cmd.Flags().StringVar(&asked.level, "level", "", "only lines of at least this level: debug, info, warn or error")
	cmd.Flags().StringVar(&asked.search, "search", "", "only lines that have this text, in any case")
	i.natsFlag(cmd)
	return cmd
}

// logQuery says which lines of which log.
type logQuery struct{ name, level, search string }

// findLog gives the name of a log in the Job API: of a run, or of a continuous job.
func findLog(ctx context.Context, c *api.Clients, name, runID string) (log string, loop bool, err error) {
	jobID := name
	if id, isWorkflow := api.JobOfWorkflow(name); isWorkflow {
		jobID = id
	}
	found, err := c.Jobs.GetJob(ctx, &jobsv1.GetJobRequest{Id: jobID})
	switch {
	case err == nil && found.GetJob().GetContinuous() != nil:
		return jobID, true, nil
	case err != nil && !hasReason(err, reasonNotFound) && !hasReason(err, jobsv1.ErrorReason_ERROR_REASON_NOT_OWNED):
		return "", false, err
	}
	run, err := findRun(ctx, c, name, runID)
	return run.GetName(), false, err
}

func (i *invocation) showLog(ctx context.Context, asked logQuery, follow bool) error {
	lines := 0
	show := func(line *jobsv1.LogLine) error {
		lines++
		return i.writeLogLine(i.out(), line)
	}
	if !follow {
		return i.listLog(ctx, asked, show)
	}
	err := followLog(ctx, i.api, asked, show)
	if err == nil {
		i.noteEmpty("line", lines)
	}
	return err
}

func (i *invocation) listLog(ctx context.Context, asked logQuery, show func(*jobsv1.LogLine) error) error {
	response, err := i.api.Runs.ListRunLogs(ctx, &jobsv1.ListRunLogsRequest{Name: asked.name, Level: asked.level, Search: asked.search})
	if err != nil {
		return err
	}
	for _, line := range response.GetLines() {
		if err := show(line); err != nil {
			return err
		}
	}
	if note := response.GetNote(); note != "" {
		i.note("%s", note)
	}
	return nil
}

func followLog(ctx context.Context, c *api.Clients, asked logQuery, show func(*jobsv1.LogLine) error) error {
	stream, err := c.Runs.WatchRunLogs(ctx, &jobsv1.WatchRunLogsRequest{Name: asked.name, Level: asked.level, Search: asked.search})
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // It is at its end, or left.
	for {
		message, err := stream.Receive()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := show(message.GetLine()); err != nil {
			return err
		}
	}
}

// writeLogLine writes a line for people, or as JSON.
func (i *invocation) writeLogLine(w io.Writer, line *jobsv1.LogLine) error {
	if i.format == formatJSON {
		text, err := plantext.LogJSON(line)
		if err == nil {
			_, err = fmt.Fprintf(w, "%s\n", text)
		}
		return err
	}
	_, err := fmt.Fprintln(w, plantext.LogLine(line, i.Location))
	return err
}
