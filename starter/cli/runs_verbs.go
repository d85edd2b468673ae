package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// runVerb is a command that changes runs.
type runVerb struct {
	name        string
	short, long string
	// statuses are those of the runs to which it applies.
	statuses []string
	// asks makes it ask even for a single run, with the warning.
	asks    bool
	warning string
	// onePerJob leaves out all runs of a job but the latest.
	onePerJob bool
	act       func(ctx context.Context, c *api.Clients, run *jobsv1.Run, reason string) (string, error)
}

func (i *invocation) runsRetryCommand() *cobra.Command {
	return i.runVerbCommand(runVerb{
		name: "retry", short: "Run failed runs again",
		long: `retry starts a run again that failed, was canceled, terminated or timed out, with
its definition and from its last checkpoint. A queued job is enqueued again, at the
end of its queue; its dead letters are removed.

A run is not retried if a later run has its workflow id, or while a run that it must
not overlap is running. The schedule does not count a run that retry starts. Repeating
the command starts no second run.`,
		statuses:  []string{wordOf(jobsv1.RunStatus_RUN_STATUS_FAILED), wordOf(jobsv1.RunStatus_RUN_STATUS_CANCELED), wordOf(jobsv1.RunStatus_RUN_STATUS_TERMINATED), wordOf(jobsv1.RunStatus_RUN_STATUS_TIMED_OUT)},
		onePerJob: true,
		act:       retryRun,
	})
}

func retryRun(ctx context.Context, c *api.Clients, run *jobsv1.Run, _ string) (string, error) {
	retried, err := c.Runs.RetryRun(ctx, &jobsv1.RetryRunRequest{Name: run.GetName()})
	if err != nil {
		return "", err
	}
	if retried.GetExistingStatus() != jobsv1.RunStatus_RUN_STATUS_UNSPECIFIED {
		return "", fmt.Errorf("%w: it was retried already, as run %s, which is %s",
			errNothingToDo, refOf(retried.GetRunName()).runID, wordOf(retried.GetExistingStatus()))
	}
	s := &started{RunJobResponse: &jobsv1.RunJobResponse{JobId: run.GetJobId(), RunName: retried.GetRunName(), Queue: retried.GetQueue()}}
	if retried.GetQueue() != "" {
		s.Place = &jobsv1.QueuePlace{Sequence: retried.GetSequence(), Ahead: retried.GetAhead(), Duplicate: retried.GetDuplicate()}
	}
	return s.result(), nil
}

func (i *invocation) runsCancelCommand() *cobra.Command {
	return i.runVerbCommand(runVerb{
		name: "cancel", short: "Ask runs to stop",
		long: `cancel asks the handler of a run to stop. The handler has the job's stop grace period
to save its position; the command does not wait for it. A run whose start is delayed
ends without starting.`,
		statuses: []string{wordOf(jobsv1.RunStatus_RUN_STATUS_RUNNING), wordOf(jobsv1.RunStatus_RUN_STATUS_WAITING), wordOf(jobsv1.RunStatus_RUN_STATUS_CANCELING)},
		act: func(ctx context.Context, c *api.Clients, run *jobsv1.Run, reason string) (string, error) {
			if !isOpen(run) { // Temporal takes such a request, too.
				return "", fmt.Errorf("it has ended already: it is %s", wordOf(run.GetStatus()))
			}
			_, err := c.Runs.CancelRun(ctx, &jobsv1.CancelRunRequest{Name: run.GetName(), Reason: reason})
			return "stop requested", err
		},
	})
}

const terminateWarning = "A terminated run does not save its position: its progress since its last checkpoint is lost."

func (i *invocation) runsTerminateCommand() *cobra.Command {
	return i.runVerbCommand(runVerb{
		name: "terminate", short: "End runs at once, without saving anything",
		long: `terminate ends a run at once. Its handler learns of it by its next heartbeat, and may
work until then. It cannot save its position; retry continues at its last checkpoint.
Use terminate for runs that cancel cannot end.`,
		statuses: []string{wordOf(jobsv1.RunStatus_RUN_STATUS_RUNNING), wordOf(jobsv1.RunStatus_RUN_STATUS_WAITING), wordOf(jobsv1.RunStatus_RUN_STATUS_CANCELING)},
		asks:     true, warning: terminateWarning,
		act: func(ctx context.Context, c *api.Clients, run *jobsv1.Run, reason string) (string, error) {
			_, err := c.Runs.TerminateRun(ctx, &jobsv1.TerminateRunRequest{Name: run.GetName(), Reason: reason})
			return "terminated", err
		},
	})
}

