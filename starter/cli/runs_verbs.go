package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
)

// runVerb is a command that changes runs.
type runVerb struct {
	name        string
	short, long string
	// statuses are those of the runs to which it applies.
	statuses []client.RunStatus
	// asks makes it ask even for a single run, with the warning.
	asks    bool
	warning string
	// onePerJob leaves out all runs of a job but the latest.
	onePerJob bool
	act       func(ctx context.Context, c *client.Client, run client.Run, reason string) (string, error)
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
		statuses:  []client.RunStatus{client.RunFailed, client.RunCanceled, client.RunTerminated, client.RunTimedOut},
		onePerJob: true,
		act: func(ctx context.Context, c *client.Client, run client.Run, _ string) (string, error) {
			retried, err := c.Runs.Retry(ctx, run.RunRef)
			if err != nil {
				return "", err
			}
			if retried.ExistedBefore {
				return "", fmt.Errorf("%w: it was retried already, as run %s, which is %s", errNothingToDo, retried.Run.RunID, retried.Status)
			}
			s := &started{Job: retried.Job, Receipt: retried.Receipt}
			if s.Receipt == nil {
				s.Run = &retried.Run
			}
			return s.result(), nil
		},
	})
}

func (i *invocation) runsCancelCommand() *cobra.Command {
	return i.runVerbCommand(runVerb{
		name: "cancel", short: "Ask runs to stop",
		long: `cancel asks the handler of a run to stop. The handler has the job's stop grace period
to save its position; the command does not wait for it. A run whose start is delayed
ends without starting.`,
		statuses: []client.RunStatus{client.RunRunning, client.RunWaiting},
		act: func(ctx context.Context, c *client.Client, run client.Run, reason string) (string, error) {
			if !run.Status.Open() { // Temporal takes such a request, too.
				return "", fmt.Errorf("it has ended already: it is %s", run.Status)
			}
			return "stop requested", c.Runs.Cancel(ctx, run.RunRef, reason)
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
		statuses: []client.RunStatus{client.RunRunning, client.RunWaiting},
		asks:     true, warning: terminateWarning,
		act: func(ctx context.Context, c *client.Client, run client.Run, reason string) (string, error) {
			return "terminated", c.Runs.Terminate(ctx, run.RunRef, reason)
		},
	})
}

func (i *invocation) runVerbCommand(v runVerb) *cobra.Command {
	var filter runFilters
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use:   v.name + " JOB|WORKFLOW_ID [RUN_ID] | --job JOB ...",
		Short: v.short,
		Long: v.long + `

A job or a workflow id stands for its latest run; a run id selects another one.` + bulkHelp("run"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := namesOrFilters(cmd, args, "JOB or WORKFLOW_ID", &filter.filters); err != nil {
				return err
			}
			if len(args) > 0 {
				if err := arguments("JOB or WORKFLOW_ID", "[RUN_ID]")(cmd, args); err != nil {
					return err
				}
			}
			if filter.mode == job.ModeContinuous {
				return misuse(cmd, "continuous jobs have iterations, not runs: see starter jobs --help")
			}
			c, err := i.connect(cmd.Context())
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

// runsFor finds the run that is named, or those that match.
func (i *invocation) runsFor(ctx context.Context, c *client.Client, v runVerb, args []string, filter *runFilters) ([]client.Run, error) {
	if len(args) > 0 {
		runID := ""
		if len(args) > 1 {
			runID = args[1]
		}
		detail, err := findRun(ctx, c, args[0], runID)
		if err != nil {
			return nil, err
		}
		return []client.Run{detail.Run}, nil
	}
	f := filter.filter(i)
	f.Limit = maxBulkRuns + 1
	if f.Status == "" {
		f.Statuses = v.statuses
	}
	runs, err := c.Runs.List(ctx, f)
	if err != nil {
		return nil, err
	}
	if len(runs) > maxBulkRuns {
		return nil, fmt.Errorf("more than %d runs match; narrow them down, with --since or --job for example", maxBulkRuns)
	}
	if len(runs) > 0 && runs[0].Iteration > 0 {
		return nil, fmt.Errorf("job %s is continuous and has no runs: see starter jobs --help", f.JobID)
	}
	if v.onePerJob {
		runs = i.latestOfEach(runs)
	}
	return runs, filter.checkMatch(i, len(runs))
}

// latestOfEach keeps the latest run of each job.
func (i *invocation) latestOfEach(runs []client.Run) []client.Run {
	var kept []client.Run
	seen := map[string]bool{}
	for _, run := range runs {
		if !seen[run.JobID] {
			kept = append(kept, run)
		}
		seen[run.JobID] = true
	}
	if left := len(runs) - len(kept); left > 0 {
		i.note("%s left out: with filters only the latest run of each job is retried.", plural(left, "earlier run is", "earlier runs are"))
	}
	return kept
}

func (i *invocation) doToRuns(ctx context.Context, c *client.Client, v runVerb, runs []client.Run, reason string, named, yes bool) error {
	names := make([]string, len(runs))
	for n, run := range runs {
		names[n] = run.WorkflowID + " " + run.RunID
	}
	return i.doAll(ctx, bulk{
		verb: v.name, one: "run", all: "runs", names: names, warning: v.warning,
		act: func(n int) (string, error) {
			done, err := v.act(ctx, c, runs[n], reason)
			if errors.Is(err, client.ErrNotFound) {
				err = fmt.Errorf("it has ended: %w", errNothingToDo)
				if named {
					err = errors.New("it has ended already")
				}
			}
			if err != nil && !named && errors.Is(err, client.ErrNotRetried) {
				return "", fmt.Errorf("%w: %w", errNothingToDo, err)
			}
			return done, err
		},
	}, yes || named && !v.asks)
}
