package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// verb is a command that changes jobs.
type verb struct {
	name, done  string
	short, long string
	// act changes a job. The outcome may note what the job's status was before.
	act func(ctx context.Context, c *api.Clients, jobID, reason string) (verbOutcome, error)
	// fits selects the jobs to which a command with filters applies.
	fits *verbs.Verb
}

// verbOutcome is what a verb did to a job.
type verbOutcome struct {
	response  proto.Message
	note      string // on the job's status before
	unchanged bool
}

func stopJob(ctx context.Context, c *api.Clients, jobID, reason string) (verbOutcome, error) {
	response, err := c.Jobs.StopJob(ctx, &jobsv1.StopJobRequest{Id: jobID, Reason: reason})
	return verbOutcome{response: response}, err
}

func restartJob(ctx context.Context, c *api.Clients, jobID, reason string) (verbOutcome, error) {
	response, err := c.Jobs.RestartJob(ctx, &jobsv1.RestartJobRequest{Id: jobID, Reason: reason})
	return verbOutcome{response: response}, err
}

// pauseJob notes the reasons for which a job is paused already.
func pauseJob(ctx context.Context, c *api.Clients, jobID, reason string) (verbOutcome, error) {
	response, err := c.Jobs.PauseJob(ctx, &jobsv1.PauseJobRequest{Id: jobID, Reason: reason})
	outcome := verbOutcome{response: response}
	if before := response.GetPreviousReason(); before != "" {
		outcome.note = alreadyPaused(before)
	}
	return outcome, err
}

func alreadyPaused(reason string) string { return "it was paused already: " + reason }

// resumeJob notes that a job had no pause to end.
func resumeJob(ctx context.Context, c *api.Clients, jobID, reason string) (verbOutcome, error) {
	response, err := c.Jobs.ResumeJob(ctx, &jobsv1.ResumeJobRequest{Id: jobID, Reason: reason})
	outcome := verbOutcome{response: response, unchanged: response.GetUnchanged()}
	switch {
	case response.GetUnchanged():
		outcome.note = "it was not paused; to run it now, trigger it"
	case response.GetFailuresReset():
		outcome.note = "it was not paused; its count of failures is reset"
	}
	return outcome, err
}

func isContinuous(j *jobsv1.Job) bool { return api.ModeOf(j) == job.ModeContinuous }

// unchanged is the result of a verb that had nothing to do.
const unchanged = "unchanged"

// withNote is a result as a table shows it.
func withNote(result, note string) string {
	if note == "" {
		return result
	}
	return result + "; " + note
}

// result is what a verb did, in words.
func (v verb) result(outcome verbOutcome) string {
	if outcome.unchanged {
		return withNote(unchanged, outcome.note)
	}
	return withNote(v.done, outcome.note)
}

func (i *invocation) verbCommand(v verb) *cobra.Command {
	var reason string
	var filter jobFilters
	var yes bool
	cmd := &cobra.Command{
		Use:               v.name + " JOB... | --type TYPE ...",
		Short:             v.short,
		Long:              v.long + bulkHelp("job"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := namesOrFilters(cmd, args, "JOB", &filter.filters); err != nil {
				return err
			}
			c, err := i.api(cmd.Context())
			if err != nil {
				return err
			}
			if reason == "" {
				reason = defaultReason()
			}
			if len(args) == 1 {
				return i.changeJob(cmd.Context(), c, v, args[0], reason)
			}
			return i.changeJobs(cmd.Context(), c, v, args, &filter, reason, yes)
		},
	}
	filter.register(i, cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "reason that lists and the history show (default: your user name)")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// bulkHelp is the part of a help text on filters.
func bulkHelp(one string) string {
	return `

With filters, the command applies to every ` + one + ` that matches all of them. It shows
the matches and asks. Without a terminal, and with -o json, it needs --yes. Matching
no ` + one + ` is not an error.`
}

func (i *invocation) changeJob(ctx context.Context, c *api.Clients, v verb, jobID, reason string) error {
	outcome, err := v.act(ctx, c, jobID, reason)
	if err != nil {
		return noJob(jobID, err)
	}
	return i.emit(outcome.response, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "Job %s: %s.\n", jobID, clean(v.result(outcome)))
		return err
	})
}

