package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

func (i *invocation) runsCommand() *cobra.Command {
	return group("runs", "List, describe, retry and end runs, show their logs, and group what failed",
		i.runsListCommand(), i.runsFailuresCommand(), i.runsDescribeCommand(), i.runsLogsCommand(),
		i.runsRetryCommand(), i.runsCancelCommand(), i.runsTerminateCommand())
}

// runFilters are the flags by which runs are found.
type runFilters struct {
	filters
	jobID, queue string
	status       string
	// errorClass is a class of errors, and failure a failure group.
	errorClass, failure string
	since, until        time.Time
}

func runStatuses() []string { return wordsOf(jobsv1.RunStatus(0)) }

func (f *runFilters) register(i *invocation, cmd *cobra.Command, statuses ...string) {
	flags := cmd.Flags()
	flags.Var(nameValue{&f.jobID}, "job", "only runs of this job")
	f.filters.register(i, cmd, "runs", job.Modes()...)
	flags.Var(nameValue{&f.queue}, "queue", "only runs of jobs of this queue")
	flags.Var(choose(&f.status, statuses...), "status", "only runs with this status: "+strings.Join(statuses, ", "))
	flags.Var(nameValue{&f.errorClass}, "error-class", "only runs that failed with an error of this class")
	flags.Var(nameValue{&f.failure}, "failure", "only runs of this failure group: see starter runs failures")
	flags.Var(sinceValue{&f.since, i.Now}, "since", "only runs started since: 2026-05-01T12:00:00Z, or PT1H for the last hour")
	flags.Var(sinceValue{&f.until, i.Now}, "until", "only runs started before: a time as with --since")
	completeFixed(cmd, "status", statuses...)
	if err := cmd.RegisterFlagCompletionFunc("job", i.completeJobs); err != nil {
		cobra.CompErrorln(err.Error())
	}
	f.names = append(f.names, "job", "queue", "status", "error-class", "failure", "since", "until")
}

// query is the filter of the Job API that the flags make.
func (f *runFilters) query(i *invocation) *query {
	q := f.filters.query(i)
	q.is("job_id", f.jobID)
	q.is("queue", f.queue)
	q.is("status", f.status)
	q.is("error_class", f.errorClass)
	q.is("failure", f.failure)
	q.bound("start_time", f.since, f.until)
	return q
}

func (i *invocation) runsListCommand() *cobra.Command {
	var filter runFilters
	var page paging
	var missed bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, the latest first",
		Long: `list shows runs within the retention of the namespace, the latest first. A run may
take a second to appear.

  STATUS  waiting: it waits for its time, or no worker has taken it, and RESULT says so;
          canceling: it was asked to stop, and has not ended
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
  failing        the job was failing, and the start came before its next run
  server_late    Temporal was down or busy, and made the run of another start late, for both
  missed_window  Temporal was down or busy for longer than the catch-up window
  buffer_full    more starts waited than a schedule buffers
  unknown        the reason cannot be derived`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := page.check(cmd); err != nil {
				return err
			}
			if missed && page.token != "" {
				return misuse(cmd, "--page-token cannot be combined with --missed")
			}
			if missed {
				return i.listMissed(cmd, &filter, page.limit)
			}
			if filter.mode == job.ModeContinuous && filter.jobID == "" {
				return misuse(cmd, "continuous jobs have iterations, not runs: give --job to list those of one")
			}
			return i.listRuns(cmd, &filter, page)
		},
	}
	filter.register(i, cmd, runStatuses()...)
	page.register(cmd, "runs", 20)
	cmd.Flags().BoolVar(&missed, "missed", false, "starts of recurring jobs that have no run")
	return cmd
}

func (i *invocation) listRuns(cmd *cobra.Command, filter *runFilters, page paging) error {
	found, err := findRuns(cmd.Context(), i.api, &jobsv1.ListRunsRequest{
		Filter: filter.query(i).String(), PageToken: page.token,
	}, page.limit)
	if err != nil {
		return err
	}
	runs := found.GetRuns()
	if err := filter.checkMatch(i, len(runs)); err != nil {
		return err
	}
	if len(runs) == 0 && filter.jobID != "" {
		if _, err := i.api.Jobs.GetJob(cmd.Context(), &jobsv1.GetJobRequest{Id: filter.jobID}); hasReason(err, reasonNotFound) {
			return err
		}
	}
	i.noteEmpty("run", len(runs))
	if err := i.emit(found, i.runTable(runs, true).write); err != nil {
		return err
	}
	i.noteMore(found.GetNextPageToken())
	return nil
}

