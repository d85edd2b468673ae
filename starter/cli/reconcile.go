package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/reconcile"
	"github.com/dendrascience/dendra-jobs/internal/secrets"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// reconcileType is the job type that does all the time what the command does once.
const reconcileType = "ReconcileJobs"

func (i *invocation) reconcileCommand() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "reconcile [JOB]",
		Short: "Bring the jobs of integrations in line with the platform, once",
		Long: `reconcile does once what a job of type ReconcileJobs does all the time: each
integration config that is enabled on the platform gets its orchestrator, and
those of other configs are stopped, with all jobs that they have made. The job
may run or be paused meanwhile.

JOB is that job; it may be left out if there is one. The command takes the
platform's address from it, and the token from DENDRA_SECRET_<NAME> or the file
<NAME> in DENDRA_SECRETS_DIR.

  + create     ~ update     - delete     ! blocked

Exit codes: 0 all is in line, 1 something failed or is blocked.`,
		Args: arguments("[JOB]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			reconciler, err := i.reconciler(cmd.Context(), c, strings.Join(args, ""))
			if err != nil {
				return err
			}
			return reconciler.run(cmd.Context(), dryRun)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "tell what would be done, and do nothing")
	return cmd
}

// reconciliation is what the command does.
type reconciliation struct {
	*invocation
	jobs      job.Jobs
	source    reconcile.Source
	namespace string
}

// reconciler reads from a job of type ReconcileJobs where the platform is: the same as
// the job, so that they want the same.
func (i *invocation) reconciler(ctx context.Context, c *client.Client, jobID string) (*reconciliation, error) {
	if jobID == "" {
		found, err := c.Jobs.Find(ctx, job.Filter{Type: reconcileType})
		switch {
		case err != nil:
			return nil, err
		case len(found) == 0:
			return nil, fmt.Errorf("there is no job of type %s in namespace %s: apply one, which may be paused", reconcileType, c.Namespace())
		case len(found) > 1:
			return nil, fmt.Errorf("there are %d jobs of type %s in namespace %s: name one", len(found), reconcileType, c.Namespace())
		}
		jobID = found[0].ID
	}
	live, err := c.Jobs.Live(ctx, jobID)
	if err != nil {
		return nil, aboutJob(c, jobID, err)
	}
	if live.Job.Type != reconcileType {
		return nil, fmt.Errorf("job %s is of type %s, not %s", jobID, live.Job.Type, reconcileType)
	}
	var spec platform.Spec
	if err := json.Unmarshal(live.Job.Spec, &spec); err != nil {
		return nil, fmt.Errorf("the spec of job %s cannot be read: %w", jobID, err)
	}
	api, err := platform.Open(spec, secrets.New(i.Getenv).Resolve)
	if err != nil {
		return nil, err
	}
	return &reconciliation{i, schedules.NewJobs(c), reconcile.NewPlatform(api, spec), c.Namespace()}, nil
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
	var err error
	report.Enabled, err = reconcile.New(r.jobs, r.source, take).Once(ctx, dryRun)
	slices.SortFunc(report.Configs, func(a, b reconciledConfig) int { return strings.Compare(a.Config, b.Config) })
	return report, err
}

// tell says on standard error what became of a change.
func (r *reconciliation) tell(change changeOutcome) {
	switch {
	case change.Error != "":
		r.note("failed to %s %s: %s", change.Action, change.JobID, change.Error)
	case change.Action != job.ActionBlocked:
		r.note("%s %s", past[change.Action], change.JobID)
	}
}

// writeReconcilePlan shows what is not in line.
func (r *reconciliation) writeReconcilePlan(w io.Writer, report *reconciled) error {
	lines := &lineWriter{w: w}
	for _, config := range report.Configs {
		for _, change := range config.Changes {
			mark := marks[change.Action]
			text := fmt.Sprintf("%s %s  config %s", mark.sign, clean(change.JobID), clean(config.Config))
			if change.Note != "" {
				text += "  " + clean(change.Note)
			}
			lines.printf("%s", r.paint(mark.color, text))
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
