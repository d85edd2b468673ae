package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/api/plantext"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

func (i *invocation) reconcileCommand() *cobra.Command {
	var dryRun, allowEmpty bool
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Bring the jobs of integrations in line with the platform, once",
		Long: fmt.Sprintf(`reconcile does once what a job of type ReconcileJobs does all the time: each
integration config that is enabled on the platform gets its orchestrator, and
those of other configs are stopped, with all jobs that they have made. That job
may run or be paused meanwhile.

  + create     ~ update     - delete     ! blocked

%s and %s name the Platform API.

Exit codes: 0 all is in line, 1 something failed or is blocked.`, platform.EnvURL, platform.EnvToken),
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := i.platformAPI()
			if err != nil {
				return err
			}
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			r := &reconciliation{i, schedules.NewJobs(c), reconcile.NewPlatform(api), c.Namespace(), allowEmpty}
			return r.run(cmd.Context(), dryRun)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "tell what would be done, and do nothing")
	cmd.Flags().BoolVar(&allowEmpty, "allow-empty", false, "let all jobs of integrations go if the platform lists no config at all")
	return cmd
}

// reconciliation is what the command does.
type reconciliation struct {
	*invocation
	jobs       job.Jobs
	source     reconcile.Source
	namespace  string
	allowEmpty bool
}

// reconciled is what the command did, or would do, as JSON.
type reconciled struct {
	DryRun  bool               `json:"dry_run"`
	Enabled int                `json:"enabled_configs"`
	Configs []reconciledConfig `json:"configs"`
}

// reconciledConfig is a config that was not in line.
type reconciledConfig struct {
	Config  string          `json:"config"`
	Changes []changeOutcome `json:"changes"`
	Error   string          `json:"error,omitempty"`
}

type changeOutcome struct {
	job.Change
	Error string `json:"error,omitempty"`
}

func (r *reconciliation) run(ctx context.Context, dryRun bool) error {
	report, err := r.once(ctx, true)
	if err != nil {
		return err
	}
	if r.format == formatTable {
		if err := r.writeReconcilePlan(r.Stdout, report); err != nil {
			return err
		}
	}
	if !dryRun && len(report.Configs) > 0 {
		began := time.Now()
		if report, err = r.once(ctx, false); err != nil {
			return err
		}
		if r.format == formatTable {
			if err := r.print("Reconciled: %s in %s.", report.counts("created", "updated", "deleted"), took(time.Since(began))); err != nil {
				return err
			}
		}
	}
	report.DryRun = dryRun
	if r.format == formatJSON {
		if err := r.emit(report, nil); err != nil {
			return err
		}
	}
	return report.verdict()
}

// once works on all configs that are not in line.
func (r *reconciliation) once(ctx context.Context, dryRun bool) (*reconciled, error) {
	report := &reconciled{DryRun: dryRun, Configs: []reconciledConfig{}}
	var mu sync.Mutex
	take := func(outcome reconcile.Outcome) {
		mu.Lock()
		defer mu.Unlock()
		one := reconciledConfig{Config: outcome.Config, Changes: []changeOutcome{}}
		if outcome.Err != nil {
			one.Error = strings.Join(r.sentences(outcome.Err), "; ")
		}
		for _, change := range outcome.Changes {
			shown := changeOutcome{Change: change}
			if change.Err != nil {
				shown.Error = strings.Join(r.sentences(change.Err), "; ")
			}
			one.Changes = append(one.Changes, shown)
			if !dryRun {
				r.tell(shown)
			}
		}
		report.Configs = append(report.Configs, one)
	}
	reconciler := reconcile.New(r.jobs, r.source, take)
	reconciler.AllowEmpty = r.allowEmpty
	var err error
	report.Enabled, err = reconciler.Once(ctx, dryRun)
	slices.SortFunc(report.Configs, func(a, b reconciledConfig) int { return strings.Compare(a.Config, b.Config) })
	return report, err
}

// actions are the actions of reconcile in the words of the Job API.
var actions = map[job.Action]jobsv1.JobAction{
	job.ActionCreate:  jobsv1.JobAction_JOB_ACTION_CREATE,
	job.ActionUpdate:  jobsv1.JobAction_JOB_ACTION_UPDATE,
	job.ActionDelete:  jobsv1.JobAction_JOB_ACTION_DELETE,
	job.ActionBlocked: jobsv1.JobAction_JOB_ACTION_BLOCKED,
}

// tell says on standard error what became of a change.
func (r *reconciliation) tell(change changeOutcome) {
	switch {
	case change.Error != "":
		r.note("failed to %s %s: %s", change.Action, change.JobID, change.Error)
	case change.Action != job.ActionBlocked:
		r.note("%s %s", past[actions[change.Action]], change.JobID)
	}
}

// writeReconcilePlan shows what is not in line.
func (r *reconciliation) writeReconcilePlan(w io.Writer, report *reconciled) error {
	lines := &lineWriter{w: w}
	for _, config := range report.Configs {
		for _, change := range config.Changes {
			mark := plantext.Marks[actions[change.Action]]
			text := fmt.Sprintf("%s %s  config %s", mark.Sign, clean(change.JobID), clean(config.Config))
			if change.Note != "" {
				text += "  " + clean(change.Note)
			}
			lines.printf("%s", r.paint(colors[mark.Tone], text))
		}
	}
	if len(report.Configs) > 0 {
		lines.printf("")
	}
	lines.printf("Plan for namespace %s: %s, %d blocked; %s enabled.", r.namespace, report.counts("to create", "to update", "to delete"),
		report.count(job.ActionBlocked), plural(report.Enabled, "config is", "configs are"))
	return lines.err
}

// counts says how many changes there are, without those that failed.
func (r *reconciled) counts(create, update, remove string) string {
	return fmt.Sprintf("%d %s, %d %s, %d %s", r.count(job.ActionCreate), create, r.count(job.ActionUpdate), update, r.count(job.ActionDelete), remove)
}

func (r *reconciled) count(action job.Action) int {
	n := 0
	for _, config := range r.Configs {
		for _, change := range config.Changes {
			if change.Action == action && change.Error == "" {
				n++
			}
		}
	}
	return n
}

// verdict is the error of what is not in line in the end.
func (r *reconciled) verdict() error {
	var errs []error
	for _, config := range r.Configs {
		if config.Error != "" {
			errs = append(errs, fmt.Errorf("config %s: %s", config.Config, config.Error))
			continue
		}
		for _, change := range config.Changes {
			if change.Action == job.ActionBlocked {
				errs = append(errs, fmt.Errorf("config %s: %s", config.Config, change.Note))
			}
		}
	}
	return errors.Join(errs...)
}
