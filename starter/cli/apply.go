package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

func (i *invocation) applyCommand() *cobra.Command {
	var options planOptions
	var flags verbFlags
	cmd := &cobra.Command{
		Use:   "apply [PLAN]",
		Short: "Bring Temporal in line with a jobs file, or carry out a saved plan",
		Long: `apply shows the plan, asks, and carries it out. A file with a problem is not
applied at all. If a change fails, the others are still made. An interrupted apply
can be run again: no change is made twice.

With a plan that "plan --out" saved, apply carries out that plan without asking. It
refuses if the file's jobs in Temporal have changed since.

Without a terminal to ask on, and with -o json, it needs --yes.

Exit codes: 0 all is as declared, 1 something failed or is blocked; what is not
blocked is applied nevertheless.`,
		Args:              arguments("[" + argumentPlan + "]"),
		ValidArgsFunction: completeAnyFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				planned, err := i.plan(cmd, options)
				if err != nil {
					return err
				}
				planned.reason = flags.reason
				return i.apply(cmd, planned, flags.yes)
			}
			if set := options.set(cmd); len(set) > 0 {
				return misuse(cmd, "a saved plan has its own options; leave out %s", strings.Join(set, ", "))
			}
			planned, err := i.replan(cmd, args[0], options.parallel)
			if err != nil {
				return err
			}
			planned.exact, planned.reason = true, flags.reason
			return i.apply(cmd, planned, true)
		},
	}
	options.register(i, cmd)
	flags.register(cmd, verbs.ApplyJobSet)
	flags.registerYes(cmd)
	return cmd
}

// writeApplied writes what apply did as JSON: the plan, and the changes that were tried in
// the order of ids. Both are messages of the Job API.
func (i *invocation) writeApplied(plan *jobsv1.Plan, results []*jobsv1.JobChange) error {
	applied := &jobsv1.AppliedJobSet{Plan: plan, Changes: slices.Clone(results)}
	slices.SortStableFunc(applied.Changes, func(a, b *jobsv1.JobChange) int { return strings.Compare(a.GetJobId(), b.GetJobId()) })
	return i.emit(applied, nil)
}

func (i *invocation) apply(cmd *cobra.Command, planned *plannedSet, yes bool) error {
	plan := planned.plan
	if i.format == formatTable {
		if err := i.writePlan(i.out(), plan); err != nil {
			return err
		}
	}
	if plan.GetRefusal() != "" {
		return fmt.Errorf("nothing was applied: %s; if that is meant, add --allow-mass-prune", plan.GetRefusal())
	}
	var results []*jobsv1.JobChange
	switch work := workOf(plan); {
	case work > 0:
		if !yes {
			if err := i.ask(cmd.Context(), "\nApply this plan?", "apply", "to apply the plan", "nothing was applied"); err != nil {
				return err
			}
			planned.exact = true
		}
		started := time.Now()
		var err error
		if results, err = i.carryOut(cmd.Context(), planned); err != nil {
			return err
		}
		if i.format == formatTable {
			if err := i.print("%s in %s.", summary(results), took(time.Since(started))); err != nil {
				return err
			}
		}
	case plan.GetUnrecorded(): // What an apply that was cut off did not get to.
		if _, err := i.carryOut(cmd.Context(), planned); err != nil {
			return err
		}
	}
	if i.format == formatJSON {
		if err := i.writeApplied(plan, results); err != nil {
			return err
		}
	}
	return i.verdict(planned, results)
}

// ask asks whether to go on. command and to complete the errors that name --yes; no is
// the error after the answer no.
func (i *invocation) ask(ctx context.Context, question, command, to, no string) error {
	if i.format == formatJSON {
		return fmt.Errorf("%s with -o json does not ask: add --yes %s", command, to)
	}
	if !i.IsTerminal(i.Stdin) || !i.IsTerminal(i.Stderr) {
		return fmt.Errorf("there is no terminal to ask on: add --yes %s", to)
	}
	_, _ = fmt.Fprint(i.errs(), question+" [y/N] ") // Shown at the terminal or not at all.
	answers := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(i.Stdin).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			line = ""
		}
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errors.New(no)
	case <-ctx.Done():
		i.note("")
		return ctx.Err()
	}
}

