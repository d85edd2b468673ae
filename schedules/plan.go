package schedules

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// Action is what apply does with a job.
type Action = job.Action

// The actions.
const (
	ActionCreate    = job.ActionCreate
	ActionUpdate    = job.ActionUpdate
	ActionDelete    = job.ActionDelete
	ActionBlocked   = job.ActionBlocked // something that is not ours holds its name, or its state is not known
	ActionUnchanged = Action("unchanged")
	ActionOrphaned  = Action("orphaned") // no longer declared; deleted only on request
)

// Change is what a plan says of one job.
type Change struct {
	Action Action   `json:"action"`
	JobID  string   `json:"job_id"`
	Mode   job.Mode `json:"mode"`
	// Fields are what an update changes.
	Fields []Field `json:"fields,omitempty"`
	// Note says what people should know: why a job is blocked, or is paused.
	Note string `json:"note,omitempty"`
	// Drifted says that the live state is not what was applied last.
	Drifted bool `json:"drifted,omitempty"`
	// NextNow and NextThen are the next starts of a recurring job that changes, as
	// it is live and as it will be, jitter aside. None where there is no schedule,
	// or where it starts nothing.
	NextNow  []time.Time `json:"next_now,omitempty"`
	NextThen []time.Time `json:"next_then,omitempty"`
	// Version names the live state; "" if there is none. Apply leaves a job alone
	// whose live state has another version by then.
	Version string `json:"version,omitempty"`
	// Taken says of a blocked job that a job of another provider, or something that is no
	// job of this system, has its id.
	Taken bool `json:"-"`
	// Unread says of a blocked job why its state is not known: a busy server did not answer.
	Unread error `json:"-"`

	// job is the definition to bring about. Of one to delete it has the id alone.
	job job.Job
	// before is the definition in force, nil if there is none.
	before *job.Job
	// replaces are resources under the same id to remove first.
	replaces []removal
	// exists says that the job has a resource in Temporal that a prune would remove:
	// a schedule, an open loop, or an item that waits.
	exists bool
	// inSync says that the live state, or what ran, is what is declared.
	inSync bool
	// queue is where the item waits that is to be removed.
	queue string
	// sequence is its number there: another item of the job is not meant.
	sequence int64
	// liveHash is the definition hash of the live state.
	liveHash string
	// waiting is the run id of a run that waits for its time and gives way.
	waiting string
	// setPause makes the job paused, or not, as its definition says.
	setPause bool
}

// Definitions are those of the job before and after the change, nil where there is none.
func (change *Change) Definitions() (before, after *job.Job) {
	if change.Action == ActionDelete {
		return change.before, nil
	}
	return change.before, &change.job
}

// resource is what a job has in Temporal until it is removed.
type resource string

const (
	resourceSchedule resource = "schedule"
	resourceLoop     resource = "loop"
	resourceItem     resource = "queue item"
)

// removal is a resource to remove, and the version of it that is meant.
type removal struct {
	resource resource
	version  string
}

// removes reports whether the change removes such a resource.
func (change *Change) removes(of resource) bool {
	return slices.ContainsFunc(change.replaces, func(r removal) bool { return r.resource == of })
}

// Field is one changed value, written as JSON; "" where there is none.
type Field struct {
	Path string `json:"path"` // recurring.recur_every
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// Plan is the difference between the declared jobs and what Temporal has.
type Plan struct {
	// Namespace is where the plan holds.
	Namespace string `json:"namespace"`
	// Changes are ordered by job id.
	Changes []Change `json:"changes"`
	// Foreign are schedules and workflows under names of ours that are not ours,
	// of no declared job. They are left alone.
	Foreign []string `json:"foreign,omitempty"`
	// Warnings are about jobs that change.
	Warnings []Warning `json:"warnings,omitempty"`

	options     PlanOptions
	namespaceID string
	declared    []job.Job
	// applied is what was applied before, and unrecorded what is in sync without
	// being part of it.
	applied    contract.AppliedState
	unrecorded contract.AppliedRecord
}

// Count says how many jobs the plan has the action for.
func (p *Plan) Count(action Action) int {
	n := 0
	for _, c := range p.Changes {
		if c.Action == action {
			n++
		}
	}
	return n
}

// Empty reports whether apply would do nothing.
func (p *Plan) Empty() bool { return len(p.work()) == 0 }

// warn adds the warnings about jobs that change.
func (p *Plan) warn(now time.Time) {
	changing := map[string]bool{}
	for _, change := range p.Changes {
		if change.Action == ActionCreate || change.Action == ActionUpdate {
			changing[change.JobID] = true
		}
	}
	if len(changing) == 0 {
		return
	}
	for _, warning := range Warnings(p.declared, now) {
		if changing[warning.JobID] {
			p.Warnings = append(p.Warnings, warning)
		}
	}
}

// Recorded reports whether what the plan leaves as it is, is known to be applied.
func (p *Plan) Recorded() bool {
	return p.unrecorded.Empty()
}

// Fingerprint changes with what the plan would do and with what it has found.
func (p *Plan) Fingerprint() string {
	sum := sha256.Sum256(job.EncodeJSON(p.found()))
	return hex.EncodeToString(sum[:8])
}

// Fingerprint changes with what the plan found of the job and makes of it.
func (change *Change) Fingerprint() string {
	sum := sha256.Sum256(job.EncodeJSON(change.found()))
	return hex.EncodeToString(sum[:8])
}

// NamespaceID distinguishes namespaces of the same name on several clusters.
func (p *Plan) NamespaceID() string { return p.namespaceID }

// CheckPrune refuses a plan that deletes more than a fifth of the provider's live
// jobs, or all of them, unless that was asked for. Jobs without a resource, such as
// those that ran once, do not count.
func (p *Plan) CheckPrune() error {
	deletes, live := p.Count(ActionDelete), 0
	for _, change := range p.Changes {
		if change.exists || change.Action == ActionDelete {
			live++
		}
	}
	if deletes == 0 || p.options.AllowMassPrune || deletes < live && deletes*5 <= live {
		return nil
	}
	return fmt.Errorf("%w: it would delete %d of %d jobs", ErrMassPrune, deletes, live)
}

// ErrMassPrune says that a plan deletes more than is done without asking twice.
var ErrMassPrune = errors.New("the plan deletes more than a fifth of the live jobs")

// work are the changes that apply carries out.
func (p *Plan) work() []Change {
	var work []Change
	for _, c := range p.Changes {
		switch c.Action {
		case ActionCreate, ActionUpdate, ActionDelete:
			work = append(work, c)
		case ActionBlocked, ActionUnchanged, ActionOrphaned:
		}
	}
	return work
}

// Total is the plan in one line.
func (p *Plan) Total() string {
	return fmt.Sprintf("%d to create, %d to update, %d to delete, %d blocked, %d unchanged, %d no longer declared",
		p.Count(ActionCreate), p.Count(ActionUpdate), p.Count(ActionDelete), p.Count(ActionBlocked),
		p.Count(ActionUnchanged), p.Count(ActionOrphaned))
}
