package schedules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	Provider job.Provider `json:"provider"`
	// Prune deletes the jobs of the provider that are no longer declared.
	Prune bool `json:"prune,omitempty"`
	// AllowMassPrune lets a plan delete more than a fifth of the jobs.
	AllowMassPrune bool `json:"allow_mass_prune,omitempty"`
	// ResetPauses makes jobs that were paused or resumed by hand as declared.
	ResetPauses bool `json:"reset_pauses,omitempty"`
	// Parallel bounds the calls under way at once. 0 is the default, 8.
	Parallel int `json:"-"`
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
	c := &comparison{control: s.control, options: options}
	if err := c.look(ctx, queues); err != nil {
		return nil, err
	}
	changes := make([]Change, len(declared))
	if err := control.EachOf(len(declared), options.Parallel, func(i int) error {
		change, err := c.compare(ctx, declared[i])
		changes[i] = change
		return err
	}); err != nil {
		return nil, err
	}
	orphans, err := c.orphans(ctx, ids)
	if err != nil {
		return nil, err
	}
	changes = slices.Concat(changes, orphans)
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.JobID, b.JobID) })
	plan := &Plan{
		Namespace: s.control.Namespace(), Changes: changes,
		options: options, declared: declared, applied: c.applied,
	}
	plan.warn(time.Now())
	for _, thing := range c.foreign {
		if !ids[thing.JobID] {
			plan.Foreign = append(plan.Foreign, thing.Name)
		}
	}
	return plan, plan.findUnrecorded()
}

// look reads what a comparison needs to know of all jobs.
func (c *comparison) look(ctx context.Context, queues []string) (err error) {
	if c.applied, err = c.control.Applied(ctx, c.options.Provider); err != nil {
		return err
	}
	survey, err := c.control.Survey(ctx, queues)
	if err != nil {
		return err
	}
	c.standing, c.unread, c.foreign = survey.Jobs, survey.Unread, survey.Foreign
	return nil
}

// comparison is one plan in the making.
type comparison struct {
	control  *control.Client
	options  PlanOptions
	applied  workflows.AppliedState
	standing map[string]control.Standing
	foreign  []control.Foreign
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
		change.queue, change.sequence = item.Job.Queue(), item.Sequence
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
		change.NextThen = nextStarts(change.job, time.Now())
		if end := change.job.Recurring.EndAt; !end.IsZero() && end.Before(time.Now()) {
			// The server removes a schedule some days after its last start.
			change.Action, change.Note = ActionUnchanged, "has ended: its end_at has passed"
			change.NextThen = nil
		}
		return nil
	}
	wanted, err := scheduleOf(change.job)
	if err != nil {
		return err
	}
	if change.Version, err = scheduleVersion(live); err != nil {
		return err
	}
	edited, err := byHand(live, c.applied.Jobs[change.JobID])
	if err != nil {
		return err
	}
	change.EditedByHand = len(edited) > 0
	if err := change.settle(live, edits(live, wanted)); err != nil {
		return err
	}
	change.keepPause(live, c.options.ResetPauses)
	change.starts(live, time.Now())
	return nil
}

// shownStarts is how many coming starts a plan shows.
const shownStarts = 3

// starts tells when a schedule that changes starts runs next, now and then.
func (change *Change) starts(live *control.Live, now time.Time) {
	if change.Action != ActionUpdate {
		return
	}
	if !live.Paused {
		next := live.Next()
		change.NextNow = next[:min(len(next), shownStarts)]
	}
	keepsPause := live.Paused && !change.setPause && live.Job.Options.Paused == change.job.Options.Paused
	if !keepsPause {
		change.NextThen = nextStarts(change.job, now)
	}
}

// nextStarts are the coming starts of a job, jitter aside; none while it is
// declared as paused.
func nextStarts(j job.Job, now time.Time) []time.Time {
	times, err := j.Recurring.Times(j.ID)
	if err != nil || j.Options.Paused {
		return nil
	}
	var next []time.Time
	for at := times.Next(now); !at.IsZero() && len(next) < shownStarts; at = times.Next(at) {
		next = append(next, at)
	}
	return next
}

// keepPause notes that a job is paused by hand, and makes that a change if
// pauses are reset.
func (change *Change) keepPause(live *control.Live, reset bool) {
	declared := change.job.Options.Paused
	if live.Paused == declared {
		return
	}
	if live.Paused {
		change.Note = "paused: " + live.PauseReason
	}
	if !reset || live.Job.Options.Paused != declared {
		return // Kept; or it changes with the definition.
	}
	change.Action, change.setPause = ActionUpdate, true
	change.Fields = append(change.Fields, Field{
		Path: "paused", Old: strconv.FormatBool(live.Paused), New: strconv.FormatBool(declared),
	})
}

