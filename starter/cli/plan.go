package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
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

func (o *planOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.file = defaultFile
	flags.VarP(textValue{&o.file, argumentFile}, "file", "f", "jobs file")
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
  ! blocked: the name is taken by an unmanaged resource, or a run has not ended
  = unchanged

For a schedule that changes, plan shows the next three starts before and after the
change, without jitter. --out saves the plan. "apply FILE" carries out the saved plan,
or refuses if the jobs in Temporal have changed since.

Exit codes: 0 nothing to change, 1 error, 2 changes or blocked jobs.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOut(out); err != nil {
				return err
			}
			_, plan, err := i.plan(cmd, options)
			if err != nil {
				return err
			}
			if err := i.emit(newPlanReport(plan), func(w io.Writer) error { return i.writePlan(w, plan) }); err != nil {
				return err
			}
			if out != "" {
				if err := plan.CheckPrune(); err != nil {
					return fmt.Errorf("the plan is not saved, since it would not be applied: %w; if that is meant, add --allow-mass-prune", err)
				}
				if err := savePlan(out, plan, i.Now()); err != nil {
					return err
				}
				i.note("saved as %s; carry it out with: starter apply %s", out, out)
			}
			if !plan.Empty() || plan.Count(schedules.ActionBlocked) > 0 {
				return errChanges
			}
			return nil
		},
	}
	options.register(cmd)
	cmd.Flags().Var(textValue{&out, argumentFile}, "out", "save the plan as this file, for apply")
	return cmd
}

// plan reads the file and compares it with Temporal.
func (i *invocation) plan(cmd *cobra.Command, options planOptions) (*schedules.Syncer, *schedules.Plan, error) {
	if err := checkParallel(cmd, options.parallel); err != nil {
		return nil, nil, err
	}
	declared, external, err := i.load(options.file)
	if err != nil {
		return nil, nil, err
	}
	if len(declared) == 0 && options.prune && !options.allowEmpty {
		return nil, nil, fmt.Errorf("%s declares no job, and --prune would delete all there are: "+
			"if that is meant, add --allow-empty and --allow-mass-prune", options.file)
	}
	c, err := i.connect(cmd.Context())
	if err != nil {
		return nil, nil, err
	}
	syncer := schedules.New(c)
	plan, err := syncer.Plan(cmd.Context(), declared, schedules.PlanOptions{
		Provider: job.ProviderTOML, Prune: options.prune, AllowMassPrune: options.allowMassPrune,
		ResetPauses: options.resetPauses, Types: external, Parallel: options.parallel,
	})
	return syncer, plan, err
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
	if !schedules.IsSavedPlan(file) {
		return fmt.Errorf("the plan cannot be saved: %s is there and is no saved plan; it is not overwritten", path)
	}
	return nil
}

