package schedules

import (
	"fmt"

	"github.com/dendrascience/dendra-jobs/job"
)

// Action is what apply does with a job.
type Action string

// The actions.
const (
	ActionCreate    Action = "create"
	ActionUpdate    Action = "update"
	ActionDelete    Action = "delete"
	ActionBlocked   Action = "blocked" // something that is not ours holds its name
	ActionUnchanged Action = "unchanged"
	ActionOrphaned  Action = "orphaned" // no longer declared; deleted only on request
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

	// job is the definition to bring about, or to delete.
	job job.Job
	// replaces are things under the same id to remove first.
	replaces []thing
	// queue is where the item waits that is to be removed.
	queue string
}

// thing is what stands for a job in Temporal until it is removed.
type thing string

const (
	thingSchedule thing = "schedule"
	thingLoop     thing = "loop"
	thingItem     thing = "queue item"
)

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

// Empty says that apply would do nothing.
func (p *Plan) Empty() bool { return len(p.work()) == 0 }

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
