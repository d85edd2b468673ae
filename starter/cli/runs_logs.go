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

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/runlogs"
	"github.com/dendrascience/dendra-jobs/job"
)

const runsLogsHelp = `logs shows what the handler of a run logged, on all workers: the latest run of a job or of
a workflow id, or the one with the run id. Of a continuous job it shows the iterations,
or the one with --iteration.

Workers keep the last 1000 lines of each run in NATS, for seven days. --follow shows
lines as they come, until the run has ended. With -o json, each line is a JSON object.`

// runLog is the log to show.
type runLog struct {
	name      runlogs.Name
	iteration int64 // only this one's lines, if it is not 0
	ended     func(context.Context) (bool, error)
}

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
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			runID := ""
			if len(args) > 1 {
				runID = args[1]
			}
			log, err := findLog(cmd.Context(), c, args[0], runID)
			if err != nil {
				return err
			}
			if iteration != 0 && !log.name.Loop {
				return misuse(cmd, "--iteration is for continuous jobs, and %s is none", args[0])
			}
			log.iteration = iteration
			if !follow {
				log.ended = nil
			}
			return i.showLog(cmd.Context(), log)
		},
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "show lines as they come, until the run has ended")
	cmd.Flags().Int64Var(&iteration, "iteration", 0, "only this iteration of a continuous job")
	i.natsFlag(cmd)
	return cmd
}

// findLog finds the log of a run, or of the iterations of a continuous job.
func findLog(ctx context.Context, c *client.Client, name, runID string) (runLog, error) {
	jobID := name
	if id, isWorkflow := contract.JobIDOfSchedule(name); isWorkflow {
		jobID = id
	}
	live, err := c.Jobs.Live(ctx, jobID)
	switch {
	case err == nil && live.Job.Mode() == job.ModeContinuous:
		return runLog{
			name:  runlogs.Name{JobID: jobID, Loop: true},
			ended: func(context.Context) (bool, error) { return false, nil },
		}, nil
	case err != nil && (!errors.Is(err, client.ErrNotFound) && !errors.Is(err, client.ErrNotOurs) || ctx.Err() != nil):
		return runLog{}, err
	}
	run, err := findRun(ctx, c, name, runID)
	if err != nil {
		return runLog{}, err
	}
	return runLog{
		name: runlogs.Name{JobID: run.JobID, RunID: run.RunID},
		ended: func(ctx context.Context) (bool, error) {
			now, err := c.Runs.Get(ctx, run.RunRef)
			return err == nil && !now.Status.Open(), err
		},
	}, nil
}

func (i *invocation) showLog(ctx context.Context, log runLog) error {
	nats, err := i.connectPipeline(ctx)
	if err != nil {
		return err
	}
	lines := 0
	err = runlogs.Read(ctx, nats, log.name, log.ended, func(line runlogs.Line) error {
		if log.iteration != 0 && iterationOf(line) != fmt.Sprint(log.iteration) {
			return nil
		}
		lines++
		return i.writeLogLine(i.Stdout, line)
	})
	if err != nil {
		return err
	}
	i.noteEmpty("line", lines)
	return nil
}

// Attributes of lines, which all of a log have.
const (
	logRunID   = "run_id"
	logAttempt = "attempt"
)

// commonAttributes are the same in all lines of a log, or are shown before its text.
var commonAttributes = []string{"job_id", "job_type", "workflow_id", logRunID, logAttempt, "trace_id", "span_id", "worker"}

// writeLogLine writes "12:00:05.120 INFO attempt 1: text key=value".
func (i *invocation) writeLogLine(w io.Writer, line runlogs.Line) error {
	if i.format == formatJSON {
		text, err := json.Marshal(line)
		if err == nil {
			_, err = fmt.Fprintf(w, "%s\n", text)
		}
		return err
	}
	text := fmt.Sprintf("%s %-5s", line.Time.In(i.Location).Format(time.DateTime+".000"), clean(line.Level))
	switch number := iterationOf(line); {
	case number != "":
		text += " iteration " + number + ":"
	case len(line.Attributes[logAttempt]) > 0:
		text += " attempt " + plainValue(line.Attributes[logAttempt]) + ":"
	}
	text += " " + clean(line.Message)
	for _, name := range slices.Sorted(maps.Keys(line.Attributes)) {
		if !slices.Contains(commonAttributes, name) {
			text += " " + clean(name) + "=" + plainValue(line.Attributes[name])
		}
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// iterationOf is the number of the iteration that logged a line, "" of a run.
func iterationOf(line runlogs.Line) string {
	_, number, _ := strings.Cut(plainValue(line.Attributes[logRunID]), "/")
	return number
}

// plainValue is a value of JSON as people read it: a text without quotes where it
// needs none.
func plainValue(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil || text == "" || strings.ContainsAny(text, " =\"") {
		text = string(value)
	}
	return clean(text)
}
