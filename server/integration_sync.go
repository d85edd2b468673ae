package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job"
)

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
