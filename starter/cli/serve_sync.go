package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/api/plantext"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/reconcile"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// syncOptions are the flags of what serve keeps in line.
type syncOptions struct {
	file         string
	prune        bool
	integrations bool
	every        job.Duration
}

func (o *syncOptions) register(cmd *cobra.Command) {
	o.every = defaultSync
	flags := cmd.Flags()
	flags.VarP(textValue{&o.file, argumentFile}, "file", "f", "keep Temporal in line with this jobs file, as apply does")
	flags.BoolVar(&o.prune, "prune", false, "delete the jobs that came from a jobs file and are no longer in --file")
	flags.BoolVar(&o.integrations, "integrations", false, "keep Temporal in line with the platform's integrations, as reconcile does")
	flags.Var(durationOf(&o.every), "sync-every", "how often all of it is compared, if nothing tells of a change")
}

// defaultSync is how often everything is compared.
const defaultSync = job.Duration(5 * time.Minute)

// lookEvery is how often the jobs file is looked at.
const lookEvery = 2 * time.Second

// syncing is what serve does in the background.
func (i *invocation) syncing(o syncOptions, c *client.Client, logger *slog.Logger) ([]func(context.Context, *api.Clients) error, error) {
	var work []func(context.Context, *api.Clients) error
	if o.prune && o.file == "" {
		return nil, errors.New("--prune goes with --file")
	}
	if o.file != "" {
		s := &fileSync{invocation: i, options: o, logger: logger.With("file", o.file)}
		if _, err := s.read(); err != nil && !errors.Is(err, errUnannounced) {
			return nil, err
		}
		work = append(work, s.run)
	}
	if o.integrations {
		config, err := platform.ConfigFromEnv(i.Getenv)
		if err != nil {
			return nil, err
		}
		source, err := platform.New(config)
		if err != nil {
			return nil, err
		}
		s := &integrationSync{schedules.NewJobs(c), reconcile.NewPlatform(source), o.every.Std(), logger}
		work = append(work, s.run)
	}
	return work, nil
}

// errUnannounced says that a jobs file needs job types that no worker has announced. They
// may do so yet.
var errUnannounced = errors.New("no worker has announced the job types")

// fileSync keeps Temporal in line with a jobs file. Each change of a job names the state
// that it changes, so that of several replicas one makes it, and the others find it made.
type fileSync struct {
	*invocation
	options syncOptions
	logger  *slog.Logger
}

