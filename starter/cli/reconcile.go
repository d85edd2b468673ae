package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// byHand is the key of the jobs that commands run once.
const byHand = "by-hand"

// runOnce runs a one-shot of a job type to its end. It gives the run also if it failed.
func (i *invocation) runOnce(ctx context.Context, typeName string, spec map[string]any) (*jobsv1.Run, error) {
	fields, err := structpb.NewStruct(spec)
	if err != nil {
		return nil, err
	}
	definition := &jobsv1.Job{Id: job.ID(typeName, byHand), Spec: fields, Mode: &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}}
	if name := userName(); checkNameText(name) == nil {
		definition.Options = &jobsv1.JobOptions{Owner: "user:" + name}
	}
	started, err := i.api.Jobs.RunJob(ctx, &jobsv1.RunJobRequest{Job: definition})
	if err != nil {
		return nil, err
	}
	if started.GetExistingStatus() != jobsv1.RunStatus_RUN_STATUS_UNSPECIFIED {
		i.noteAsker(ctx, started)
	}
	return i.completed(ctx, started.GetRunName())
}

// noteAsker says whose run is under way, which is followed instead of another one.
func (i *invocation) noteAsker(ctx context.Context, started *jobsv1.RunJobResponse) {
	asker := ""
	if run, err := i.api.Runs.GetRun(ctx, &jobsv1.GetRunRequest{Name: started.GetRunName()}); err == nil && run.GetRun().GetOwner() != "" {
		asker = ", asked for by " + run.GetRun().GetOwner()
	}
	i.note("A run of job %s is under way%s: no other is started, and the report is that of this run.", started.GetJobId(), asker)
}

func (i *invocation) reconcileCommand() *cobra.Command {
	var dryRun, allowEmpty bool
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Bring the jobs of integrations in line with the platform, once",
		Long: `reconcile runs a job of type ReconcileJobs once, on a backend worker: each
integration config that is enabled on the platform gets its orchestrator, and
those of other configs are stopped, with all jobs that they have made. The job that
does so all the time may run or be paused meanwhile.

  + create     ~ update     - delete     ! blocked

At a server that knows its callers it needs the role admin.

Exit codes: 0 all is in line, 1 something failed or is blocked.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			began := time.Now()
			run, err := i.runOnce(cmd.Context(), "ReconcileJobs", map[string]any{"dry_run": dryRun, "allow_empty": allowEmpty})
			if err != nil {
				return err
			}
			report := &reconciled{dryRun: dryRun}
			if err := decodeValue(run.GetOutput(), report); err != nil {
				return err
			}
			shown := i.emit(run, func(w io.Writer) error { return i.writeReconciled(w, report, time.Since(began)) })
			return errors.Join(shown, report.verdict())
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "tell what would be done, and do nothing")
	cmd.Flags().BoolVar(&allowEmpty, "allow-empty", false, "let all jobs of integrations go if the platform lists no config at all")
	return cmd
}

// reconciled is the output of a run of ReconcileJobs.
type reconciled struct {
	dryRun bool

	Enabled int `json:"enabled_configs"`
	Configs []struct {
		Config  string `json:"config"`
		Changes []struct {
			Action job.Action `json:"action"`
			JobID  string     `json:"job_id"`
			Note   string     `json:"note"`
			Error  string     `json:"error"`
		} `json:"changes"`
		Error string `json:"error"`
	} `json:"configs"`
	More int `json:"more"`
}

// actions are the actions of reconcile in the words of the Job API.
var actions = map[job.Action]jobsv1.JobAction{
	job.ActionCreate:  jobsv1.JobAction_JOB_ACTION_CREATE,
	job.ActionUpdate:  jobsv1.JobAction_JOB_ACTION_UPDATE,
	job.ActionDelete:  jobsv1.JobAction_JOB_ACTION_DELETE,
	job.ActionBlocked: jobsv1.JobAction_JOB_ACTION_BLOCKED,
}

// writeReconciled shows what was not in line.
func (i *invocation) writeReconciled(w io.Writer, report *reconciled, span time.Duration) error {
	lines := &lineWriter{w: w}
	for _, config := range report.Configs {
		for _, change := range config.Changes {
			mark := plantext.Marks[actions[change.Action]]
			text := fmt.Sprintf("%s %s  config %s", mark.Sign, clean(change.JobID), clean(config.Config))
			if change.Note != "" {
				text += "  " + clean(change.Note)
			}
			lines.printf("%s", i.paint(colors[mark.Tone], text))
		}
	}
	if report.More > 0 {
		lines.printf("and %s", plural(report.More, "config more", "configs more"))
	}
	if len(report.Configs) > 0 {
		lines.printf("")
	}
	enabled := plural(report.Enabled, "config is", "configs are") + " enabled"
	if report.dryRun {
		lines.printf("Plan: %s, %d blocked; %s.", report.counts("to create", "to update", "to delete"), report.count(job.ActionBlocked), enabled)
	} else {
		lines.printf("Reconciled: %s in %s; %s.", report.counts("created", "updated", "deleted"), took(span), enabled)
	}
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
