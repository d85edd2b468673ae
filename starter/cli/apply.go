package cli

import (
	"context"
	"errors"
	"fmt"
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
		Use:   "apply",
		Short: "Bring Temporal in line with a jobs file",
		Long: `apply shows the plan, asks, and carries it out. A file with a problem is not
applied at all. A change that fails does not keep the others from being made.
It can be interrupted and run again: what is done is not done twice.

Without a terminal to ask on, and with -o json, it needs --yes.

Exit codes: 0 all is as declared, 1 something failed or is blocked; what is not
blocked is applied nevertheless.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error { return i.apply(cmd, options, yes) },
	}
	options.register(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// applied is what apply did, as JSON.
type applied struct {
	Plan    planReport `json:"plan"`
	Results []outcome  `json:"results"`
}

// outcome is how one change went.
type outcome struct {
	JobID  string           `json:"job_id"`
	Action schedules.Action `json:"action"`
	Error  string           `json:"error,omitempty"`
}

func (i *invocation) apply(cmd *cobra.Command, options planOptions, yes bool) error {
	syncer, plan, err := i.plan(cmd, options)
	if err != nil {
		return err
	}
	if i.format == formatTable {
		if err := i.writePlan(i.Stdout, plan); err != nil {
			return err
		}
	}
	var results []outcome
	if !plan.Empty() {
		if !yes {
			if err := i.confirm(cmd.Context()); err != nil {
				return err
			}
		}
		started := time.Now()
		results, err = i.carryOut(cmd.Context(), syncer, plan)
		if err != nil {
			return err
		}
		if i.format == formatTable {
			if err := i.print("%s in %s.", summary(results), took(time.Since(started))); err != nil {
				return err
			}
		}
	}
	if i.format == formatJSON {
		if err := i.emit(applied{Plan: newPlanReport(plan), Results: list(results)}, nil); err != nil {
			return err
		}
	}
	return i.verdict(plan, results)
}

// confirm asks whether to go on.
func (i *invocation) confirm(ctx context.Context) error {
	return i.askYes(ctx, "apply", "Apply this plan?", "apply the plan", "nothing was applied")
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
				return // Not begun, or broken off: told once, at the end.
			}
			result.Error = strings.Join(i.sentences(report.Err), "; ")
		}
		results = append(results, result)
		progress(report, result)
	})
	done()
	switch {
	case ctx.Err() != nil:
		i.note("starter: %d of %d changes were made; apply again to go on", succeeded(results), workOf(plan))
		return nil, ctx.Err()
	case err != nil && len(results) == 0:
		return nil, err
	}
	return results, nil
}

// applyProgress gives what shows a change that has ended, as a bar on a terminal
// and as a line otherwise, and what clears the bar at the end.
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
			_ = bar.Clear() // The bar is only for show.
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

// summary says what was done, in one line without a full stop.
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

// verdict is the error of an apply that has left something undone.
func (i *invocation) verdict(plan *schedules.Plan, results []outcome) error {
	var errs []error
	if failed := len(results) - succeeded(results); failed > 0 {
		errs = append(errs, fmt.Errorf("%d of %d changes failed", failed, len(results)))
	}
	if n := plan.Count(schedules.ActionBlocked); n > 0 {
		errs = append(errs, fmt.Errorf("%s blocked and left as found", plural(n, "job is", "jobs are")))
	}
	return errors.Join(errs...)
}