// run compares when the file changes, and from time to time. What fails is tried again.
func (s *fileSync) run(ctx context.Context, clients *api.Clients) error {
	var done [sha256.Size]byte // the file that Temporal is in line with
	var at time.Time
	told := ""
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		sum, err := s.sum()
		if err == nil && (sum != done || time.Since(at) >= s.options.every.Std()) {
			err = s.sync(ctx, clients)
			if err == nil {
				done, at = sum, time.Now()
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			told = ""
		case err.Error() != told: // Once, and not every two seconds.
			told = err.Error()
			s.logger.WarnContext(ctx, "Temporal is not in line with the jobs file: it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *fileSync) sum() ([sha256.Size]byte, error) {
	text, err := os.ReadFile(s.options.file)
	return sha256.Sum256(text), err
}

// read reads the jobs of the file.
func (s *fileSync) read() (*jobsv1.JobSet, error) {
	quiet := *s.invocation
	quiet.Stderr, quiet.closers = io.Discard, nil // The problems are in the error.
	defer quiet.close()
	file, problems, incomplete, err := quiet.read(s.options.file)
	if err != nil {
		return nil, err
	}
	if unknown := unknownTypes(problems); len(unknown) > 0 && len(unknown) == len(problems) {
		return nil, errors.Join(fmt.Errorf("%w %s of %s", errUnannounced, clean(strings.Join(unknown, ", ")), s.options.file), incomplete)
	}
	if len(problems) > 0 {
		var texts []string
		for _, problem := range problems {
			texts = append(texts, clean(problem.String()))
		}
		return nil, fmt.Errorf("%w: %s", problemsError(s.options.file, len(problems)), strings.Join(texts, "; "))
	}
	if len(file.Jobs) == 0 && s.options.prune {
		return nil, fmt.Errorf("%s declares no job, and --prune would delete all there are", s.options.file)
	}
	set := &jobsv1.JobSet{Provider: string(job.ProviderTOML), Prune: s.options.prune}
	for _, j := range file.Jobs {
		set.Jobs = append(set.Jobs, api.JobMessage(j))
	}
	return set, nil
}

// sync compares, and applies what differs.
func (s *fileSync) sync(ctx context.Context, clients *api.Clients) error {
	set, err := s.read()
	if err != nil {
		return err
	}
	response, err := clients.JobSets.PlanJobSet(ctx, &jobsv1.PlanJobSetRequest{JobSet: set})
	if err != nil {
		return err
	}
	plan, work := response.GetPlan(), 0
	for _, change := range plan.GetChanges() {
		if plantext.IsUnread(change) {
			continue // It makes the sync fail, so that it is tried again.
		}
		switch change.GetAction() {
		case jobsv1.JobAction_JOB_ACTION_CREATE, jobsv1.JobAction_JOB_ACTION_UPDATE, jobsv1.JobAction_JOB_ACTION_DELETE:
			work++
		case jobsv1.JobAction_JOB_ACTION_BLOCKED:
			s.logger.WarnContext(ctx, "a job is blocked", "job_id", change.GetJobId(), "reason", change.GetNote())
		default:
		}
	}
	if work == 0 {
		return unreadError(plantext.Unread(plan))
	}
	return s.apply(ctx, clients, &jobsv1.ApplyJobSetRequest{JobSet: set, Etag: plan.GetEtag()})
}

func (s *fileSync) apply(ctx context.Context, clients *api.Clients, request *jobsv1.ApplyJobSetRequest) error {
	stream, err := clients.JobSets.ApplyJobSet(ctx, request)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // It is read to its end.
	var failures []error
	for {
		response, err := stream.Receive()
		switch change := response.GetChange(); {
		case errors.Is(err, io.EOF):
			return errors.Join(failures...)
		case connect.CodeOf(err) == connect.CodeAborted && err != nil:
			return fmt.Errorf("another replica, or a person, is at it: %w", err)
		case err != nil:
			return err
		case change.GetErrorMessage() != "":
			failures = append(failures, fmt.Errorf("job %s: %s", change.GetJobId(), change.GetErrorMessage()))
		default:
			s.logger.InfoContext(ctx, "a job was changed", "job_id", change.GetJobId(), "action", strings.ToLower(strings.TrimPrefix(change.GetAction().String(), "JOB_ACTION_")))
		}
	}
}

// integrationSync keeps Temporal in line with the platform's integrations.
type integrationSync struct {
	jobs   job.Jobs
	source reconcile.Source
	every  time.Duration
	logger *slog.Logger
}

// run does one pass after the other. Within a pass, hints of the platform name what has
// changed. A pass that cannot begin is tried again.
func (s *integrationSync) run(ctx context.Context, _ *api.Clients) error {
	reconciler := reconcile.New(s.jobs, s.source, s.tell)
	for failures := 0; ctx.Err() == nil; {
		wait := s.every
		pass, err := reconciler.Begin(ctx)
		if err != nil && ctx.Err() == nil {
			failures++
			wait = min(s.every, time.Duration(failures)*lookEvery)
			s.logger.WarnContext(ctx, "the integrations cannot be read: they are read again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		if err == nil {
			failures = 0
			pass.Close()
		}
	}
	return nil
}

func (s *integrationSync) tell(outcome reconcile.Outcome) {
	for _, change := range outcome.Changes {
		log := s.logger.With("config", outcome.Config, "job_id", change.JobID)
		switch {
		case change.Err != nil:
			log.Warn("a job cannot be applied", "action", change.Action, "error", change.Err)
		case change.Action == job.ActionBlocked:
			log.Warn("a job is blocked", "reason", change.Note)
		default:
			log.Info("a job was " + string(change.Action) + "d")
		}
	}
	if outcome.Err != nil {
		s.logger.Warn("a config is not in line: it is tried again", "config", outcome.Config, "error", outcome.Err)
	}
}
