package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/schedules"
)

func (i *invocation) applyCommand() *cobra.Command {
	var options planOptions
	var yes bool
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
				syncer, plan, err := i.plan(cmd, options)
				if err != nil {
					return err
				}
				return i.apply(cmd, syncer, plan, yes)
			}
			if set := options.set(cmd); len(set) > 0 {
				return misuse(cmd, "a saved plan has its own options; leave out %s", strings.Join(set, ", "))
			}
			syncer, plan, err := i.replan(cmd, args[0], options.parallel)
			if err != nil {
				return err
			}
			return i.apply(cmd, syncer, plan, true)
		},
	}
	options.register(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// replan reads a saved plan, and checks that a new plan would be the same.
func (i *invocation) replan(cmd *cobra.Command, path string, parallel int) (*schedules.Syncer, *schedules.Plan, error) {
	if err := checkParallel(cmd, parallel); err != nil {
		return nil, nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("the saved plan cannot be read: %w", err)
	}
	defer func() { _ = file.Close() }()
	made, err := release()
	if err != nil {
		return nil, nil, err
	}
	saved, err := schedules.ReadPlan(file, made)
	if err != nil {
		if strings.HasSuffix(path, ".toml") {
			err = fmt.Errorf("%w; a jobs file is applied with: starter apply -f %s", err, path)
		}
		return nil, nil, fmt.Errorf("%s is %w", path, err)
	}
	c, err := i.connect(cmd.Context())
	if err != nil {
		return nil, nil, err
	}
	syncer := schedules.New(c)
	plan, err := syncer.Replan(cmd.Context(), saved, parallel)
	if err != nil {
		return nil, nil, fmt.Errorf("%s is not applied: %w", path, err)
	}
	return syncer, plan, nil
}

// applied is what apply did, as JSON.
type applied struct {
	Plan    planReport `json:"plan"`
	Results []outcome  `json:"results"`
}

// outcome is the result of one change.
type outcome struct {
	JobID  string           `json:"job_id"`
	Action schedules.Action `json:"action"`
	Error  string           `json:"error,omitempty"`
}

func (i *invocation) apply(cmd *cobra.Command, syncer *schedules.Syncer, plan *schedules.Plan, yes bool) error {
	if i.format == formatTable {
		if err := i.writePlan(i.Stdout, plan); err != nil {
			return err
		}
	}
	if errors.Is(plan.CheckPrune(), schedules.ErrMassPrune) {
		return fmt.Errorf("nothing was applied: %w; if that is meant, add --allow-mass-prune", plan.CheckPrune())
	}
	var results []outcome
	switch {
	case !plan.Empty():
		if !yes {
			if err := i.confirm(cmd.Context()); err != nil {
				return err
			}
		}
		started := time.Now()
		var err error
		if results, err = i.carryOut(cmd.Context(), syncer, plan); err != nil {
			return err
		}
		if i.format == formatTable {
			if err := i.print("%s in %s.", summary(results), took(time.Since(started))); err != nil {
				return err
			}
		}
	case !plan.Recorded(): // What an apply that was cut off did not get to.
		if err := syncer.Apply(cmd.Context(), plan, func(schedules.Report) {}); err != nil {
			return err
		}
	}
	if i.format == formatJSON {
		if err := i.emit(applied{Plan: newPlanReport(plan), Results: list(results)}, nil); err != nil {
			return err
		}
	}
	return i.verdict(plan, results)
}

// confirm asks whether to apply a plan.
func (i *invocation) confirm(ctx context.Context) error {
	return i.ask(ctx, "\nApply this plan?", "apply", "to apply the plan", "nothing was applied")
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
	_, _ = fmt.Fprint(i.Stderr, question+" [y/N] ") // Shown at the terminal or not at all.
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
func (i *invocation) carryOut(ctx context.Context, syncer *schedules.Syncer, plan *schedules.Plan) ([]outcome, error) {
	progress, done := i.applyProgress()
	var results []outcome
	err := syncer.Apply(ctx, plan, func(report schedules.Report) {
		result := outcome{JobID: report.Change.JobID, Action: report.Change.Action}
		if report.Err != nil {
			if i.ended(report.Err) {
				return // Not begun, or interrupted: reported once, at the end.
			}
			result.Error = strings.Join(i.sentences(report.Err), "; ")
		}
		results = append(results, result)
		progress(report, result)
	})
	done()
	switch {
	case ctx.Err() != nil:
		i.note("starter: at least %d of %d changes were made; apply again to go on", succeeded(results), workOf(plan))
		return nil, ctx.Err()
	case errors.Is(err, schedules.ErrRefused) || err != nil && len(results) == succeeded(results):
		return nil, err
	}
	return results, nil
}

// applyProgress returns two functions: show shows a change that has ended, in a bar on a
// terminal and as a line otherwise; finish clears the bar.
func (i *invocation) applyProgress() (show func(schedules.Report, outcome), finish func()) {
	var bar *progressbar.ProgressBar
	if i.IsTerminal(i.Stderr) {
		bar = progressbar.NewOptions(-1,
			progressbar.OptionSetWriter(i.Stderr),
			progressbar.OptionSetDescription("Applying"),
			progressbar.OptionSetWidth(30),
			progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(false),
		)
	}
	show = func(report schedules.Report, result outcome) {
		line := fmt.Sprintf("%s %s", past[result.Action], result.JobID)
		if result.Error != "" {
			line = fmt.Sprintf("failed to %s %s: %s", result.Action, result.JobID, result.Error)
		}
		if bar == nil {
			i.note("[%d/%d] %s", report.Done, report.Total, line)
			return
		}
		bar.ChangeMax(report.Total)
		if result.Error != "" {
			_ = bar.Clear() // An error of the bar is harmless.
			i.note("%s", line)
		}
		_ = bar.Set(report.Done)
	}
	finish = func() {
		if bar != nil {
			_ = bar.Clear()
		}
	}
	return show, finish
}

var past = map[schedules.Action]string{
	schedules.ActionCreate: "created",
	schedules.ActionUpdate: "updated",
	schedules.ActionDelete: "deleted",
}

// summary counts the changes in one line without a full stop.
func summary(results []outcome) string {
	counts := map[schedules.Action]int{}
	for _, result := range results {
		if result.Error == "" {
			counts[result.Action]++
		}
	}
	text := fmt.Sprintf("Applied: %d created, %d updated, %d deleted",
		counts[schedules.ActionCreate], counts[schedules.ActionUpdate], counts[schedules.ActionDelete])
	if failed := len(results) - succeeded(results); failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	return text
}

func succeeded(results []outcome) int {
	n := 0
	for _, result := range results {
		if result.Error == "" {
			n++
		}
	}
	return n
}

func workOf(plan *schedules.Plan) int {
	return plan.Count(schedules.ActionCreate) + plan.Count(schedules.ActionUpdate) + plan.Count(schedules.ActionDelete)
}

// verdict is the error of an apply with failed or blocked changes.
func (i *invocation) verdict(plan *schedules.Plan, results []outcome) error {
	var errs []error
	if failed := len(results) - succeeded(results); failed > 0 {
		errs = append(errs, fmt.Errorf("%d of %d changes failed", failed, len(results)))
	}
	if n := plan.Count(schedules.ActionBlocked); n > 0 {
		errs = append(errs, fmt.Errorf("%s blocked and unchanged", plural(n, "job is", "jobs are")))
	}
	return errors.Join(errs...)
}
