package schedules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules/control"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// Syncer compares declared jobs with what Temporal has, and brings it in line.
type Syncer struct {
	control *control.Client
}

// New makes a syncer that works through the control client.
func New(c *control.Client) *Syncer { return &Syncer{control: c} }

// PlanOptions narrow and widen a plan.
type PlanOptions struct {
	// Provider is where the declared jobs come from: only jobs of the same
	// provider can be orphaned or deleted.
	Provider job.Provider
	// Prune deletes the jobs of the provider that are no longer declared.
	Prune bool
}

// Plan compares. It changes nothing.
func (s *Syncer) Plan(ctx context.Context, declared []job.Job, options PlanOptions) (*Plan, error) {
	ids := map[string]bool{}
	var queues []string
	for _, j := range declared {
		ids[j.ID] = true
		if queue := j.Queue(); queue != "" {
			queues = append(queues, queue)
		}
	}
	standing, unread, err := s.control.Standing(ctx, queues)
	if err != nil {
		return nil, err
	}
	c := &comparison{control: s.control, standing: standing, unread: unread}
	changes := make([]Change, len(declared))
	if err := control.Each(len(declared), func(i int) error {
		change, err := c.compare(ctx, declared[i])
		changes[i] = change
		return err
	}); err != nil {
		return nil, err
	}
	orphans, err := c.orphans(ctx, ids, options)
	if err != nil {
		return nil, err
	}
	changes = slices.Concat(changes, orphans)
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.JobID, b.JobID) })
	return &Plan{Namespace: s.control.Namespace(), Changes: changes}, nil
}

// comparison is one plan in the making.
type comparison struct {
	control  *control.Client
	standing map[string]control.Standing
	// unread are queues whose items nobody can tell, since no worker answers.
	unread []string
}

func (c *comparison) compare(ctx context.Context, j job.Job) (Change, error) {
	change := Change{JobID: j.ID, Mode: j.Mode(), job: j}
	var err error
	switch j.Mode() {
	case job.ModeRecurring:
		err = c.compareRecurring(ctx, &change)
	case job.ModeContinuous:
		err = c.compareContinuous(ctx, &change)
	case job.ModeOneShot:
		err = c.compareOneShot(ctx, &change)
	case job.ModeQueued:
		err = c.compareQueued(ctx, &change)
	default:
		return change, fmt.Errorf("job %s has no mode", j.ID)
	}
	if errors.Is(err, control.ErrNotOurs) {
		change.Action, change.Note = ActionBlocked, err.Error()
		return change, nil
	}
	if err != nil {
		return change, err
	}
	err = c.formerMode(ctx, &change)
	return change, err
}

// formerMode finds what stands for a job's former mode. It asks for the things
// themselves: the lists lag behind.
func (c *comparison) formerMode(ctx context.Context, change *Change) error {
	if change.Mode != job.ModeRecurring {
		live, err := c.control.LiveSchedule(ctx, change.JobID)
		if err != nil && !errors.Is(err, control.ErrNotOurs) {
			return err
		}
		change.changesMode(live != nil, thingSchedule)
	}
	if change.Mode == job.ModeRecurring {
		live, err := c.control.LiveWorkflow(ctx, change.JobID)
		if err != nil && !errors.Is(err, control.ErrNotOurs) {
			return err
		}
		change.changesMode(live != nil && live.Workflow.Open() && live.Workflow.Type == workflows.ContinuousJobType, thingLoop)
	}
	if item := c.standing[change.JobID].Waiting; item != nil && change.Mode != job.ModeQueued {
		change.queue = item.Job.Queue()
		change.changesMode(true, thingItem)
	}
	return nil
}

// changesMode notes that what stands for the job's former mode is to be removed.
func (change *Change) changesMode(stands bool, t thing) {
	if !stands || slices.Contains(change.replaces, t) {
		return
	}
	if change.Action == ActionUnchanged {
		change.Action = ActionUpdate
	}
	change.replaces = append(change.replaces, t)
	change.Note = fmt.Sprintf("its mode changes to %s: its %s is removed", change.Mode, t)
}

func (c *comparison) compareRecurring(ctx context.Context, change *Change) error {
	live, err := c.control.LiveSchedule(ctx, change.JobID)
	if err != nil {
		return err
	}
	if live == nil {
		change.Action = ActionCreate
		if end := change.job.Recurring.EndAt; !end.IsZero() && end.Before(time.Now()) {
			// The server removes a schedule some days after its last start.
			change.Action, change.Note = ActionUnchanged, "has ended: its end_at has passed"
		}
		return nil
	}
	wanted, err := scheduleOptions(change.job)
	if err != nil {
		return err
	}
	if live.Paused && !change.job.Options.Paused {
		change.Note = "paused: " + live.PauseReason
	}
	return change.settle(live, edits(live.Schedule, wanted))
}

