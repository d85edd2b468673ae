package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

func (i *invocation) runsRetryCommand() *cobra.Command {
	return i.bulkCommand(verbs.RetryRun, verbHelp{"Run failed runs again", `retry starts a run again that failed, was canceled, terminated or timed out, with
its definition and from its last checkpoint. A queued job is enqueued again, at the
end of its queue; its dead letters are removed. Filters choose the jobs whose latest
run failed or timed out. With --status they choose the latest run of each job with
that status: so what people have ended, or what later runs have made good, is retried.
With --failure or --error-class they choose the latest run of each job that failed so.

A run is not retried if a later run has its workflow id, or while a run that it must
not overlap is running. The schedule does not count a run that retry starts. Repeating
the command starts no second run.`}, i.runsFor(verbs.RetryRun))
}

func (i *invocation) runsCancelCommand() *cobra.Command {
	return i.bulkCommand(verbs.CancelRun, verbHelp{"Ask runs to stop", `cancel asks the handler of a run to stop. The handler has the job's stop grace period
to save its position; the command does not wait for it. A run whose start is delayed
ends without starting.`}, i.runsFor(verbs.CancelRun))
}

func (i *invocation) runsTerminateCommand() *cobra.Command {
	return i.bulkCommand(verbs.TerminateRun, verbHelp{"End runs at once, without saving anything", `terminate ends a run at once. Its handler learns of it by its next heartbeat, and may
work until then. It cannot save its position; retry continues at its last checkpoint.
Use terminate for runs that cancel cannot end. It asks even for one run.`}, i.runsFor(verbs.TerminateRun))
}

// runsFor are the runs that a verb may be done to.
func (i *invocation) runsFor(v *verbs.Verb) things {
	f := &runFilters{}
	return things{
		use: "JOB|WORKFLOW_ID [RUN_ID] | JOB|WORKFLOW_ID... | --job JOB ...", name: "JOB or WORKFLOW_ID", filters: &f.filters,
		help: `

A job or a workflow id stands for its latest run; a run id after a single one selects
another run.`,
		register: func(cmd *cobra.Command) { f.register(i, cmd, statusesOf(v.Applies)...) },
		check: func(cmd *cobra.Command) error {
			if f.mode == job.ModeContinuous {
				return misuse(cmd, "continuous jobs have iterations, not runs: see starter jobs --help")
			}
			return nil
		},
		find: func(ctx context.Context, names []string) (_ []thing, err error) {
			var runs []*jobsv1.Run
			if len(names) > 0 {
				runs, err = namedRuns(ctx, i.api, names)
			} else {
				runs, err = i.fittingRuns(ctx, f, v)
			}
			found := make([]thing, len(runs))
			for n, run := range runs {
				ref := refOf(run.GetName())
				found[n] = thing{run.GetName(), ref.workflowID + " " + ref.runID}
			}
			return found, err
		},
	}
}

// statusesOf are the statuses of runs for which the function holds.
func statusesOf(holds func(verbs.Subject) bool) []string {
	var statuses []string
	for _, status := range runStatuses() {
		for number := range jobsv1.RunStatus_name {
			if value := jobsv1.RunStatus(number); status == wordOf(value) && holds(verbs.Subject{Run: value}) {
				statuses = append(statuses, status)
			}
		}
	}
	return statuses
}

// namedRuns finds the runs that are named: JOB RUN_ID, or any number of jobs and workflows.
func namedRuns(ctx context.Context, c *api.Clients, args []string) ([]*jobsv1.Run, error) {
	// The ids of jobs have a dot, and those of their workflows too.
	if len(args) == 2 && !strings.Contains(args[1], ".") {
		run, err := findRun(ctx, c, args[0], args[1])
		if err != nil {
			return nil, err
		}
		return []*jobsv1.Run{run}, nil
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

// fittingRuns finds the runs that match and that a verb is meant for. Of a job, one run is
// retried: it is known only once all were listed that tell how the job does.
func (i *invocation) fittingRuns(ctx context.Context, f *runFilters, v *verbs.Verb) ([]*jobsv1.Run, error) {
	if v == verbs.RetryRun && f.status == "" && (f.errorClass != "" || f.failure != "") {
		return i.alikeToRetry(ctx, f)
	}
	listed, fits := *f, v.AppliesAmong
	if v == verbs.RetryRun && f.status == "" {
		listed.until, fits = time.Time{}, func(of verbs.Subject) bool { return verbs.Tells(of.Run) }
	}
	q := listed.query(i)
	if f.status == "" {
		chosen := statusesOf(fits)
		for _, status := range runStatuses() {
			if !slices.Contains(chosen, status) {
				q.isNot("status", status)
			}
		}
	}
	found, err := findRuns(ctx, i.api, &jobsv1.ListRunsRequest{Filter: q.String()}, 0)
	if err != nil {
		return nil, err
	}
	runs := found.GetRuns()
	if len(runs) > 0 && runs[0].GetIteration() > 0 {
		return nil, fmt.Errorf("job %s is continuous and has no runs: see starter jobs --help", f.jobID)
	}
	if v == verbs.RetryRun {
		runs = f.toRetry(runs)
	}
	return runs, f.checkMatch(i, len(runs))
}

// alikeToRetry finds the runs to retry among those that failed alike: those of jobs that have not
// run otherwise since.
func (i *invocation) alikeToRetry(ctx context.Context, f *runFilters) ([]*jobsv1.Run, error) {
	found, err := findRuns(ctx, i.api, &jobsv1.ListRunsRequest{Filter: f.query(i).String()}, 0)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var runs []*jobsv1.Run
	for _, run := range found.GetRuns() {
		if seen[run.GetJobId()] {
			continue
		}
		seen[run.GetJobId()] = true
		meant, err := i.api.RunToRetry(ctx, run.GetJobId())
		if err != nil && connect.CodeOf(err) != connect.CodeFailedPrecondition {
			return nil, err
		}
		if meant.GetName() == run.GetName() {
			runs = append(runs, run)
		}
	}
	return runs, f.checkMatch(i, len(runs))
}

// toRetry keeps of each job the run to retry. With a status it is the latest one of that.
func (f *runFilters) toRetry(runs []*jobsv1.Run) []*jobsv1.Run {
	of := map[string][]*jobsv1.Run{}
	for _, run := range runs {
		of[run.GetJobId()] = append(of[run.GetJobId()], run)
	}
	return slices.DeleteFunc(runs, func(run *jobsv1.Run) bool {
		meant := of[run.GetJobId()][0]
		if f.status == "" {
			meant, _ = verbs.RunToRetry(of[run.GetJobId()])
		}
		return run != meant || !f.until.IsZero() && !run.GetStartTime().AsTime().Before(f.until)
	})
}
