package schedules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// Syncer compares declared jobs with what Temporal has, and brings it in line.
type Syncer struct {
	client *client.Client
}

// New makes a syncer that works through the control client.
func New(c *client.Client) *Syncer { return &Syncer{client: c} }

// PlanOptions narrow and widen a plan.
type PlanOptions struct {
	// Provider is where the declared jobs come from: only jobs of the same
	// provider can be orphaned or deleted.
	Provider job.Provider `json:"provider"`
	// Prune deletes the jobs of the provider that are no longer declared.
	Prune bool `json:"prune,omitempty"`
	// AllowMassPrune lets a plan delete more than a fifth of the jobs.
	AllowMassPrune bool `json:"allow_mass_prune,omitempty"`
	// ResetPauses makes jobs that people have paused or resumed as declared.
	ResetPauses bool `json:"reset_pauses,omitempty"`
	// Types are the job types of declared jobs that only workers bring, by name. Apply
	// keeps them with what was applied.
	Types map[string]contract.AppliedType `json:"types,omitempty"`
	// Parallel bounds the calls under way at once. 0 is the default, 8.
	Parallel int `json:"-"`
	// Only narrows the plan to the jobs with these ids, and looks at nothing else. With
	// it, the runs that a schedule has started are stopped when it is deleted. Defaults to
	// all jobs.
	Only []string `json:"-"`
	// RequestID names the request of whoever wants the plan, who may make it several times:
	// all applies of plans with the same one start one run of a job that runs once.
	RequestID string `json:"-"`

	own ownOptions
}

// Plan compares. It changes nothing. Jobs that a busy server does not answer for are blocked,
// see [Change].Unread.
func (s *Syncer) Plan(ctx context.Context, declared []job.Job, options PlanOptions) (*Plan, error) {
	ids := map[string]bool{}
	for _, j := range declared {
		ids[j.ID] = true
	}
	if len(options.Only) > 0 {
		options.own = ownOptions{alone: true, only: options.Only}
	}
	c := &comparison{client: s.client, options: options}
	if err := c.read(ctx, declared); err != nil {
		return nil, err
	}
	changes := make([]Change, len(declared))
	if err := temporalclient.Each(len(declared), options.Parallel, func(i int) error {
		unread, err := c.looks.at(func() (err error) {
			changes[i], err = c.compare(ctx, declared[i])
			return err
		})
		if unread != nil {
			changes[i] = unreadChange(declared[i], unread)
		}
		return err
	}); err != nil {
		return nil, err
	}
	orphans, err := c.orphans(ctx, ids)
	if err = errors.Join(err, c.looks.err()); err != nil {
		return nil, err
	}
	changes = slices.Concat(changes, orphans)
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.JobID, b.JobID) })
	plan := &Plan{
		Namespace: s.client.Namespace(), Changes: changes,
		namespaceID: c.namespaceID, options: options, declared: declared, applied: c.applied,
	}
	plan.warn(time.Now())
	for _, foreign := range c.foreign {
		if !ids[foreign.JobID] {
			plan.Foreign = append(plan.Foreign, foreign.Name)
		}
	}
	return plan, plan.findUnrecorded()
}

// read reads what a comparison needs to know of all jobs.
func (c *comparison) read(ctx context.Context, declared []job.Job) (err error) {
	if c.namespaceID, err = c.client.Apply.NamespaceID(ctx); err != nil {
		return err
	}
	if c.applied, err = readApplied(ctx, c.client, c.options.Provider); err != nil {
		return err
	}
	var queues []string
	for _, j := range declared {
		if queue := j.Queue(); queue != "" {
			queues = append(queues, queue)
		}
	}
	if c.bindings, err = c.client.Workers.Bindings(ctx, declared); err != nil {
		return err
	}
	if c.options.own.alone && len(queues) == 0 && !c.mayWait() {
		return c.readOwn(ctx)
	}
	resources, err := c.client.Apply.Resources(ctx, queues)
	if err != nil {
		return err
	}
	c.live, c.unread, c.broken, c.foreign = resources.Jobs, resources.Unread, resources.Broken, resources.Foreign
	return nil
}

