package schedules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
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
	left, stopErr := s.stopLeftRuns(ctx, set, applied)
	applied.Changes = append(applied.Changes, left...)
	slices.SortFunc(applied.Changes, func(a, b job.Change) int { return strings.Compare(a.JobID, b.JobID) })
	err = errors.Join(err, stopErr)
	if err == nil && !set.DryRun && len(set.Jobs)+len(set.Only) == 0 {
		err = endRecord(ctx, s.client, set.Provider)
	}
	return applied, err
}

// stopLeftRuns stops what is left of recurring jobs that the set does not have: runs whose
// schedule went earlier, when an Apply was cut off, or that began as it went.
func (s *Jobs) stopLeftRuns(ctx context.Context, set job.Set, applied job.Applied) ([]job.Change, error) {
	left, err := s.client.Apply.RunsLeft(ctx, set.Provider, func(id string) bool {
		return len(set.Only) > 0 && !slices.Contains(set.Only, id) ||
			slices.ContainsFunc(set.Jobs, func(j job.Job) bool { return j.ID == id })
	})
	changes := make([]job.Change, len(left))
	err = errors.Join(err, temporalclient.Each(len(left), temporalclient.CallLimit, func(i int) error {
		changes[i] = job.Change{Action: job.ActionDelete, JobID: left[i].JobID, Note: "its schedule was gone, and it had a run"}
		if !set.DryRun {
			changes[i].Err = s.client.Apply.StopRuns(ctx, left[i])
		}
		return changes[i].Err
	}))
	return slices.DeleteFunc(changes, func(change job.Change) bool {
		return slices.ContainsFunc(applied.Changes, func(done job.Change) bool { return done.JobID == change.JobID })
	}), err
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

// Pause implements [job.Jobs].
func (s *Jobs) Pause(ctx context.Context, jobID, reason string, end time.Time) (bool, error) {
	end = end.Truncate(time.Second)
	before, err := s.client.Jobs.PauseSeeing(ctx, jobID, contract.PauseRequest{Reason: reason, End: end, UnlessPaused: true})
	if refused, ok := errors.AsType[*client.UnsupportedError](err); ok && refused.Stopped || errors.Is(err, client.ErrNotFound) {
		return false, nil
	}
	return err == nil && (!before.Paused || before.End.Equal(end)), err
}

// Enqueue implements [job.Jobs].
func (s *Jobs) Enqueue(ctx context.Context, j job.Job, allowRerun bool) error {
	j, err := j.Enqueueable()
	if err == nil {
		_, err = s.client.Queues.Enqueue(ctx, j, client.EnqueueOptions{AllowRerun: allowRerun})
	}
	_, answered := errors.AsType[*temporal.ApplicationError](err)
	if _, ended := errors.AsType[*client.QueueEndedError](err); ended || answered {
		return fmt.Errorf("%w: %w", job.ErrRefused, err)
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
func (s *Jobs) Find(ctx context.Context, filter job.Filter) ([]job.Summary, error) {
	return s.client.Jobs.Find(ctx, filter)
}

// Get implements [job.Jobs].
func (s *Jobs) Get(ctx context.Context, jobID string) (job.Job, error) {
	live, err := s.client.Jobs.Live(ctx, jobID)
	if errors.Is(err, client.ErrNotFound) {
		return job.Job{}, fmt.Errorf("%w: %s", job.ErrNoJob, jobID)
	}
	if err != nil {
		return job.Job{}, err
	}
	return live.Job, nil
}