func (c *comparison) compareContinuous(ctx context.Context, change *Change) error {
	live, err := c.control.LiveWorkflow(ctx, change.JobID)
	if err != nil {
		return err
	}
	change.Version = workflowVersion(live)
	switch {
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
	if err := change.settle(live, nil); err != nil {
		return err
	}
	change.keepPause(live, c.options.ResetPauses)
	return nil
}

func (c *comparison) compareOneShot(ctx context.Context, change *Change) error {
	live, err := c.control.LiveWorkflow(ctx, change.JobID)
	if err != nil {
		return err
	}
	change.Version = workflowVersion(live)
	switch {
	case live != nil && live.Workflow.Type == workflows.RunJobType:
		err = change.settle(live, nil)
	case live == nil && c.ranBefore(change.job):
		change.Action = ActionUnchanged
	default:
		change.Action = ActionCreate
		change.changesMode(live != nil && live.Workflow.Open(), thingLoop)
	}
	if change.Action == ActionUpdate && live.Workflow.Open() {
		change.Action, change.Note = ActionBlocked, "its run with the old spec is under way; apply again when it has ended"
	}
	if change.Action != ActionUnchanged && change.job.Options.Paused {
		change.Action, change.Fields = ActionUnchanged, nil
		if len(change.replaces) > 0 {
			change.Action = ActionUpdate // What stood for its former mode goes.
		} else {
			change.Note = pausedInDefinition
		}
	}
	return err
}

// ranBefore says that a job that runs once was applied, so long ago that Temporal
// has forgotten its run.
func (c *comparison) ranBefore(j job.Job) bool {
	before, ok := c.applied.Jobs[j.ID]
	hash, err := j.SpecHash()
	return ok && err == nil && before.Hash == hash && (before.Mode == job.ModeOneShot || before.Mode == job.ModeQueued)
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
	change.Version = itemVersion(item)
	if change.job.Options.Paused {
		change.Action, change.queue, change.sequence = ActionUpdate, item.Job.Queue(), item.Sequence
		change.replaces = append(change.replaces, thingItem)
		change.Note = pausedInDefinition + ": it is taken out of queue " + item.Job.Queue()
		return nil
	}
	if waiting != hash || item.Job.Queue() != change.job.Queue() {
		change.Action, change.queue, change.sequence = ActionUpdate, item.Job.Queue(), item.Sequence
		change.replaces = append(change.replaces, thingItem)
		change.Fields, err = diff(item.Job, change.job)
	}
	return err
}

// settle decides between update and unchanged for something that is there.
func (change *Change) settle(live *control.Live, edits []Field) error {
	wanted, err := change.job.SpecHash()
	if err != nil {
		return err
	}
	// The mark may say what the definition no longer is: people edit inputs.
	stands, err := live.Job.SpecHash()
	if err != nil {
		return err
	}
	change.was = live.SpecHash
	if live.SpecHash == wanted && stands == wanted && len(edits) == 0 {
		change.Action = ActionUnchanged
		return nil
	}
	change.Action = ActionUpdate
	if change.Fields, err = diff(live.Job, change.job); err != nil {
		return err
	}
	if len(change.Fields) == 0 {
		change.Fields = edits
	}
	return nil
}

// orphans are the provider's jobs that stand in Temporal and are not declared.
func (c *comparison) orphans(ctx context.Context, declared map[string]bool) ([]Change, error) {
	var ids []string
	for id, standing := range c.standing {
		if !declared[id] && standing.Provider == c.options.Provider {
			ids = append(ids, id)
		}
	}
	found := make([]*Change, len(ids))
	err := control.EachOf(len(ids), c.options.Parallel, func(i int) error {
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

// orphan confirms that a job still stands: the list it was found in lags behind.
func (c *comparison) orphan(ctx context.Context, id string) (*Change, error) {
	change := &Change{Action: ActionOrphaned, JobID: id, job: job.Job{ID: id}}
	if c.options.Prune {
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
		change.queue, change.sequence = item.Job.Queue(), item.Sequence
		change.replaces = append(change.replaces, thingItem)
	}
	if len(change.replaces) == 0 {
		return nil, nil //nolint:nilnil // It is gone.
	}
	return change, nil
}
