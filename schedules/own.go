package schedules

import (
	"context"
	"slices"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
)

// ownOptions are those of a plan for a handler. A handler's plans are many, so that they
// read no more than they need.
type ownOptions struct {
	// alone looks at jobs of the provider and at nothing foreign. When a schedule is
	// deleted, the runs that it has started are stopped too.
	alone bool
	// only are the ids of the jobs to look at, if there are any.
	only []string
	// keep are ids of jobs to leave as they are, though they are not declared.
	keep []string
}

// leaves reports whether a job that is not declared stays as it is.
func (o ownOptions) leaves(id string) bool {
	return len(o.only) > 0 && !slices.Contains(o.only, id) || slices.Contains(o.keep, id)
}

// mayWait reports whether a job that was applied may wait in a queue.
func (c *comparison) mayWait() bool {
	for id, applied := range c.applied.Jobs {
		if applied.Mode == job.ModeQueued && !c.options.own.leaves(id) {
			return true
		}
	}
	return false
}

// readOwn lists the live jobs of the provider. Jobs that are named are not listed:
// each of them is asked for.
func (c *comparison) readOwn(ctx context.Context) error {
	c.live = map[string]client.JobResources{}
	if len(c.options.own.only) > 0 {
		return nil
	}
	list, err := c.client.Jobs.Find(ctx, job.Filter{Provider: c.options.Provider})
	for _, found := range list {
		if found.Provider != c.options.Provider {
			continue // Of one under it.
		}
		state := c.live[found.ID]
		state.Provider = found.Provider
		state.Schedule = state.Schedule || found.Mode == job.ModeRecurring
		state.Loop = state.Loop || found.Mode == job.ModeContinuous
		c.live[found.ID] = state
	}
	return err
}

// deleteSchedule removes the schedule of a job, and with stopRuns also ends the runs that
// it has started.
func (s *Syncer) deleteSchedule(ctx context.Context, r removal, change Change, stopRuns bool) error {
	var found *client.Live
	err := s.client.Apply.DeleteSchedule(ctx, change.JobID, func(live *client.Live) bool {
		found = live
		return hasVersion(r.version)(live)
	})
	if err != nil || !stopRuns {
		return err
	}
	return s.client.Apply.StopRuns(ctx, found.Runs())
}