// comparison is one plan in the making.
type comparison struct {
	client  *client.Client
	options PlanOptions
	applied contract.AppliedState
	live    map[string]client.JobResources
	foreign []client.Foreign

	namespaceID string
	bindings    client.Bindings
	looks       looks
	// broken are queues whose items are not known, for another reason.
	broken map[string]error
	// unread are queues whose items are not known, since no worker answers.
	unread []string
}

// unreadChange is what a plan says of a job that could not be read.
func unreadChange(j job.Job, unread error) Change {
	return Change{
		Action: ActionBlocked, JobID: j.ID, Mode: j.Mode(), Note: "could not be read: " + unread.Error(), Unread: unread, job: j,
	}
}

func (c *comparison) compare(ctx context.Context, j job.Job) (Change, error) {
	change := Change{JobID: j.ID, Mode: j.Mode(), job: j}
	err := c.bindings.Check(j)
	if err != nil {
		change.Action, change.Note = ActionBlocked, err.Error()
		return change, nil //nolint:nilerr // The other jobs are compared.
	}
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
	if errors.Is(err, client.ErrNotOurs) {
		change.Action, change.Note, change.Taken = ActionBlocked, err.Error(), true
		return change, nil
	}
	if err != nil {
		return change, err
	}
	err = c.formerMode(ctx, &change)
	return change, err
}

// formerMode finds the resources of a job's former mode. It asks for each of them,
// since the lists lag behind.
func (c *comparison) formerMode(ctx context.Context, change *Change) error {
	if change.Mode != job.ModeRecurring {
		live, err := c.client.Jobs.LiveSchedule(ctx, change.JobID)
		if err != nil && !errors.Is(err, client.ErrNotOurs) {
			return err
		}
		if live != nil {
			version, err := scheduleVersion(live)
			if err != nil {
				return err
			}
			c.changesMode(change, live.Job, removal{resourceSchedule, version})
		}
	}
	if change.Mode == job.ModeRecurring {
		live, err := c.client.Jobs.LiveWorkflow(ctx, change.JobID)
		if err != nil && !errors.Is(err, client.ErrNotOurs) {
			return err
		}
		if live != nil && live.Workflow.Open() && live.Workflow.Type == contract.ContinuousJobType {
			c.changesMode(change, live.Job, removal{resourceLoop, workflowVersion(live)})
		}
	}
	if item := c.live[change.JobID].Waiting; item != nil && change.Mode != job.ModeQueued {
		change.queue, change.sequence = item.Job.Queue(), item.Sequence
		c.changesMode(change, item.Job, removal{resourceItem, itemVersion(item)})
	}
	return nil
}

// changesMode notes that a resource of the job's former mode is to be removed.
func (c *comparison) changesMode(change *Change, was job.Job, r removal) {
	switch {
	case change.removes(r.resource):
		return
	case was.Provider != c.options.Provider:
		change.blockedBy(was.Provider)
		return
	case change.Action == ActionBlocked:
		return // Nothing is removed as long as nothing takes its place.
	case change.Action == ActionUnchanged:
		change.Action = ActionUpdate
	}
	change.exists, change.before = true, &was
	change.replaces = append(change.replaces, r)
	change.Note = fmt.Sprintf("its mode changes to %s: its %s is removed", change.Mode, r.resource)
}

// blockedBy notes that the job's name belongs to a job of another provider.
func (change *Change) blockedBy(owner job.Provider) {
	change.Action, change.Fields, change.replaces, change.Taken = ActionBlocked, nil, nil, true
	change.Note = owner.HasID()
}

