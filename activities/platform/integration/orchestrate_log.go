package integration

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/orchestrate"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// logChanges logs what was done, and the configs that were left out.
func (o *orchestration) logChanges(ctx context.Context, applied job.Applied) error {
	var entries []*platformv1.LogEntry
	for _, change := range applied.Changes {
		log := o.Logger().With("config", o.spec.ConfigID, "job_id", change.JobID)
		switch {
		case change.Err != nil:
			o.Count("failed", 1)
			log.Warn("a job cannot be applied", "action", change.Action, "error", change.Err)
		case change.Action == job.ActionBlocked:
			o.Count("blocked", 1)
			log.Warn("a job is blocked", "reason", change.Note)
		default:
			o.Count(string(change.Action)+"d", 1)
			log.Info("a job was " + string(change.Action) + "d")
			entries = append(entries, o.entry(o.spec.ConfigID, platformv1.LogLevel_LOG_LEVEL_INFO,
				"Job "+change.JobID+" was "+past[change.Action]+".", change.JobID, time.Now().String()))
		}
	}
	for _, left := range o.plan.LeftOut {
		o.Logger().Warn("a config is left out", "config", left.Config, "job_type", left.JobType, "reason", left.Message)
		text := "This config is left out of job " + job.ID(left.JobType, o.spec.ConfigID) + ": " + left.Message + "."
		entries = append(entries, o.entry(left.Config, platformv1.LogLevel_LOG_LEVEL_ERROR, text, o.spec.Revision, text))
	}
	return writeLog(ctx, o.platform, entries)
}

var past = map[job.Action]string{job.ActionCreate: "created", job.ActionUpdate: "changed", job.ActionDelete: "stopped and removed"}

// logFailures logs which jobs have started to fail, and which work again.
func (o *orchestration) logFailures(ctx context.Context, found []job.Summary) error {
	var entries []*platformv1.LogEntry
	now := failures{}
	for _, f := range o.plan.Failing(found) {
		since := f.Failing.Since.UTC().Format(time.RFC3339Nano)
		if before, known := o.failing[f.ID]; known {
			now[f.ID] = before
			continue
		}
		now[f.ID] = since
		text := orchestrate.FailureText(f)
		entries = append(entries, o.entry(o.spec.ConfigID, platformv1.LogLevel_LOG_LEVEL_ERROR,
			"J"+strings.TrimPrefix(text, "j")+".", "fails", f.ID, since))
	}
	watched := o.plan.Watched()
	for _, id := range slices.Sorted(maps.Keys(o.failing)) {
		there := slices.ContainsFunc(found, func(f job.Summary) bool { return f.ID == id })
		switch _, fails := now[id]; {
		case fails || !slices.Contains(watched, id):
		case !there: // It may be listed again.
			now[id] = o.failing[id]
		default:
			entries = append(entries, o.entry(o.spec.ConfigID, platformv1.LogLevel_LOG_LEVEL_INFO,
				"Job "+id+" works again.", "works", id, o.failing[id]))
		}
	}
	if err := writeLog(ctx, o.platform, entries); err != nil {
		return err
	}
	o.failing = now
	return nil
}

// entry is an entry of the log of a config. What was done to a job is not done again, and has the
// time in its id.
func (o *orchestration) entry(config string, level platformv1.LogLevel, text string, about ...string) *platformv1.LogEntry {
	return logEntry(o.Run, logJobs, config, level, text, about...)
}
