package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/starter/reference"
	"github.com/dendrascience/dendra-jobs/verbs"
)

func (i *invocation) runsDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "describe JOB|WORKFLOW_ID [RUN_ID]",
		Short: "Show a run",
		Long: `describe shows a run: the latest of a job or of a workflow id (such as
job/archive.daily-2026-05-01T12:00:00Z), or the one with the run id.`,
		Args:              arguments("JOB or WORKFLOW_ID", "[RUN_ID]"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			runID := ""
			if len(args) > 1 {
				runID = args[1]
			}
			run, err := findRun(cmd.Context(), i.api, args[0], runID)
			if err != nil {
				return err
			}
			return i.emit(run, func(w io.Writer) error { return i.writeRun(w, run) })
		},
	}
}

// getRun reads a run, nil if there is none.
func getRun(ctx context.Context, c *api.Clients, ref runRef) (*jobsv1.Run, error) {
	response, err := c.Runs.GetRun(ctx, &jobsv1.GetRunRequest{Name: ref.name()})
	if hasReason(err, reasonNotFound) {
		return nil, nil //nolint:nilnil // Documented.
	}
	return response.GetRun(), err
}

// findRun finds a run by its workflow id, or by its job's id.
func findRun(ctx context.Context, c *api.Clients, name, runID string) (*jobsv1.Run, error) {
	if _, isWorkflow := api.JobOfWorkflow(name); isWorkflow {
		run, err := getRun(ctx, c, runRef{name, runID})
		if err == nil && run == nil {
			err = noRun(name, runID)
		}
		return run, err
	}
	found, err := getRun(ctx, c, runRef{api.WorkflowOf(name), runID})
	if err != nil || found != nil && runID != "" {
		return found, err
	}
	// The workflow ids of a recurring job's runs contain their times.
	limit := 1
	if runID != "" {
		limit = 0
	}
	q := &query{}
	q.is("job_id", name)
	listed, err := findRuns(ctx, c, &jobsv1.ListRunsRequest{Filter: q.String()}, limit)
	if err != nil {
		return nil, err
	}
	runs := listed.GetRuns()
	if len(runs) > 0 && runs[0].GetIteration() > 0 {
		return nil, fmt.Errorf("job %s is continuous and has no runs; starter runs list --job %s shows its iterations", name, name)
	}
	for _, run := range runs {
		ref := refOf(run.GetName())
		switch {
		case runID != "" && ref.runID != runID:
			continue
		case found != nil && !toTime(run.GetStartTime()).After(toTime(found.GetStartTime())):
			return found, nil
		}
		return getRun(ctx, c, ref)
	}
	if found == nil && uuid.Validate(name) == nil {
		return nil, fmt.Errorf("%s is a run id: write the job before it", name)
	}
	if found == nil && runID == "" {
		return nil, fmt.Errorf("there is no run of a job %s", name)
	}
	if found == nil {
		return nil, fmt.Errorf("job %s has no run %s", name, runID)
	}
	return found, nil
}

func noRun(workflowID, runID string) error {
	if runID != "" {
		return fmt.Errorf("%s has no run %s", workflowID, runID)
	}
	return fmt.Errorf("there is no run %s", workflowID)
}

func (i *invocation) writeRun(w io.Writer, run *jobsv1.Run) error {
	var s sheet
	ref := refOf(run.GetName())
	waiting := waitsForTime(run)
	s.add("Job", "%s", run.GetJobId())
	s.add("Type", "%s", run.GetJobType())
	s.add("Mode", "%s", modeWord(run.GetMode()))
	s.add("Queue", "%s", run.GetQueue())
	s.add("Workflow", "%s", ref.workflowID)
	s.add("Run", "%s", ref.runID)
	s.add("Status", "%s", i.statusText(run))
	s.add("Waits", "%s", run.GetWaitReason())
	s.add("Retry of", "%s", refOf(run.GetRetryOf()).runID)
	s.add("Due", "%s", i.when(toTime(run.GetScheduledTime())))
	if run.GetScheduledTime() != nil && !waiting {
		s.add("Late", "%s", took(run.GetLateness().AsDuration()))
	}
	if waiting {
		s.add("Waits until", "%s", i.when(toTime(run.GetStartTime())))
	} else {
		s.add("Started", "%s", i.when(toTime(run.GetStartTime())))
	}
	s.add("Taken", "%s", i.when(toTime(run.GetTakenTime())))
	s.add("Ended", "%s", i.when(toTime(run.GetEndTime())))
	if verbs.Open(run.GetStatus()) && !waiting {
		s.add("Now", "%s", runProgress(run))
		s.add("Updated", "%s", i.when(toTime(run.GetUpdateTime())))
	}
	s.add("Next attempt", "%s", i.when(toTime(run.GetNextAttemptTime())))
	s.add("Worker", "%s", run.GetWorker())
	s.add("Did", "%s", i.spansText(run.GetSpans()))
	i.addResult(&s, run)
	if run.GetSpec() != nil {
		s.add("Spec", "%s", jsonText(run.GetSpec()))
	}
	return s.write(w)
}

// spansText has a line for each thing that a run did.
func (i *invocation) spansText(spans []*jobsv1.RunSpan) string {
	var lines []string
	for _, one := range spans {
		line := i.moment(toTime(one.GetStartTime())) + "  " + plantext.SpanDid(one)
		switch {
		case one.GetKind() == jobsv1.RunSpanKind_RUN_SPAN_KIND_MOVED:
		case one.GetEndTime() == nil:
			line += ", " + took(i.Now().Sub(toTime(one.GetStartTime()))) + " so far"
		default:
			line += ", " + took(toTime(one.GetEndTime()).Sub(toTime(one.GetStartTime())))
		}
		if why := plantext.SpanWhy(one); why != "" {
			line += ": " + why
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// addResult shows what a run has left: its result, its position, its error.
func (i *invocation) addResult(s *sheet, run *jobsv1.Run) {
	s.add("Result", "%s", run.GetMessage())
	s.add("Counts", "%s", counts(run.GetCounts()))
	if run.GetOutput() != nil {
		s.add("Output", "%s", jsonText(run.GetOutput()))
	}
	if run.GetHandovers() > 0 {
		s.add("Handovers", "%d", run.GetHandovers())
	}
	i.addBinding(s, run.GetBinding())
	if cursor := run.GetCursor(); cursor != nil && run.GetStatus() != jobsv1.RunStatus_RUN_STATUS_COMPLETED {
		text, _ := json.Marshal(cursor.AsInterface()) // It came as JSON.
		s.add("Cursor", "%s", text)
	}
	s.add("Error", "%s", errorText(run.GetErrorClass(), run.GetErrorMessage()))
	s.add("Kind", "%s", run.GetErrorKind())
	if cause, cure, at, listed := reference.Class(cmp.Or(run.GetErrorClass(), run.GetLastErrorClass())); listed {
		s.add("Cause", "%s", cause)
		s.add("Cure", "%s", cure)
		s.add("See", "%s", at)
	}
}

// jsonText is a JSON value of the Job API for people.
func jsonText(value proto.Message) string {
	text, err := protojson.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return indented(text)
}