// isOurs notes that the job has a resource. It reports false, and blocks the change,
// if that is another provider's.
func (c *comparison) isOurs(change *Change, live *client.Live) bool {
	change.exists, change.before = true, &live.Job
	if live.Job.Provider == c.options.Provider {
		return true
	}
	change.exists = false
	change.blockedBy(live.Job.Provider)
	return false
}

func (c *comparison) compareRecurring(ctx context.Context, change *Change) error {
	live, err := c.client.Jobs.LiveSchedule(ctx, change.JobID)
	if err != nil {
		return err
	}
	if live == nil {
		change.Action = ActionCreate
		change.NextThen = nextStarts(change.job, time.Now(), nil)
		if over, err := hasNoStart(change.job, time.Now()); over || err != nil {
			// The server removes a schedule some days after its last start.
			change.Action, change.Note = ActionUnchanged, "has ended: it has no start left before its end_at"
			return err
		}
		return nil
	}
	if !c.isOurs(change, live) {
		return nil
	}
	wanted, err := scheduleOf(change.job)
	if err != nil {
		return err
	}
	if change.Version, err = scheduleVersion(live); err != nil {
		return err
	}
	edited, err := scheduleDrift(live, c.applied.Jobs[change.JobID])
	if err != nil {
		return err
	}
	change.Drifted = len(edited) > 0
	if err := change.compareTo(live, edits(live, wanted)); err != nil {
		return err
	}
	change.keepPause(live, c.options.ResetPauses)
	change.starts(live, time.Now())
	return nil
}

// keepPause notes that a job is paused or resumed by hand, and makes that a change
// if pauses are reset. A job that has paused itself goes on when its definition
// changes, and not before.
func (change *Change) keepPause(live *client.Live, reset bool) {
	declared := change.job.Options.Paused
	if live.Paused == declared {
		return
	}
	change.Note = "resumed by hand, though it is declared as paused"
	if live.Paused {
		change.Note = "paused: " + live.PauseText()
	}
	changes := live.Job.Options.Paused != declared // With the definition, either way.
	failed := live.PausedItself
	if failed && change.Action == ActionUpdate && !changes {
		change.Note += "; goes on with its new definition"
	}
	if !reset || changes || failed {
		return
	}
	change.Action, change.setPause = ActionUpdate, true
	change.Fields = append(change.Fields, Field{
		Path: "paused", Old: strconv.FormatBool(live.Paused), New: strconv.FormatBool(declared),
	})
}

func (c *comparison) compareContinuous(ctx context.Context, change *Change) error {
	live, err := c.client.Jobs.LiveWorkflow(ctx, change.JobID)
	if err != nil {
		return err
	}
	change.Version = workflowVersion(live)
	switch {
	case live == nil:
		change.Action = ActionCreate
		return nil
	case live.Workflow.Type != contract.ContinuousJobType && live.Workflow.Open():
		change.Action, change.Note = ActionBlocked, "a run of its old definition is under way; apply again when it has ended"
		return nil
	case !live.Workflow.Open():
		change.Action = ActionCreate
		change.Note = "was stopped before; starts again"
		return nil
	}
	if !c.isOurs(change, live) {
		return nil
	}
	if err := change.compareTo(live, nil); err != nil {
		return err
	}
	change.keepPause(live, c.options.ResetPauses)
	return nil
}

