package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/api/plantext"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// planOptions are the flags that plan and apply share.
type planOptions struct {
	file           string
	prune          bool
	allowMassPrune bool
	allowEmpty     bool
	resetPauses    bool
	parallel       int
}

// defaultCalls and maxCalls bound the calls to the server under way at once.
const (
	defaultCalls = 8
	maxCalls     = 64
)

func (o *planOptions) register(i *invocation, cmd *cobra.Command) {
	flags := cmd.Flags()
	o.file = i.defaultFile()
	flags.VarP(textValue{&o.file, argumentFile}, "file", "f", "jobs file (default: $"+EnvJobsFile+", else jobs.toml)")
	flags.BoolVar(&o.prune, "prune", false, "delete the jobs that came from a jobs file and are no longer declared")
	flags.BoolVar(&o.allowMassPrune, "allow-mass-prune", false, "let --prune delete more than a fifth of the jobs, or all")
	flags.BoolVar(&o.allowEmpty, "allow-empty", false, "let --prune go with a file without jobs")
	flags.BoolVar(&o.resetPauses, "reset-pauses", false, "resume jobs that were paused by hand, and pause those that were resumed")
	flags.IntVar(&o.parallel, "parallel", defaultCalls, "calls to the server under way at once, 1 to 64")
}

// set lists the given flags that a saved plan determines.
func (o *planOptions) set(cmd *cobra.Command) []string {
	var set []string
	for _, name := range []string{"file", "prune", "allow-mass-prune", "allow-empty", "reset-pauses"} {
		if cmd.Flags().Changed(name) {
			set = append(set, "--"+name)
		}
	}
	return set
}