// changeJobs changes the jobs of a list, or else those that match.
func (i *invocation) changeJobs(ctx context.Context, c *api.Clients, v verb, ids []string, f *jobFilters, reason string, yes bool) error {
	named := len(ids) > 0
	if !named {
		var err error
		if ids, err = i.fittingJobs(ctx, c, v.name, f, v.fits); err != nil {
			return err
		}
	}
	return i.doAll(ctx, bulk{
		verb: v.name, one: "job", all: "jobs", names: ids,
		act: func(n int) (string, error) {
			outcome, err := v.act(ctx, c, ids[n], reason)
			if err != nil && !named && hasReason(err, reasonNotFound) {
				return "", fmt.Errorf("%w: %s", errNothingToDo, apiText(err)) // It ended meanwhile, or never ran.
			}
			return v.result(outcome), noJob(ids[n], err)
		},
	}, yes || named)
}

// fittingJobs finds the jobs that match and to which a verb applies.
func (i *invocation) fittingJobs(ctx context.Context, c *api.Clients, verb string, f *jobFilters, fits *verbs.Verb) ([]string, error) {
	found, err := i.findJobs(ctx, c, f, &jobsv1.ListJobsRequest{Filter: f.query(i).String()}, 0)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, j := range found.GetJobs() {
		if fits.Applies(verbs.OfJob(j)) {
			ids = append(ids, j.GetId())
		}
	}
	if left := len(found.GetJobs()) - len(ids); left > 0 {
		i.note("%s left out: there is nothing to %s.", plural(left, "job that matches is", "jobs that match are"), verb)
	}
	return ids, nil
}

func (i *invocation) triggerCommand() *cobra.Command {
	var filter jobFilters
	var yes bool
	cmd := &cobra.Command{
		Use:               "trigger JOB... | --type TYPE ...",
		Short:             "Run a job now, without waiting",
		Long:              `trigger is run --detach: it starts a run of a job that is in Temporal.` + bulkHelp("job"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := namesOrFilters(cmd, args, "JOB", &filter.filters); err != nil {
				return err
			}
			c, err := i.api(cmd.Context())
			if err != nil {
				return err
			}
			if len(args) == 1 {
				started, err := i.trigger(cmd.Context(), c, &jobsv1.RunJobRequest{Id: args[0]})
				if err != nil {
					return err
				}
				return i.reportStarted(started)
			}
			return i.triggerMany(cmd.Context(), c, args, &filter, yes)
		},
	}
	filter.register(i, cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (i *invocation) triggerMany(ctx context.Context, c *api.Clients, ids []string, f *jobFilters, yes bool) error {
	named := len(ids) > 0
	if !named {
		var err error
		ids, err = i.fittingJobs(ctx, c, "trigger", f, verbs.RunJob)
		if err != nil {
			return err
		}
	}
	return i.doAll(ctx, bulk{
		verb: "trigger", one: "job", all: "jobs", names: ids,
		act: func(n int) (string, error) {
			s, err := i.trigger(ctx, c, &jobsv1.RunJobRequest{Id: ids[n]})
			if err != nil {
				return "", err
			}
			return s.result(), nil
		},
	}, yes || named)
}

// noJob adds what to do to an error about a job that does not exist.
func noJob(jobID string, err error) error {
	switch what := notFound(err); what {
	case "":
		return err
	case "job " + jobID:
		return fmt.Errorf("there is no job %s; starter jobs list shows those there are", jobID)
	case "schedule of job " + jobID:
		return fmt.Errorf("job %s is not there yet: apply it first", jobID)
	default:
		return errors.New(what)
	}
}
