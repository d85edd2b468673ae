package api

import (
	"context"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/runlogs"
	"github.com/dendrascience/dendra-jobs/job"
)

// goneFor is how long a worker that is gone is known.
const goneFor = time.Hour

// whyNoLog says, in one sentence, why a log has no line. A worker writes when an attempt begins:
// where it keeps logs, a run that began has a line.
func (s *runService) whyNoLog(ctx context.Context, log runLog) string {
	run := log.of
	if log.iteration != 0 {
		run, _ = s.iteration(ctx, namedRun{jobID: log.name.JobID, iteration: log.iteration}) // Forgotten, or not known.
	}
	switch {
	case !run.Status.Did():
		return "The run ended without a call of its handler."
	case run.Status.Open() && run.Worker == "":
		return "No worker has taken the run yet."
	case run.RunID != "" && run.Iteration == 0 && run.Worker == "":
		return "No attempt of the run has begun."
	}
	if nats, err := s.pipeline(); err == nil && !run.Ended.IsZero() {
		if age, err := runlogs.MaxAge(ctx, nats); err == nil && time.Since(run.Ended) > age {
			return fmt.Sprintf("Lines are kept for %s: those of this run are gone.", job.Duration(age))
		}
	}
	services, err := s.Client.Workers.Services(ctx, time.Now().Add(-goneFor))
	if err != nil {
		return "It is not known whether its worker keeps logs: " + s.explain(ctx, err).Message() + "."
	}
	return whyWorkerKeptNone(run, services)
}

// whyWorkerKeptNone says why the worker of a run that began has kept no line of it.
func whyWorkerKeptNone(run client.Run, services client.Services) string {
	const unset = "DENDRA_NATS_URL is not set there."
	for _, service := range append(services.Live, services.Lost...) {
		switch {
		case run.Worker == "" || service.Identity != run.Worker:
		case service.KeepsLogs:
			return fmt.Sprintf("Its worker %s keeps logs, but NATS has no line of this run: NATS was away, or has made room for others.", run.Worker)
		default:
			return fmt.Sprintf("Its worker %s keeps no logs: %s", run.Worker, unset)
		}
	}
	serves, keeps := 0, 0
	for _, service := range services.Live {
		if service.Serves(run.Type) {
			serves++
			if service.KeepsLogs {
				keeps++
			}
		}
	}
	switch {
	case serves > 0 && keeps == 0:
		return fmt.Sprintf("The workers of %s keep no logs: %s", run.Type, unset)
	case run.Worker == "":
		return "No line is kept."
	}
	return fmt.Sprintf("Its worker %s is gone. It is not known whether it kept logs.", run.Worker)
}