// savePlan writes a plan for apply, whole or not at all. Nobody else may read it:
// it holds the specs of all jobs.
func savePlan(path string, plan *schedules.Plan, now time.Time) error {
	made, err := release()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := plan.Save(&text, made, now); err != nil {
		return fmt.Errorf("save the plan as %s: %w", path, err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // of mode 0600
	if err != nil {
		return fmt.Errorf("the plan cannot be saved: %w", err)
	}
	_, err = file.Write(text.Bytes())
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // The error below matters more.
		return fmt.Errorf("the plan cannot be saved: %w", err)
	}
	return nil
}

// planReport is a plan as JSON.
type planReport struct {
	Namespace string                   `json:"namespace"`
	Changes   []schedules.Change       `json:"changes"`
	Counts    map[schedules.Action]int `json:"counts"`
	// Foreign are Schedules and workflows with names of jobs that starter did not create,
	// except those of declared jobs.
	Foreign []string `json:"foreign"`
	// Warnings are about jobs that change.
	Warnings []schedules.Warning `json:"warnings"`
}

func newPlanReport(plan *schedules.Plan) planReport {
	report := planReport{
		Namespace: plan.Namespace,
		Changes:   list(plan.Changes),
		Foreign:   list(plan.Foreign),
		Warnings:  list(plan.Warnings),
		Counts:    map[schedules.Action]int{},
	}
	for _, action := range []schedules.Action{
		schedules.ActionCreate, schedules.ActionUpdate, schedules.ActionDelete,
		schedules.ActionBlocked, schedules.ActionUnchanged, schedules.ActionOrphaned,
	} {
		report.Counts[action] = plan.Count(action)
	}
	return report
}

// list makes a list that JSON writes as [] when it is empty.
func list[E any](items []E) []E {
	if items == nil {
		return []E{}
	}
	return items
}

// marks are the signs of the actions, and their colors.
var marks = map[schedules.Action]struct {
	sign  string
	color color
}{
	schedules.ActionCreate:    {"+", green},
	schedules.ActionUpdate:    {"~", yellow},
	schedules.ActionDelete:    {"-", red},
	schedules.ActionBlocked:   {"!", magenta},
	schedules.ActionUnchanged: {"=", faint},
	schedules.ActionOrphaned:  {"?", faint},
}

// writePlan shows every job that apply would change or that has a note, and the number
// of unchanged ones.
func (i *invocation) writePlan(w io.Writer, plan *schedules.Plan) error {
	lines := &lineWriter{w: w}
	for _, change := range plan.Changes {
		if change.Action == schedules.ActionUnchanged && change.Note == "" {
			continue
		}
		mark := marks[change.Action]
		text := fmt.Sprintf("%s %s  %s", mark.sign, change.JobID, change.Mode)
		switch {
		case change.Action == schedules.ActionOrphaned:
			text += "  no longer declared (kept; --prune deletes it)"
		case change.Note != "":
			text += "  " + clean(change.Note)
		}
		if change.Drifted {
			text += "  (edited by hand since it was applied)"
		}
		lines.printf("%s", i.paint(mark.color, text))
		lines.fields(change.Fields)
		if change.Action == schedules.ActionUpdate && !slices.EqualFunc(change.NextNow, change.NextThen, time.Time.Equal) {
			i.writeStarts(lines, "next starts now: ", change.NextNow)
			i.writeStarts(lines, "next starts then:", change.NextThen)
		} else {
			i.writeStarts(lines, "next starts:", change.NextThen)
		}
	}
	for _, name := range plan.Foreign {
		lines.printf("%s", i.paint(magenta, fmt.Sprintf("! %s is unmanaged: it has a job's name, and starter did not create it", clean(name))))
	}
	if n := plan.Count(schedules.ActionUnchanged); n > 0 {
		lines.printf("%s", i.paint(faint, fmt.Sprintf("= unchanged (%d)", n)))
	}
	for _, warning := range plan.Warnings {
		lines.printf("%s", i.paint(yellow, "warning: "+clean(warning.Text)))
	}
	if len(plan.Changes) > 0 {
		lines.printf("")
	}
	if err := plan.CheckPrune(); err != nil {
		lines.printf("Apply would refuse this: %s (--allow-mass-prune).", err)
	}
	lines.printf("Plan for namespace %s: %s.", plan.Namespace, plan.Total())
	return lines.err
}

// writeStarts shows coming starts in the time zone of the terminal.
func (i *invocation) writeStarts(lines *lineWriter, label string, starts []time.Time) {
	if len(starts) == 0 {
		return
	}
	texts := make([]string, len(starts))
	for n, start := range starts {
		texts[n] = start.In(i.Location).Format("2006-01-02 15:04:05 MST")
	}
	lines.printf("    %s %s", label, strings.Join(texts, ", "))
}

// value shows one side of a changed value.
func value(text string) string {
	if text == "" {
		return "(not set)"
	}
	return clean(text)
}

// lineWriter writes lines and keeps the first error.
type lineWriter struct {
	w   io.Writer
	err error
}

// fields shows changed values.
func (l *lineWriter) fields(fields []schedules.Field) {
	for _, field := range fields {
		l.printf("    %s: %s → %s", clean(field.Path), value(field.Old), value(field.New))
	}
}

func (l *lineWriter) printf(format string, args ...any) {
	if l.err == nil {
		_, l.err = fmt.Fprintf(l.w, format+"\n", args...)
	}
}
