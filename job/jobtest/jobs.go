package jobtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// Jobs is a [job.Jobs] in memory, for tests of handlers that manage jobs. A job
// is in it until a set removes it or Stop ends it; nothing runs.
type Jobs struct {
	mu       sync.Mutex
	jobs     map[string]job.Job
	enqueued []job.Job
	refusing []string // queues
	failures map[string]error
	states   map[string]job.Summary
	pauses   map[string]time.Time // their ends
}

var _ job.Jobs = (*Jobs)(nil)

// NewJobs makes Jobs in which some are already.
func NewJobs(jobs ...job.Job) *Jobs {
	m := &Jobs{jobs: map[string]job.Job{}, failures: map[string]error{}, states: map[string]job.Summary{}, pauses: map[string]time.Time{}}
	for _, j := range jobs {
		m.jobs[j.ID] = j
	}
	return m
}

// All lists the jobs, by id.
func (m *Jobs) All() []job.Job {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sorted()
}

// IDs are those of the jobs, in order.
func (m *Jobs) IDs() []string {
	ids := []string{}
	for _, j := range m.All() {
		ids = append(ids, j.ID)
	}
	return ids
}

// Enqueued lists the jobs that were put into queues, in order.
func (m *Jobs) Enqueued() []job.Job {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.enqueued)
}

// Fail has every change of the job fail with err, until it is called with nil.
func (m *Jobs) Fail(jobID string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failures[jobID] = err
}

// SetState has Find give this state of a job to those who ask for it.
func (m *Jobs) SetState(jobID string, paused bool, failing *job.Failing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.states[jobID] = job.Summary{Paused: paused, Failing: failing}
}

func (m *Jobs) sorted() []job.Job {
	var list []job.Job
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		list = append(list, m.jobs[id])
	}
	return list
}

// Apply implements [job.Jobs].
func (m *Jobs) Apply(ctx context.Context, set job.Set) (job.Applied, error) {
	if err := ctx.Err(); err != nil {
		return job.Applied{}, err
	}
	valid, blocked, err := set.Check()
	if err != nil {
		return job.Applied{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	applied := job.Applied{Changes: blocked}
	left := map[string]bool{} // as it is
	for _, change := range blocked {
		left[change.JobID] = true
	}
	for _, j := range valid {
		left[j.ID] = true
		change, err := m.compare(j)
		if err != nil {
			return applied, err
		}
		if change.Action == "" {
			applied.Unchanged++
			continue
		}
		if change.Action != job.ActionBlocked {
			change.Err = m.carryOut(set.DryRun, j.ID, func() { m.jobs[j.ID] = j })
		}
		applied.Changes = append(applied.Changes, change)
	}
	for _, j := range m.sorted() {
		if left[j.ID] || j.Provider != set.Provider || len(set.Only) > 0 && !slices.Contains(set.Only, j.ID) {
			continue
		}
		applied.Changes = append(applied.Changes, job.Change{
			JobID: j.ID, Action: job.ActionDelete,
			Err: m.carryOut(set.DryRun, j.ID, func() { delete(m.jobs, j.ID) }),
		})
	}
	return applied, applied.Err()
}

// compare gives the change that a job needs, without an action if it needs none.
func (m *Jobs) compare(j job.Job) (job.Change, error) {
	change := job.Change{JobID: j.ID}
	live, found := m.jobs[j.ID]
	if !found {
		change.Action = job.ActionCreate
		return change, nil
	}
	if live.Provider != j.Provider {
		change.Action, change.Note = job.ActionBlocked, live.Provider.HasID()
		return change, nil
	}
	was, err := live.DefinitionHash()
	if err != nil {
		return change, err
	}
	wanted, err := j.DefinitionHash()
	if was != wanted {
		change.Action = job.ActionUpdate
	}
	return change, err
}

// carryOut makes a change, unless it is to fail.
func (m *Jobs) carryOut(dry bool, jobID string, do func()) error {
	if dry {
		return nil
	}
	if err := m.failures[jobID]; err != nil {
		return fmt.Errorf("job %s: %w", jobID, err)
	}
	do()
	return nil
}

// Stop implements [job.Jobs]: it removes a continuous job.
func (m *Jobs) Stop(ctx context.Context, jobID, _ string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := errors.Join(ctx.Err(), m.failures[jobID]); err != nil {
		return err
	}
	if m.jobs[jobID].Mode() == job.ModeContinuous {
		delete(m.jobs, jobID)
	}
	return nil
}

// Pause implements [job.Jobs]. Find tells that the job is paused, with SetState.
func (m *Jobs) Pause(ctx context.Context, jobID, _ string, end time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := errors.Join(ctx.Err(), m.failures[jobID]); err != nil {
		return false, err
	}
	state, there := m.states[jobID], m.jobs[jobID].Mode() == job.ModeRecurring || m.jobs[jobID].Mode() == job.ModeContinuous
	if until, ours := m.pauses[jobID]; !there || state.Paused {
		return ours && until.Equal(end), nil
	}
	state.Paused = true
	m.states[jobID], m.pauses[jobID] = state, end
	return true, nil
}

// PausedUntil is the end of the pause of a job, zero if Pause has not paused it.
func (m *Jobs) PausedUntil(jobID string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pauses[jobID]
}

// Refuse has a queue refuse jobs, as one does that is drained.
func (m *Jobs) Refuse(queue string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refusing = append(m.refusing, queue)
}

// Enqueue implements [job.Jobs].
func (m *Jobs) Enqueue(ctx context.Context, j job.Job, _ bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := errors.Join(ctx.Err(), m.failures[j.ID]); err != nil {
		return err
	}
	j, err := j.Enqueueable()
	if err == nil && slices.Contains(m.refusing, j.Queue()) {
		err = fmt.Errorf("%w: queue %s is being drained", job.ErrRefused, j.Queue())
	}
	if err == nil {
		m.enqueued = append(m.enqueued, j)
	}
	return err
}

// RemoveQueue implements [job.Jobs].
func (m *Jobs) RemoveQueue(ctx context.Context, queue string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.enqueued = slices.DeleteFunc(m.enqueued, func(j job.Job) bool { return j.Queue() == queue })
	return ctx.Err()
}

// QueueItems implements [job.Jobs].
func (m *Jobs) QueueItems(ctx context.Context, queue string) (items int, exists bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.enqueued {
		if j.Queue() == queue {
			items++
		}
	}
	return items, items > 0, ctx.Err()
}

// Find implements [job.Jobs].
func (m *Jobs) Find(ctx context.Context, filter job.Filter) ([]job.Summary, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []job.Summary
	for _, j := range m.sorted() {
		hash, err := j.DefinitionHash()
		if err != nil {
			return nil, err
		}
		found := job.Summary{ID: j.ID, Type: j.Type, Mode: j.Mode(), Provider: j.Provider, Owner: j.Options.Owner, DefinitionHash: hash}
		if filter.State {
			found.Paused, found.Failing = m.states[j.ID].Paused, m.states[j.ID].Failing
		}
		listed := found.Mode == job.ModeRecurring || found.Mode == job.ModeContinuous
		if listed && filter.Matches(found) {
			list = append(list, found)
		}
	}
	return list, nil
}

// Get implements [job.Jobs].
func (m *Jobs) Get(ctx context.Context, jobID string) (job.Job, error) {
	if err := ctx.Err(); err != nil {
		return job.Job{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	j, ok := m.jobs[jobID]
	if !ok {
		return job.Job{}, fmt.Errorf("%w: %s", job.ErrNoJob, jobID)
	}
	return j, nil
}
