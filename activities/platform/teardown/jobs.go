package teardown

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/job"
)

// Queues are the queues of an organization.
func Queues(organizationID string) []string {
	return []string{"images." + organizationID, "tables." + organizationID}
}

// jobs stops the jobs of the organization's configs, the orchestrators first, and removes
// its queues. A job of somebody else that the organization owns blocks it.
func (t *teardown) jobs(ctx context.Context) error {
	if err := t.findForeignJobs(ctx); err != nil {
		return err
	}
	if err := t.unblocked(); err != nil {
		return err
	}
	configs, err := t.ownConfigs(ctx)
	if err != nil {
		return err
	}
	if err := t.removeConfigs(ctx, configs); err != nil {
		return err
	}
	if err := t.settleJobs(ctx, configs); err != nil {
		return err
	}
	return t.queues(ctx)
}

func (t *teardown) removeConfigs(ctx context.Context, configs []string) error {
	for _, config := range configs {
		for _, set := range []job.Set{
			{Provider: job.ProviderIntegration, Only: []string{reconcile.OrchestratorID(config)}},
			{Provider: job.IntegrationProvider(config)},
		} {
			if set.Provider.Check() != nil {
				continue // No job can have it.
			}
			if err := t.removeJobs(ctx, set); err != nil {
				return err
			}
		}
	}
	return nil
}

// listLag is how long the lists of Temporal have to show no job of the organization. A run
// that its Schedule started as it was deleted is in them after about a second.
const listLag = 3 * time.Second

// settleJobs waits until the lists have shown no job of the configs for a while. What they
// show is removed.
func (t *teardown) settleJobs(ctx context.Context, configs []string) error {
	if t.spec.DryRun || len(configs) == 0 {
		return nil
	}
	for empty := time.Now(); time.Since(empty) < listLag; {
		found, err := t.Jobs().Find(ctx, job.Filter{Provider: job.ProviderIntegration})
		if err != nil {
			return err
		}
		if slices.ContainsFunc(found, func(f job.Summary) bool { return ofConfig(f, configs) }) {
			if err := t.removeConfigs(ctx, configs); err != nil {
				return err
			}
			empty = time.Now()
		}
		select {
		case <-time.After(settlePoll):
		case <-t.Stopping():
			return job.ErrStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// ofConfig reports whether a job is one of the configs' or their orchestrator.
func ofConfig(f job.Summary, configs []string) bool {
	return slices.ContainsFunc(configs, func(config string) bool {
		return f.Provider == job.IntegrationProvider(config) || f.ID == reconcile.OrchestratorID(config)
	})
}

// removeJobs makes a set empty.
func (t *teardown) removeJobs(ctx context.Context, set job.Set) error {
	set.DryRun = t.spec.DryRun
	applied, err := t.Jobs().Apply(ctx, set)
	for _, change := range applied.Changes {
		if change.Action == job.ActionDelete && change.Err == nil {
			t.stage.Add("jobs", change.JobID, 1, 0)
		}
	}
	t.save("stage " + t.stage.Name)
	if err == nil && job.Stopped(t.Run) {
		return job.ErrStopped
	}
	return err
}

func (t *teardown) queues(ctx context.Context) error {
	for _, queue := range Queues(t.organization.GetId()) {
		items, exists, err := t.Jobs().QueueItems(ctx, queue)
		if err != nil {
			return err
		}
		if !exists {
			continue
		}
		err = t.remove(ctx, "queues", fmt.Sprintf("%s, items: %d", queue, items), 1, func(ctx context.Context) error {
			return t.Jobs().RemoveQueue(ctx, queue)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// findForeignJobs blocks the stage for jobs that would write data of the organization
// again, and that no config of it has.
func (t *teardown) findForeignJobs(ctx context.Context) error {
	var foreign []string
	for _, owner := range []string{t.organization.GetSlug(), t.organization.GetId()} {
		found, err := t.Jobs().Find(ctx, job.Filter{Owner: job.Owner{Organization: owner}})
		if err != nil {
			return err
		}
		for _, f := range found {
			if !f.Provider.IsUnder(job.ProviderIntegration) {
				foreign = append(foreign, fmt.Sprintf("%s of provider %s", f.ID, f.Provider))
			}
		}
	}
	if len(foreign) > 0 {
		slices.Sort(foreign)
		t.stage.Block("job %s is owned by the organization and would write its data again: remove it first", strings.Join(slices.Compact(foreign), ", "))
	}
	return nil
}