func (c *comparison) compareContinuous(ctx context.Context, change *Change) error {
	live, err := c.control.LiveWorkflow(ctx, change.JobID)
	switch {
	case err != nil:
		return err
	case live == nil:
		change.Action = ActionCreate
		return nil
	case live.Workflow.Type != workflows.ContinuousJobType && live.Workflow.Open():
		change.Action, change.Note = ActionBlocked, "a run of its old definition is under way; apply again when it has ended"
		return nil
	case !live.Workflow.Open():
		change.Action = ActionCreate
		change.Note = "was stopped before; starts again"
		return nil
	}
	if live.Paused && !change.job.Options.Paused {
		change.Note = "paused: " + live.PauseReason
	}
	return change.settle(live, nil)
}

func (c *comparison) compareOneShot(ctx context.Context, change *Change) error {
	live, err := c.control.LiveWorkflow(ctx, change.JobID)
	switch {
	case err != nil:
		return err
	case live != nil && live.Workflow.Type == workflows.RunJobType:
		err = change.settle(live, nil)
	default:
		change.Action = ActionCreate
		change.changesMode(live != nil && live.Workflow.Open(), thingLoop)
	}
	if change.Action == ActionUpdate && live.Workflow.Open() {
		change.Action, change.Note = ActionBlocked, "its run with the old spec is under way; apply again when it has ended"
	}
	if change.Action != ActionUnchanged && change.job.Options.Paused {
		change.Action, change.Note = ActionUnchanged, pausedInDefinition
	}
	return err
}

func (c *comparison) compareQueued(ctx context.Context, change *Change) error {
	hash, err := change.job.SpecHash()
	if err != nil {
		return err
	}
	if slices.Contains(c.unread, change.job.Queue()) {
		return fmt.Errorf("job %s: what waits in queue %s is not known: %w", change.JobID, change.job.Queue(), control.ErrNoWorker)
	}
	item := c.standing[change.JobID].Waiting
	if item == nil {
		return c.compareOneShot(ctx, change)
	}
	waiting, err := item.Job.SpecHash()
	if err != nil {
		return err
	}
	change.Action, change.Note = ActionUnchanged, fmt.Sprintf("waits in queue %s", item.Job.Queue())
	if waiting != hash || item.Job.Queue() != change.job.Queue() {
		change.Action, change.queue = ActionUpdate, item.Job.Queue()
		change.replaces = append(change.replaces, thingItem)
		change.Fields, err = diff(item.Job, change.job)
	}
	return err
}

// settle decides between update and unchanged for something that is there.
func (change *Change) settle(live *control.Live, edits []Field) error {
	hash, err := change.job.SpecHash()
	if err != nil {
		return err
	}
	if live.SpecHash == hash && len(edits) == 0 {
		change.Action = ActionUnchanged
		return nil
	}
	change.Action = ActionUpdate
	if live.SpecHash != hash {
		change.Fields, err = diff(live.Job, change.job)
	}
	if len(change.Fields) == 0 {
		change.Fields = edits
	}
	return err
}

// orphans are the provider's jobs that stand in Temporal and are not declared.
func (c *comparison) orphans(ctx context.Context, declared map[string]bool, options PlanOptions) ([]Change, error) {
	var ids []string
	for id, standing := range c.standing {
		if !declared[id] && standing.Provider == options.Provider {
			ids = append(ids, id)
		}
	}
	found := make([]*Change, len(ids))
	err := control.Each(len(ids), func(i int) error {
		change, err := c.orphan(ctx, ids[i], options)
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

// orphan confirms that a job still stands: the list it was found in lags behind.
func (c *comparison) orphan(ctx context.Context, id string, options PlanOptions) (*Change, error) {
	change := &Change{Action: ActionOrphaned, JobID: id, job: job.Job{ID: id}}
	if options.Prune {
		change.Action = ActionDelete
	}
	if c.standing[id].Schedule {
		live, err := c.control.LiveSchedule(ctx, id)
		if err != nil && !errors.Is(err, control.ErrNotOurs) {
			return nil, err
		}
		if live != nil {
			change.Mode = job.ModeRecurring
			change.replaces = append(change.replaces, thingSchedule)
		}
	}
	if c.standing[id].Loop {
		live, err := c.control.LiveWorkflow(ctx, id)
		if err != nil && !errors.Is(err, control.ErrNotOurs) {
			return nil, err
		}
		if live != nil && live.Workflow.Open() {
			change.Mode = job.ModeContinuous
			change.replaces = append(change.replaces, thingLoop)
		}
	}
	if item := c.standing[id].Waiting; item != nil {
		change.Mode = job.ModeQueued
		change.queue = item.Job.Queue()
		change.replaces = append(change.replaces, thingItem)
	}
	if len(change.replaces) == 0 {
		return nil, nil //nolint:nilnil // It is gone.
	}
	return change, nil
}
