package orchestrate

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/job"
)

// Stage is a place in the pipeline. Stages are stopped in their order, so that each takes
// what is left of the one before, and are started in the reverse order.
type Stage int

// The stages.
const (
	StageExtract Stage = iota
	StagePrepare
	StageOther // of job types that the table does not have
	StageLoad
	stages
)

// prefixes are how the ids of jobs of a stage begin.
var prefixes = map[string]Stage{
	"extract_":  StageExtract,
	"prepare_":  StagePrepare,
	"live_load": StageLoad,
	"load_":     StageLoad,
	"post_to_":  StageLoad,
}

// StageOf is the stage of a job.
func StageOf(jobID string) Stage {
	for prefix, stage := range prefixes {
		if strings.HasPrefix(jobID, prefix) {
			return stage
		}
	}
	return StageOther
}

// Apply applies a set stage by stage, each when the one before is done: what goes, from
// extract to load; then what comes or changes, from load to extract. If a job does not go,
// the stages after its own stay as they are. A job that does not come holds up no other.
// Jobs to keep do not go.
func Apply(ctx context.Context, jobs job.Jobs, set job.Set, keep ...string) (job.Applied, error) {
	whole := set
	whole.DryRun = true
	planned, err := jobs.Apply(ctx, whole)
	planned.Changes = slices.DeleteFunc(planned.Changes, func(change job.Change) bool {
		return change.Action == job.ActionDelete && slices.Contains(keep, change.JobID)
	})
	if set.DryRun || len(planned.Changes) == 0 {
		return planned, err
	}
	done := job.Applied{Unchanged: planned.Unchanged}
	if err != nil && planned.Err() == nil {
		return done, err // It cannot be read what is there.
	}
	var going, coming [stages][]string
	for _, change := range planned.Changes {
		stage := StageOf(change.JobID)
		switch change.Action {
		case job.ActionBlocked:
			done.Changes = append(done.Changes, change)
		case job.ActionDelete:
			going[stage] = append(going[stage], change.JobID)
		default:
			coming[stage] = append(coming[stage], change.JobID)
		}
	}
	errs := []error{done.Err()}
	step := func(ids []string) error {
		if len(ids) == 0 {
			return nil
		}
		some := set
		some.Only = ids
		applied, err := jobs.Apply(ctx, some)
		done.Changes = append(done.Changes, applied.Changes...)
		return err
	}
	for _, ids := range going {
		if err := step(ids); err != nil {
			return done, errors.Join(append(errs, err)...)
		}
	}
	for _, ids := range slices.Backward(coming[:]) {
		errs = append(errs, step(ids))
	}
	return done, errors.Join(errs...)
}