// carryOut applies the plan, shows how far it is, and gives how each change
// that was tried went.
func (i *invocation) carryOut(ctx context.Context, planned *plannedSet) ([]*jobsv1.JobChange, error) {
	request := &jobsv1.ApplyJobSetRequest{JobSet: planned.set, Reason: planned.reason}
	if planned.exact {
		request.Etag = planned.plan.GetEtag()
	}
	stream, err := i.api.JobSets.ApplyJobSet(ctx, request)
	if err != nil {
		return nil, aboutJobSet(planned.set, err)
	}
	defer func() { _ = stream.Close() }() // All was read, or its error is known.
	progress, done := i.applyProgress()
	var results []*jobsv1.JobChange
	planned.unread = 0
	for {
		var answer *jobsv1.ApplyJobSetResponse
		if answer, err = stream.Receive(); err != nil {
			break
		}
		if change := answer.GetChange(); plantext.IsUnread(change) {
			planned.unread++
			i.note("left alone: job %s could not be read: %s", change.GetJobId(), clean(change.GetErrorMessage()))
			continue
		}
		results = append(results, answer.GetChange())
		progress(answer)
	}
	done()
	if errors.Is(err, io.EOF) {
		return results, nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	// A server that is gone may have made changes that it did not tell.
	gone := i.ofServer(err) != "" && connect.CodeOf(err) != connect.CodePermissionDenied
	if ctx.Err() != nil || len(results) > 0 || gone {
		i.note("starter: at least %d of %d changes were made; apply again to go on", succeeded(results), workOf(planned.plan))
	}
	return nil, aboutJobSet(planned.set, err)
}

// applyProgress returns two functions: show shows a change that has ended, in a bar on a
// terminal and as a line otherwise; finish clears the bar.
func (i *invocation) applyProgress() (show func(*jobsv1.ApplyJobSetResponse), finish func()) {
	var bar *progressbar.ProgressBar
	onTerminal := i.IsTerminal(i.Stderr)
	show = func(answer *jobsv1.ApplyJobSetResponse) {
		change := answer.GetChange()
		line := fmt.Sprintf("%s %s", past[change.GetAction()], change.GetJobId())
		if change.GetErrorMessage() != "" {
			line = fmt.Sprintf("failed to %s %s: %s", api.Word(change.GetAction()), change.GetJobId(), clean(change.GetErrorMessage()))
		}
		if !onTerminal {
			i.note("[%d/%d] %s", answer.GetDone(), answer.GetTotal(), line)
			return
		}
		if bar == nil {
			// A bar without a maximum draws itself now and then, even after it was cleared.
			bar = progressbar.NewOptions(int(answer.GetTotal()),
				progressbar.OptionSetWriter(i.Stderr),
				progressbar.OptionSetDescription("Applying"),
				progressbar.OptionSetWidth(30),
				progressbar.OptionShowCount(),
				progressbar.OptionSetPredictTime(false),
			)
		}
		if change.GetErrorMessage() != "" {
			_ = bar.Clear() // An error of the bar is harmless.
			i.note("%s", line)
		}
		_ = bar.Set(int(answer.GetDone()))
	}
	finish = func() {
		if bar != nil {
			_ = bar.Clear()
		}
	}
	return show, finish
}

var past = map[jobsv1.JobAction]string{
	jobsv1.JobAction_JOB_ACTION_CREATE: "created",
	jobsv1.JobAction_JOB_ACTION_UPDATE: "updated",
	jobsv1.JobAction_JOB_ACTION_DELETE: "deleted",
}

// summary counts the changes in one line without a full stop.
func summary(results []*jobsv1.JobChange) string {
	counts := map[jobsv1.JobAction]int{}
	for _, result := range results {
		if result.GetErrorMessage() == "" {
			counts[result.GetAction()]++
		}
	}
	text := fmt.Sprintf("Applied: %d created, %d updated, %d deleted", counts[jobsv1.JobAction_JOB_ACTION_CREATE],
		counts[jobsv1.JobAction_JOB_ACTION_UPDATE], counts[jobsv1.JobAction_JOB_ACTION_DELETE])
	if failed := len(results) - succeeded(results); failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	return text
}

func succeeded(results []*jobsv1.JobChange) int {
	n := 0
	for _, result := range results {
		if result.GetErrorMessage() == "" {
			n++
		}
	}
	return n
}

// verdict is the error of an apply with changes that failed, are blocked, or are not known.
func (i *invocation) verdict(planned *plannedSet, results []*jobsv1.JobChange) error {
	var errs []error
	if failed := len(results) - succeeded(results); failed > 0 {
		errs = append(errs, fmt.Errorf("%d of %d changes failed", failed, len(results)))
	}
	if n := plantext.Count(planned.plan, jobsv1.JobAction_JOB_ACTION_BLOCKED) - plantext.Unread(planned.plan); n > 0 {
		errs = append(errs, fmt.Errorf("%s blocked and unchanged", plural(n, "job is", "jobs are")))
	}
	return errors.Join(append(errs, plantext.UnreadError(planned.unread))...)
}
