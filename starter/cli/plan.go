package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// planOptions are the flags that plan and apply share.
type planOptions struct {
	file  string
	prune bool
}

func (o *planOptions) register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.file, "file", "f", defaultFile, "jobs file")
	cmd.Flags().BoolVar(&o.prune, "prune", false, "delete the jobs that came from a jobs file and are no longer declared")
}

func (i *invocation) planCommand() *cobra.Command {
	var options planOptions
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Compare a jobs file with Temporal",
		Long: `plan shows what apply would do, and changes nothing:

  + create     ~ update, with every value that changes
  - delete     ? no longer declared, kept unless --prune is given
  ! blocked: something that is not ours holds the name, or a run is in the way
  = unchanged

Exit codes: 0 nothing to change, 1 error, 2 changes or blocked jobs.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, plan, err := i.plan(cmd, options)
			if err != nil {
				return err
			}
			if err := i.emit(newPlanReport(plan), func(w io.Writer) error { return i.writePlan(w, plan) }); err != nil {
				return err
			}
			if !plan.Empty() || plan.Count(schedules.ActionBlocked) > 0 {
				return errChanges
			}
			return nil
		},
	}
	options.register(cmd)
	return cmd
}

// plan reads the file and compares it with Temporal.
func (i *invocation) plan(cmd *cobra.Command, options planOptions) (*schedules.Syncer, *schedules.Plan, error) {
	declared, err := i.load(options.file)
	if err != nil {
		return nil, nil, err
	}
	c, err := i.connect(cmd.Context())
	if err != nil {
		return nil, nil, err
	}
	syncer := schedules.New(c)
	plan, err := syncer.Plan(cmd.Context(), declared, schedules.PlanOptions{Provider: job.ProviderTOML, Prune: options.prune})
	return syncer, plan, err
}

// planReport is a plan as JSON.
type planReport struct {
	Namespace string                   `json:"namespace"`
	Changes   []schedules.Change       `json:"changes"`
	Counts    map[schedules.Action]int `json:"counts"`
}

func newPlanReport(plan *schedules.Plan) planReport {
	report := planReport{
		Namespace: plan.Namespace,
		Changes:   list(plan.Changes),
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

// writePlan shows every job that apply would touch or that someone should know
// of, and the unchanged ones as a number.
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
		lines.printf("%s", i.paint(mark.color, text))
		for _, field := range change.Fields {
			lines.printf("    %s: %s → %s", clean(field.Path), value(field.Old), value(field.New))
		}
	}
	if n := plan.Count(schedules.ActionUnchanged); n > 0 {
		lines.printf("%s", i.paint(faint, fmt.Sprintf("= unchanged (%d)", n)))
	}
	if len(plan.Changes) > 0 {
		lines.printf("")
	}
	lines.printf("Plan for namespace %s: %s.", plan.Namespace, plan.Total())
	return lines.err
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

func (l *lineWriter) printf(format string, args ...any) {
	if l.err == nil {
		_, l.err = fmt.Fprintf(l.w, format+"\n", args...)
	}
}