func (c *comparison) compareOneShot(ctx context.Context, change *Change) error {
	live, err := c.client.Jobs.LiveWorkflow(ctx, change.JobID)
	if err != nil {
		return err
	}
	change.Version = workflowVersion(live)
	switch {
	case live != nil && live.Workflow.Open() && live.Job.Provider != c.options.Provider:
		change.blockedBy(live.Job.Provider)
		return nil
	case live != nil && live.Workflow.Type == contract.RunJobType:
		err = change.compareTo(live, nil)
	case live == nil && c.ranBefore(change.job):
		change.Action, change.inSync = ActionUnchanged, true
	default:
		change.Action = ActionCreate
		if live != nil && live.Workflow.Open() {
			c.changesMode(change, live.Job, removal{resourceLoop, workflowVersion(live)})
		}
	}
	waits := live != nil && live.Workflow.Open() && live.Workflow.Begins.After(time.Now())
	if waits && change.Action == ActionUnchanged {
		change.Note = "waits until " + live.Workflow.Begins.UTC().Format(time.RFC3339)
	}
	if waits && change.Action == ActionUpdate {
		change.waiting = live.Workflow.RunID
	} else if change.Action == ActionUpdate && live.Workflow.Open() {
		change.Action, change.Note = ActionBlocked, "its run with the old spec is under way; apply again when it has ended"
	}
	if change.Action != ActionUnchanged && change.Action != ActionBlocked && change.job.Options.Paused {
		change.Action, change.Fields = ActionUnchanged, nil
		if len(change.replaces) > 0 {
			change.Action = ActionUpdate // The resource of its former mode goes.
		} else {
			change.Note = pausedInDefinition
		}
	}
	return err
}

// ranBefore reports whether a job that runs once was applied, so long ago that Temporal
// has forgotten its run.
func (c *comparison) ranBefore(j job.Job) bool {
	before, ok := c.applied.Jobs[j.ID]
	hash, err := j.DefinitionHash()
	return ok && err == nil && before.Hash == hash && (before.Mode == job.ModeOneShot || before.Mode == job.ModeQueued)
}

func (c *comparison) compareQueued(ctx context.Context, change *Change) error {
	hash, err := change.job.DefinitionHash()
	if err != nil {
		return err
	}
	if slices.Contains(c.unread, change.job.Queue()) {
		return fmt.Errorf("job %s: what waits in queue %s is not known: %w", change.JobID, change.job.Queue(), client.ErrNoWorker)
	}
	if err := c.broken[change.job.Queue()]; err != nil {
		change.Action, change.Note = ActionBlocked, fmt.Sprintf("what waits in queue %s is not known: %s", change.job.Queue(), err)
		return nil
	}
	item := c.live[change.JobID].Waiting
	if item == nil {
		return c.compareOneShot(ctx, change)
	}
	if item.Job.Provider != c.options.Provider {
		change.blockedBy(item.Job.Provider)
		return nil
	}
	waiting, err := item.Job.DefinitionHash()
	if err != nil {
		return err
	}
	change.Action, change.Note = ActionUnchanged, fmt.Sprintf("waits in queue %s", item.Job.Queue())
	change.Version, change.exists = itemVersion(item), true
	if change.job.Options.Paused {
		change.Action, change.queue, change.sequence = ActionUpdate, item.Job.Queue(), item.Sequence
		change.replaces = append(change.replaces, removal{resourceItem, itemVersion(item)})
		change.Note = pausedInDefinition + ": it is taken out of queue " + item.Job.Queue()
		return nil
	}
	if waiting != hash || item.Job.Queue() != change.job.Queue() {
		change.Action, change.queue, change.sequence = ActionUpdate, item.Job.Queue(), item.Sequence
		change.replaces = append(change.replaces, removal{resourceItem, itemVersion(item)})
		change.Fields, err = diff(item.Job, change.job)
		return err
	}
	change.inSync = true
	differences, err := diff(item.Job, change.job)
	if len(differences) > 0 {
		// Put in again it would lose its place.
		change.Note += " with the options that it was put in with, of which " + differences[0].Path + " differs"
	}
	return err
}

// compareTo decides between update and unchanged for a job with a live state.
func (change *Change) compareTo(live *client.Live, edits []Field) error {
	wanted, err := change.job.DefinitionHash()
	if err != nil {
		return err
	}
	// The hash attribute may not be that of the input: people edit inputs.
	inForce, err := live.Job.DefinitionHash()
	if err != nil {
		return err
	}
	change.liveHash = live.DefinitionHash
	if live.DefinitionHash == wanted && inForce == wanted && len(edits) == 0 {
		change.Action, change.inSync = ActionUnchanged, true
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
