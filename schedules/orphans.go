package schedules

import (
	"context"
	"errors"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/parallel"
	"github.com/dendrascience/dendra-jobs/job"
)

// orphans are the provider's jobs that have a resource in Temporal and are not declared.
func (c *comparison) orphans(ctx context.Context, declared map[string]bool) ([]Change, error) {
	var ids []string
	for id, found := range c.live {
		if !declared[id] && found.Provider == c.options.Provider {
			ids = append(ids, id)
		}
	}
	found := make([]*Change, len(ids))
	err := parallel.Each(len(ids), c.options.Parallel, func(i int) error {
		change, err := c.orphan(ctx, ids[i])
		found[i] = change
		return err
	})
	var orphans []Change
	for _, change := range found {
		if change != nil {
			orphans = append(orphans, *change)
		}
	}
	return orphans, err
}

// orphan confirms that a job still has a resource: the list it was found in lags behind.
func (c *comparison) orphan(ctx context.Context, id string) (*Change, error) {
	change := &Change{Action: ActionOrphaned, JobID: id, job: job.Job{ID: id}}
	if c.options.Prune {
		change.Action = ActionDelete
	}
	if c.live[id].Schedule {
		live, err := c.client.Jobs.LiveSchedule(ctx, id)
		if err != nil && !errors.Is(err, client.ErrNotOurs) {
			return nil, err
		}
		if live != nil && live.Job.Provider == c.options.Provider {
			version, err := scheduleVersion(live)
			if err != nil {
				return nil, err
			}
			change.Mode = job.ModeRecurring
			change.replaces = append(change.replaces, removal{resourceSchedule, version})
		}
	}
	if c.live[id].Loop {
		live, err := c.client.Jobs.LiveWorkflow(ctx, id)
		if err != nil && !errors.Is(err, client.ErrNotOurs) {
			return nil, err
		}
		if live != nil && live.Workflow.Open() && live.Job.Provider == c.options.Provider {
			change.Mode = job.ModeContinuous
			change.replaces = append(change.replaces, removal{resourceLoop, workflowVersion(live)})
		}
	}
	if item := c.live[id].Waiting; item != nil {
		change.Mode = job.ModeQueued
		change.queue, change.sequence = item.Job.Queue(), item.Sequence
		change.replaces = append(change.replaces, removal{resourceItem, itemVersion(item)})
	}
	if len(change.replaces) == 0 {
		return nil, nil //nolint:nilnil // It is gone.
	}
	change.exists = true
	return change, nil
}
