package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

const runsLogsHelp = `logs shows what the handler of a run logged, on all workers: the latest run of a job or of
a workflow id, or the one with the run id. Of a continuous job it shows the iterations,
or the one with --iteration.

Workers keep the last 1000 lines of each run in NATS, for seven days. --follow shows
lines as they come, until the run has ended. With -o json, each line is a JSON object,
as the Job API has it.`

func (i *invocation) runsLogsCommand() *cobra.Command {
	var follow bool
	var iteration int64
	cmd := &cobra.Command{
		Use:               "logs JOB|WORKFLOW_ID [RUN_ID]",
		Short:             "Show the log of a run",
		Long:              runsLogsHelp,
		Args:              arguments("JOB or WORKFLOW_ID", "[RUN_ID]"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := i.api(cmd.Context())
			if err != nil {
				return err
			}
			runID := ""
			if len(args) > 1 {
				runID = args[1]
			}
			name, loop, err := findLog(cmd.Context(), c, args[0], runID)
			switch {
			case err != nil:
				return err
			case iteration != 0 && !loop:
				return misuse(cmd, "--iteration is for continuous jobs, and %s is none", args[0])
			case iteration != 0:
				name = fmt.Sprintf("%s#%d", name, iteration)
			}
			return i.showLog(cmd.Context(), c, name, follow)
		},
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "show lines as they come, until the run has ended")
	cmd.Flags().Int64Var(&iteration, "iteration", 0, "only this iteration of a continuous job")
	i.natsFlag(cmd)
	return cmd
}

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

func (i *invocation) showLog(ctx context.Context, c *api.Clients, name string, follow bool) error {
	lines := 0
	show := func(line *jobsv1.LogLine) error {
		lines++
		return i.writeLogLine(i.Stdout, line)
	}
	var err error
	if follow {
		err = followLog(ctx, c, name, show)
	} else {
		err = listLog(ctx, c, name, show)
	}
	if err == nil {
		i.noteEmpty("line", lines)
	}
	return err
}

func listLog(ctx context.Context, c *api.Clients, name string, show func(*jobsv1.LogLine) error) error {
	response, err := c.Runs.ListRunLogs(ctx, &jobsv1.ListRunLogsRequest{Name: name})
	if err != nil {
		return err
	}
	for _, line := range response.GetLines() {
		if err := show(line); err != nil {
			return err
		}
	}
	return nil
}

func followLog(ctx context.Context, c *api.Clients, name string, show func(*jobsv1.LogLine) error) error {
	stream, err := c.Runs.WatchRunLogs(ctx, &jobsv1.WatchRunLogsRequest{Name: name})
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

// hiddenAttributes are the same in all lines of a log.
var hiddenAttributes = []string{"trace_id", "span_id", "worker"}

// writeLogLine writes "12:00:05.120 INFO attempt 1: text key=value". An attribute of several
// lines, as a stack is, comes below.
func (i *invocation) writeLogLine(w io.Writer, line *jobsv1.LogLine) error {
	if i.format == formatJSON {
		text, err := compactMessage(line)
		if err == nil {
			_, err = fmt.Fprintf(w, "%s\n", text)
		}
		return err
	}
	text := fmt.Sprintf("%s %-5s", toTime(line.GetTime()).In(i.Location).Format(time.DateTime+".000"), clean(line.GetLevel()))
	switch {
	case line.GetIteration() != 0:
		text += fmt.Sprintf(" iteration %d:", line.GetIteration())
	case line.GetAttempt() != 0:
		text += fmt.Sprintf(" attempt %d:", line.GetAttempt())
	}
	text += " " + clean(line.GetMessage())
	fields, below := line.GetAttributes().GetFields(), ""
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		long := strings.TrimSpace(fields[name].GetStringValue())
		switch {
		case slices.Contains(hiddenAttributes, name):
		case strings.Contains(long, "\n"):
			below += "\n  " + clean(name) + ":"
			for part := range strings.SplitSeq(long, "\n") {
				below += "\n    " + clean(strings.ReplaceAll(part, "\t", "  "))
			}
		default:
			text += " " + clean(name) + "=" + plainValue(fields[name])
		}
	}
	_, err := fmt.Fprintln(w, text+below)
	return err
}

// plainValue is a value of JSON as people read it: a text without quotes where it
// needs none.
func plainValue(value *structpb.Value) string {
	if text, ok := value.GetKind().(*structpb.Value_StringValue); ok && text.StringValue != "" && !strings.ContainsAny(text.StringValue, " =\"") {
		return clean(text.StringValue)
	}
	text, err := json.Marshal(value.AsInterface())
	if err != nil {
		return clean(value.String())
	}
	return clean(string(text))
}