func (i *invocation) runVerbCommand(v runVerb) *cobra.Command {
	var filter runFilters
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use:   v.name + " JOB|WORKFLOW_ID [RUN_ID] | JOB|WORKFLOW_ID... | --job JOB ...",
		Short: v.short,
		Long: v.long + `

A job or a workflow id stands for its latest run; a run id after a single one selects
another run.` + bulkHelp("run"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := namesOrFilters(cmd, args, "JOB or WORKFLOW_ID", &filter.filters); err != nil {
				return err
			}
			if filter.mode == job.ModeContinuous {
				return misuse(cmd, "continuous jobs have iterations, not runs: see starter jobs --help")
			}
			c, err := i.api(cmd.Context())
			if err != nil {
				return err
			}
			if reason == "" {
				reason = defaultReason()
			}
			runs, err := i.runsFor(cmd.Context(), c, v, args, &filter)
			if err != nil {
				return err
			}
			return i.doToRuns(cmd.Context(), c, v, runs, reason, len(args) > 0, yes)
		},
	}
	filter.register(i, cmd, v.statuses...)
	cmd.Flags().StringVar(&reason, "reason", "", "reason that the history shows (default: your user name)")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// maxBulkRuns bounds the runs of one command.
const maxBulkRuns = 1000

// namedRuns finds the runs that are named: JOB RUN_ID, or any number of jobs and workflows.
func namedRuns(ctx context.Context, c *api.Clients, args []string) ([]*jobsv1.Run, error) {
	// The ids of jobs have a dot, and those of their workflows too.
	if len(args) == 2 && !strings.Contains(args[1], ".") {
		run, err := findRun(ctx, c, args[0], args[1])
		return []*jobsv1.Run{run}, err
	}
	runs := make([]*jobsv1.Run, len(args))
	for n, arg := range args {
		var err error
		if runs[n], err = findRun(ctx, c, arg, ""); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// runsFor finds the runs that are named, or those that match.
func (i *invocation) runsFor(ctx context.Context, c *api.Clients, v runVerb, args []string, filter *runFilters) ([]*jobsv1.Run, error) {
	if len(args) > 0 {
		return namedRuns(ctx, c, args)
	}
	q := filter.query(i)
	if filter.status == "" {
		for _, status := range runStatuses() {
			if !slices.Contains(v.statuses, status) {
				q.isNot("status", status)
			}
		}
	}
	found, err := findRuns(ctx, c, &jobsv1.ListRunsRequest{Filter: q.String()}, maxBulkRuns+1)
	if err != nil {
		return nil, err
	}
	runs := found.GetRuns()
	if len(runs) > maxBulkRuns {
		return nil, fmt.Errorf("more than %d runs match; narrow them down, with --since or --job for example", maxBulkRuns)
	}
	if len(runs) > 0 && runs[0].GetIteration() > 0 {
		return nil, fmt.Errorf("job %s is continuous and has no runs: see starter jobs --help", filter.jobID)
	}
	if v.onePerJob {
		runs = i.latestOfEach(runs)
	}
	return runs, filter.checkMatch(i, len(runs))
}

// latestOfEach keeps the latest run of each job.
func (i *invocation) latestOfEach(runs []*jobsv1.Run) []*jobsv1.Run {
	var kept []*jobsv1.Run
	seen := map[string]bool{}
	for _, run := range runs {
		if !seen[run.GetJobId()] {
			kept = append(kept, run)
		}
		seen[run.GetJobId()] = true
	}
	if left := len(runs) - len(kept); left > 0 {
		i.note("%s left out: with filters only the latest run of each job is retried.", plural(left, "earlier run is", "earlier runs are"))
	}
	return kept
}

func (i *invocation) doToRuns(ctx context.Context, c *api.Clients, v runVerb, runs []*jobsv1.Run, reason string, named, yes bool) error {
	names := make([]string, len(runs))
	for n, run := range runs {
		ref := refOf(run.GetName())
		names[n] = ref.workflowID + " " + ref.runID
	}
	return i.doAll(ctx, bulk{
		verb: v.name, one: "run", all: "runs", names: names, warning: v.warning,
		act: func(n int) (string, error) {
			done, err := v.act(ctx, c, runs[n], reason)
			if hasReason(err, reasonNotFound) {
				err = fmt.Errorf("it has ended: %w", errNothingToDo)
				if named {
					err = errors.New("it has ended already")
				}
			}
			if hasReason(err, reasonNotRetried) {
				text := notRetriedText(err, refOf(runs[n].GetName()))
				if !named {
					return "", fmt.Errorf("%w: %s", errNothingToDo, text)
				}
				return "", errors.New(text)
			}
			return done, err
		},
	}, yes || named && !v.asks)
}

// notRetriedText is why a run is not retried, for a line that starts with the run's name.
func notRetriedText(err error, run runRef) string {
	text := strings.TrimSuffix(apiText(err), ": it is not tried again")
	if rest, ok := strings.CutPrefix(text, fmt.Sprintf("run %s of %s ", run.runID, run.workflowID)); ok {
		return "it " + rest
	}
	return text
}
