package schedules

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules/control"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// Report tells how one change went, in the order in which changes end.
type Report struct {
	Change Change
	Err    error
	// Done counts the changes that have ended, of Total.
	Done, Total int
}

// Apply carries a plan out, several changes at a time, and goes on past a change
// that fails. It can be interrupted and run again: what is there is not made
// twice. It gives the joined errors of the changes that failed.
func (s *Syncer) Apply(ctx context.Context, plan *Plan, report func(Report)) error {
	if plan.Namespace != s.control.Namespace() {
		return fmt.Errorf("the plan is for namespace %q, not %q", plan.Namespace, s.control.Namespace())
	}
	work := plan.work()
	var mu sync.Mutex
	done := 0
	return control.Each(len(work), func(i int) error {
		err := ctx.Err()
		if err == nil {
			err = s.carryOut(ctx, work[i])
		}
		mu.Lock()
		defer mu.Unlock()
		done++
		report(Report{Change: work[i], Err: err, Done: done, Total: len(work)})
		return err
	})
}

func (s *Syncer) carryOut(ctx context.Context, change Change) error {
	for _, t := range change.replaces {
		if err := s.remove(ctx, t, change); err != nil {
			return err
		}
	}
	if change.Action == ActionDelete {
		return nil
	}
	j := change.job
	runsOnce := j.Mode() == job.ModeOneShot || j.Mode() == job.ModeQueued
	if runsOnce && j.Options.Paused {
		return nil // Only what stood for its former mode was to be removed.
	}
	switch j.Mode() {
	case job.ModeRecurring:
		wanted, err := scheduleOptions(j)
		if err != nil {
			return err
		}
		return s.control.PutSchedule(ctx, j, wanted, func(live *client.ScheduleDescription) bool {
			return len(edits(live, wanted)) == 0
		})
	case job.ModeContinuous:
		if change.Action == ActionUpdate {
			return s.control.SetContinuous(ctx, j, false)
		}
		return s.control.StartContinuous(ctx, j)
	case job.ModeQueued:
		receipt, err := s.control.Enqueue(ctx, j, true)
		if err == nil && receipt.Duplicate {
			err = fmt.Errorf("job %s is in queue %s already; apply again when it has ended", j.ID, j.Queue())
		}
		return err
	default:
		_, err := s.control.StartRun(ctx, j, workflows.TriggerApply)
		return err
	}
}

func (s *Syncer) remove(ctx context.Context, t thing, change Change) error {
	var err error
	switch t {
	case thingSchedule:
		err = s.control.DeleteSchedule(ctx, change.JobID)
	case thingLoop:
		err = s.control.StopLoop(ctx, change.JobID, "no longer declared")
	case thingItem:
		err = s.control.RemoveWaiting(ctx, change.queue, change.JobID)
	}
	if errors.Is(err, control.ErrNotFound) {
		return nil
	}
	return err
}
