package schedules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
)

// Jobs is how handlers manage jobs, by the plan and apply of this package.
type Jobs struct {
	client *client.Client
	syncer *Syncer
}

var _ job.Jobs = (*Jobs)(nil)

// NewJobs makes Jobs that work through the client.
func NewJobs(c *client.Client) *Jobs { return &Jobs{client: c, syncer: New(c)} }

// Apply implements [job.Jobs].
func (s *Jobs) Apply(ctx context.Context, set job.Set) (job.Applied, error) {
	valid, blocked, err := set.Check()
	if err != nil {
		return job.Applied{}, err
	}
	applied := job.Applied{Changes: blocked}
	own := ownOptions{alone: true, only: set.Only}
	for _, change := range blocked {
		own.keep = append(own.keep, change.JobID)
	}
	plan, err := s.syncer.Plan(ctx, valid, PlanOptions{Provider: set.Provider, Prune: true, AllowMassPrune: true, own: own})
	if err != nil {
		return applied, fmt.Errorf("jobs of provider %s: %w", set.Provider, err)
	}
	applied.Unchanged = plan.Count(ActionUnchanged)
	for _, change := range plan.Changes {
		if change.Action == ActionBlocked || set.DryRun && change.Action != ActionUnchanged {
			applied.Changes = append(applied.Changes, changed(change, nil))
		}
	}
	err = applied.Err() // Of blocked jobs.
	if !set.DryRun {
		err = errors.Join(s.syncer.Apply(ctx, plan, func(r Report) {
			applied.Changes = append(applied.Changes, changed(r.Change, r.Err))
		}), err)
	}
	if err == nil && !set.DryRun && len(set.Jobs)+len(set.Only) == 0 && set.Provider.IsUnder(job.ProviderIntegration) && set.Provider != job.ProviderIntegration {
		err = endRecord(ctx, s.client, set.Provider) // The config may never come back.
	}
	slices.SortFunc(applied.Changes, func(a, b job.Change) int { return strings.Compare(a.JobID, b.JobID) })
	return applied, err
}

func changed(change Change, err error) job.Change {
	return job.Change{Action: change.Action, JobID: change.JobID, Note: change.Note, Err: err}
}

// Stop implements [job.Jobs].
func (s *Jobs) Stop(ctx context.Context, jobID, reason string) error {
	err := s.client.Jobs.Stop(ctx, jobID, reason)
	if errors.Is(err, client.ErrNotFound) {
		return nil
	}
	return err
}

// Enqueue implements [job.Jobs].
func (s *Jobs) Enqueue(ctx context.Context, j job.Job, allowRerun bool) error {
	j, err := j.Enqueueable()
	if err == nil {
		_, err = s.client.Queues.Enqueue(ctx, j, client.EnqueueOptions{AllowRerun: allowRerun})
	}
	return err
}

// RemoveQueue implements [job.Jobs].
func (s *Jobs) RemoveQueue(ctx context.Context, queue string) error {
	return s.client.Queues.Remove(ctx, queue)
}

// QueueItems implements [job.Jobs].
func (s *Jobs) QueueItems(ctx context.Context, queue string) (items int, exists bool, err error) {
	return s.client.Queues.Items(ctx, queue)
}

// Find implements [job.Jobs].
func (s *Jobs) Find(ctx context.Context, filter job.Filter) ([]job.Found, error) {
	return s.client.Jobs.Find(ctx, filter)
}
