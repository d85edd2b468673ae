package schedules

import (
	"context"
	"errors"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// orphans are the provider's jobs that have a resource in Temporal and are not declared.
func (c *comparison) orphans(ctx context.Context, declared map[string]bool) ([]Change, error) {
	ids := c.candidates(declared)
	found := make([]*Change, len(ids))
	err := temporalclient.Each(len(ids), c.options.Parallel, func(i int) error {
		unread, err := c.looks.at(func() (err error) {
			found[i], err = c.orphan(ctx, ids[i])
			return err
		})
		if unread != nil {
			change := unreadChange(job.Job{ID: ids[i]}, unread)
			change.Mode, found[i] = c.applied.Jobs[ids[i]].Mode, &change
		}
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

// candidates are the jobs that may be orphans: those that lists show, and those that
// were applied, which lists may not show yet.
func (c *comparison) candidates(declared map[string]bool) []string {
	seen := map[string]bool{}
	var ids []string
	add := func(id string) {
		if !declared[id] && !seen[id] && !c.options.own.leaves(id) {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	for id, found := range c.live {
		if found.Provider == c.options.Provider {
			add(id)
		}
	}
	for id := range c.applied.Jobs {
		add(id)
	}
	for _, id := range c.options.own.only {
		add(id)
	}
	return ids
}

// orphan confirms that a job still has a resource: the list it was found in lags behind.
// It gives nil for a job that has none.
func (c *comparison) orphan(ctx context.Context, id string) (*Change, error) {
	change := &Change{Action: ActionOrphaned, JobID: id, job: job.Job{ID: id}}
	if c.options.Prune {
		change.Action = ActionDelete
	}
	mode, asked := c.applied.Jobs[id].Mode, len(c.options.own.only) > 0
	if c.live[id].Schedule || mode == job.ModeRecurring || asked {
		live, err := c.client.Jobs.LiveSchedule(ctx, id)
		if err != nil && !errors.Is(err, client.ErrNotOurs) {
			return nil, err
		}
		if live != nil && live.Job.Provider == c.options.Provider {
			version, err := scheduleVersion(live)
			if err != nil {
				return nil, err
			}
			change.Mode, change.before = job.ModeRecurring, &live.Job
			change.replaces = append(change.replaces, removal{resourceSchedule, version})
		}
	}
	if c.live[id].Loop || mode == job.ModeContinuous || asked {
		live, err := c.client.Jobs.LiveWorkflow(ctx, id)
		if err != nil && !errors.Is(err, client.ErrNotOurs) {
			return nil, err
		}
		loops := live != nil && live.Workflow.Open() && live.Workflow.Type == contract.ContinuousJobType
		if loops && live.Job.Provider == c.options.Provider {
			change.Mode, change.before = job.ModeContinuous, &live.Job
			change.replaces = append(change.replaces, removal{resourceLoop, workflowVersion(live)})
		}
	}
	if item := c.live[id].Waiting; item != nil && item.Job.Provider == c.options.Provider {
		change.Mode, change.before = job.ModeQueued, &item.Job
		change.queue, change.sequence = item.Job.Queue(), item.Sequence
		change.replaces = append(change.replaces, removal{resourceItem, itemVersion(item)})
	}
	if len(change.replaces) == 0 {
		return nil, nil //nolint:nilnil // Documented: it is gone.
	}
	change.exists = true
	return change, nil
}