// findRuns lists the latest runs that match, all of them if the limit is 0.
func findRuns(ctx context.Context, c *api.Clients, request *jobsv1.ListRunsRequest, limit int) (*jobsv1.ListRunsResponse, error) {
	return listSome(ctx, c.Runs.ListRuns, request, limit, func(r *jobsv1.ListRunsResponse) int { return len(r.GetRuns()) })
}

// runTable shows runs; the job is left out where all are of the same.
func (i *invocation) runTable(runs []*jobsv1.Run, withJob bool) *table {
	header := []string{"JOB", "STATUS", "DUE", "STARTED", "LATE", "TOOK", "TRIES", "UPDATED", "WORKER", "RESULT", "COUNTS", "RUN ID"}
	first := 0
	if !withJob {
		first = 1
	}
	t := newTable(header[first:]...).spare("UPDATED", "COUNTS", "WORKER", "LATE", "DUE", "RUN ID", "TRIES", "TOOK", "STARTED", "RESULT")
	for _, run := range runs {
		started, tookText, late := i.when(toTime(run.GetStartTime())), took(i.since(run)), ""
		if waitsForTime(run) {
			started, tookText = "waits until "+started, ""
		} else if run.GetScheduledTime() != nil {
			late = took(run.GetLateness().AsDuration())
		}
		if run.GetStatus() == jobsv1.RunStatus_RUN_STATUS_WAITING {
			tookText = "" // Nothing is done yet.
		}
		tries := ""
		if run.GetAttempts() > 0 {
			tries = fmt.Sprint(run.GetAttempts())
		}
		row := []string{
			run.GetJobId(), wordOf(run.GetStatus()), i.moment(toTime(run.GetScheduledTime())), started, late, tookText, tries,
			i.moment(toTime(run.GetUpdateTime())), run.GetWorker(), runResult(run), shortened(counts(run.GetCounts()), maxCounts), runLabel(run),
		}
		t.add(row[first:]...)
	}
	return t
}

// runLabel identifies a run among those of its job.
func runLabel(run *jobsv1.Run) string {
	if run.GetIteration() > 0 {
		return fmt.Sprintf("iteration %d", run.GetIteration())
	}
	return refOf(run.GetName()).runID
}

// runRef is what the name of a run is made of.
type runRef struct{ workflowID, runID string }

// refOf takes the name of a run apart: WORKFLOW_ID@RUN_ID.
func refOf(name string) runRef {
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		return runRef{name[:at], name[at+1:]}
	}
	return runRef{workflowID: name}
}

// name is the name of a run: the latest of the workflow without a run id.
func (r runRef) name() string {
	if r.runID == "" {
		return r.workflowID
	}
	return r.workflowID + "@" + r.runID
}

// waitsForTime reports whether a run is to be started at a time ahead.
func waitsForTime(run *jobsv1.Run) bool {
	return run.GetStatus() == jobsv1.RunStatus_RUN_STATUS_WAITING && run.GetWaitReason() == ""
}

// progressText is how far a run is, "" if that is not known.
func progressText(run *jobsv1.Run) string {
	p := run.GetProgress()
	progress := job.Progress{Done: p.GetDone(), Total: p.GetTotal(), Message: p.GetMessage()}
	if progress == (job.Progress{}) {
		return ""
	}
	return progress.String()
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
func runResult(run *jobsv1.Run) string { return shortened(resultText(run), maxResult) }

// resultText is the result of a run, or its error; of one under way what it waits for, or its
// progress.
func resultText(run *jobsv1.Run) string {
	text := run.GetMessage()
	if run.GetErrorMessage() != "" {
		text = errorText(run.GetErrorClass(), run.GetErrorMessage())
	} else if run.GetWaitReason() != "" {
		text = run.GetWaitReason()
	} else if progress := progressText(run); verbs.Open(run.GetStatus()) && progress != "" {
		text = progress
	}
	return text
}