func (i *invocation) planCommand() *cobra.Command {
	var options planOptions
	var out string
	cmd := &cobra.Command{
		Use:         "plan",
		Annotations: map[string]string{exitMeansChanges: ""},
		Short:       "Compare a jobs file with Temporal",
		Long: `plan shows what apply would do, and changes nothing:

  + create     ~ update, with every value that changes
  - delete     ? no longer declared, kept unless --prune is given
  ! blocked: the name is taken by an unmanaged resource, a run has not ended, or
    Temporal was too busy to answer for the job
  = unchanged

For a schedule that changes, plan shows the next three starts before and after the
change, without jitter. --out saves the plan. "apply FILE" carries out the saved plan,
or refuses if the jobs in Temporal have changed since.

Exit codes: 0 nothing to change, 1 error or a job that could not be read, 2 changes or
blocked jobs.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOut(out); err != nil {
				return err
			}
			planned, err := i.plan(cmd, options)
			if err != nil {
				return err
			}
			plan := planned.plan
			if err := i.emit(&jobsv1.PlanJobSetResponse{Plan: plan}, func(w io.Writer) error { return i.writePlan(w, plan) }); err != nil {
				return err
			}
			if err := plantext.UnreadError(planned.unread); err != nil {
				return err
			}
			if out != "" {
				if plan.GetRefusal() != "" {
					return fmt.Errorf("the plan is not saved, since it would not be applied: %s; if that is meant, add --allow-mass-prune", plan.GetRefusal())
				}
				if err := savePlan(out, planned, i.Now()); err != nil {
					return err
				}
				i.note("saved as %s; carry it out with: starter apply %s", out, out)
			}
			if workOf(plan)+plantext.Count(plan, jobsv1.JobAction_JOB_ACTION_BLOCKED) > 0 {
				return errChanges
			}
			return nil
		},
	}
	options.register(i, cmd)
	cmd.Flags().Var(textValue{&out, argumentFile}, "out", "save the plan as this file, for apply")
	return cmd
}

// plannedSet is a set of jobs with its plan.
type plannedSet struct {
	set  *jobsv1.JobSet
	plan *jobsv1.Plan
	// exact says that this very plan is meant: apply refuses if it would be another by then.
	exact bool
	// reason is why it is applied.
	reason string
	// unread is how many jobs could not be read, by the plan and then by apply.
	unread int
}

// plan reads the file and compares it with Temporal.
func (i *invocation) plan(cmd *cobra.Command, options planOptions) (*plannedSet, error) {
	if err := checkParallel(cmd, options.parallel); err != nil {
		return nil, err
	}
	declared, err := i.load(options.file)
	if err != nil {
		return nil, err
	}
	if len(declared) == 0 && options.prune && !options.allowEmpty {
		return nil, fmt.Errorf("%s declares no job, and --prune would delete all there are: "+
			"if that is meant, add --allow-empty and --allow-mass-prune", options.file)
	}
	set := &jobsv1.JobSet{
		Provider: string(job.ProviderTOML), Prune: options.prune, AllowMassDelete: options.allowMassPrune, ResetPauses: options.resetPauses,
	}
	for _, j := range declared {
		set.Jobs = append(set.Jobs, api.JobMessage(j))
	}
	return i.planSet(cmd.Context(), set, options.parallel)
}

// planSet has the Job API plan a set.
func (i *invocation) planSet(ctx context.Context, set *jobsv1.JobSet, parallel int) (*plannedSet, error) {
	set.Parallel = int32(parallel)
	answer, err := i.api.JobSets.PlanJobSet(ctx, &jobsv1.PlanJobSetRequest{JobSet: set})
	if err != nil {
		return nil, aboutJobSet(set, err)
	}
	return &plannedSet{set: set, plan: answer.GetPlan(), unread: plantext.Unread(answer.GetPlan())}, nil
}

// jobOfSet is the field of a job in a request with a set.
var jobOfSet = regexp.MustCompile(`^job_set\.jobs\[(\d+)\]\.?(.*)$`)

// aboutJobSet names the jobs that the Job API refuses, one in each line. The file has no
// problems itself: the server that refuses them knows other job types, or another release.
func aboutJobSet(set *jobsv1.JobSet, err error) error {
	var errs []error
	for _, v := range api.ViolationsOf(err) {
		parts := jobOfSet.FindStringSubmatch(v.GetField())
		if parts == nil {
			return err
		}
		n, failed := strconv.Atoi(parts[1])
		if failed != nil || n >= len(set.GetJobs()) {
			return err
		}
		text := "job " + set.GetJobs()[n].GetId() + ": "
		if parts[2] != "" {
			text += parts[2] + ": "
		}
		errs = append(errs, errors.New(text+v.GetDescription()))
	}
	if len(errs) == 0 {
		return err
	}
	return errors.Join(errs...)
}

func checkParallel(cmd *cobra.Command, parallel int) error {
	if parallel < 1 || parallel > maxCalls {
		return misuse(cmd, "--parallel %d is not from 1 to %d", parallel, maxCalls)
	}
	return nil
}

// checkOut refuses to write a plan over anything but another saved plan.
func checkOut(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("the plan cannot be saved: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("the plan cannot be saved: %s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("the plan cannot be saved: %w", err)
	}
	defer func() { _ = file.Close() }()
	if !isSavedPlan(file) {
		return fmt.Errorf("the plan cannot be saved: %s is there and is no saved plan; it is not overwritten", path)
	}
	return nil
}

// colors are those of the tones of lines.
var colors = map[plantext.Tone]color{
	plantext.Added: green, plantext.Changed: yellow, plantext.Removed: red, plantext.Blocked: magenta, plantext.Faint: faint,
}

// workOf is how many changes apply would make.
func workOf(plan *jobsv1.Plan) int {
	return plantext.Count(plan, jobsv1.JobAction_JOB_ACTION_CREATE) + plantext.Count(plan, jobsv1.JobAction_JOB_ACTION_UPDATE) +
		plantext.Count(plan, jobsv1.JobAction_JOB_ACTION_DELETE)
}

// writePlan shows a plan. Coming starts are in the time zone of the terminal.
func (i *invocation) writePlan(w io.Writer, plan *jobsv1.Plan) error {
	return i.writeLines(w, plantext.OfPlan(plan, i.Location))
}

// writeLines writes lines in their colors.
func (i *invocation) writeLines(w io.Writer, lines []plantext.Line) error {
	out := &lineWriter{w: w}
	for _, line := range lines {
		text := line.Text
		if tint, ok := colors[line.Tone]; ok {
			text = i.paint(tint, text)
		}
		out.printf("%s", text)
	}
	return out.err
}

// lineWriter writes lines and keeps the first error.
type lineWriter struct {
	w   io.Writer
	err error
}

func (l *lineWriter) printf(format string, args ...any) {
	if l.err == nil {
		_, l.err = fmt.Fprintf(l.w, format+"\n", args...)
	}
}
