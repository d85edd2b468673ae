package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/contract"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

const runsLogsHelp = `logs shows what the handler of a run logged, on all workers: the latest run of a job or of
a workflow id, or the one with the run id. Of a continuous job it shows the iterations,
or the one with --iteration.

Workers keep the last 1000 lines of each run in NATS, for seven days. --follow shows
lines as they come, until the run has ended. With -o json, each line is a
JSON object, as the Job API has it.`

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
			c, err := i.logClients(cmd.Context())
			if err != nil {
				return err
			}
			runID := ""
			if len(args) > 1 {
				runID = args[1]
			}
			name, loop, err := findLog(cmd.Context(), c, args[0], runID)
			if err != nil {
				return logError(err)
			}
			switch {
			case iteration != 0 && !loop:
				return misuse(cmd, "--iteration is for continuous jobs, and %s is none", args[0])
			case iteration != 0:
				name = fmt.Sprintf("%s#%d", name, iteration)
			}
			return logError(i.showLog(cmd.Context(), c, name, follow))
		},
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "show lines as they come, until the run has ended")
	cmd.Flags().Int64Var(&iteration, "iteration", 0, "only this iteration of a continuous job")
	i.natsFlag(cmd)
	return cmd
}

// logClients gives clients of the Job API: of --server, else of a server in this process
// that works on Temporal and NATS.
func (i *invocation) logClients(ctx context.Context) (*api.Clients, error) {
	if i.serverURL() != "" {
		return i.remote()
	}
	temporal, err := i.connect(ctx)
	if err != nil {
		return nil, err
	}
	streams, err := i.connectPipeline(ctx)
	if err != nil {
		return nil, err
	}
	logger := slog.New(slog.NewTextHandler(i.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	return api.NewInProcess(api.Config{Client: temporal, Pipeline: streams, Types: i.Types, Logger: logger}), nil
}

// logError is an error of the Job API without its code.
func logError(err error) error {
	if failed, ok := errors.AsType[*connect.Error](err); ok && failed.Code() != connect.CodeCanceled && failed.Code() != connect.CodeDeadlineExceeded {
		return errors.New(failed.Message())
	}
	return err
}

// findLog names the log of a run in the Job API, or that of the iterations of a continuous
// job: it is loop then.
func findLog(ctx context.Context, c *api.Clients, name, runID string) (found string, loop bool, err error) {
	jobID, isWorkflow := contract.JobIDOfSchedule(name)
	if !isWorkflow {
		jobID = name
	}
	defined, err := c.Jobs.GetJob(ctx, &jobsv1.GetJobRequest{Id: jobID})
	switch {
	case err == nil && defined.GetJob().GetContinuous() != nil:
		return jobID, true, nil
	case err != nil && !isWorkflow && !notThere(err):
		return "", false, err
	}
	workflowID := name
	if !isWorkflow {
		workflowID = contract.JobWorkflowID(jobID)
	}
	found = workflowID
	if runID != "" {
		found += "@" + runID
	}
	_, err = c.Runs.GetRun(ctx, &jobsv1.GetRunRequest{Name: found})
	if err == nil || isWorkflow || !notThere(err) {
		return found, false, err
	}
	// The workflow ids of a recurring job's runs contain their times.
	request := &jobsv1.ListRunsRequest{Filter: fmt.Sprintf("job_id = %q", jobID)}
	for {
		page, err := c.Runs.ListRuns(ctx, request)
		if err != nil {
			return "", false, err
		}
		for _, run := range page.GetRuns() {
			if runID == "" || strings.HasSuffix(run.GetName(), "@"+runID) {
				return run.GetName(), false, nil
			}
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			break
		}
	}
	if runID != "" {
		return "", false, fmt.Errorf("job %s has no run %s", jobID, runID)
	}
	return "", false, fmt.Errorf("there is no run of a job %s", jobID)
}

// notThere says that the Job API found nothing of that name that is this system's.
func notThere(err error) bool {
	code := connect.CodeOf(err)
	return code == connect.CodeNotFound || code == connect.CodeFailedPrecondition
}

func (i *invocation) showLog(ctx context.Context, c *api.Clients, name string, follow bool) error {
	if !follow {
		log, err := c.Runs.ListRunLogs(ctx, &jobsv1.ListRunLogsRequest{Name: name})
		if err != nil {
			return err
		}
		for _, line := range log.GetLines() {
			if err := i.writeLogLine(i.Stdout, line); err != nil {
				return err
			}
		}
		i.noteEmpty("line", len(log.GetLines()))
		return nil
	}
	watched, err := c.Runs.WatchRunLogs(ctx, &jobsv1.WatchRunLogsRequest{Name: name})
	if err != nil {
		return err
	}
	defer func() { _ = watched.Close() }()
	for lines := 0; ; lines++ {
		next, err := watched.Receive()
		if errors.Is(err, io.EOF) {
			i.noteEmpty("line", lines)
			return nil
		}
		if err != nil {
			return err
		}
		if err := i.writeLogLine(i.Stdout, next.GetLine()); err != nil {
			return err
		}
	}
}

// commonAttributes are the same in all lines of a log.
var commonAttributes = []string{"trace_id", "span_id", "worker"}

// writeLogLine writes "12:00:05.120 INFO attempt 1: text key=value", or the line of the Job
// API as JSON.
func (i *invocation) writeLogLine(w io.Writer, line *jobsv1.LogLine) error {
	if i.format == formatJSON {
		text, err := protojson.Marshal(line)
		var compact bytes.Buffer // The white space of protojson changes from build to build.
		if err = errors.Join(err, json.Compact(&compact, text)); err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n", compact.Bytes())
		return err
	}
	text := fmt.Sprintf("%s %-5s", line.GetTime().AsTime().In(i.Location).Format(time.DateTime+".000"), clean(line.GetLevel()))
	switch {
	case line.GetIteration() != 0:
		text += fmt.Sprintf(" iteration %d:", line.GetIteration())
	case line.GetAttempt() != 0:
		text += fmt.Sprintf(" attempt %d:", line.GetAttempt())
	}
	text += " " + clean(line.GetMessage())
	attributes := line.GetAttributes().GetFields()
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if slices.Contains(commonAttributes, name) {
			continue
		}
		value, err := json.Marshal(attributes[name].AsInterface())
		if err != nil {
			return err
		}
		text += " " + clean(name) + "=" + plainValue(value)
	}
	_, err := fmt.Fprintln(w, text)
	return err
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
