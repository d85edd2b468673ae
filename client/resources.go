package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	schedulepb "go.temporal.io/api/schedule/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// JobResources is what Temporal holds for a job until someone removes it.
type JobResources struct {
	Provider job.Provider
	Schedule bool // a schedule
	Loop     bool // the open workflow of a continuous job
	// Waiting is an item that has not started, in the queue of its definition.
	Waiting *contract.QueueItem
}

// Resources are the resources of all jobs of a namespace.
type Resources struct {
	// Jobs are those of each job, by id.
	Jobs map[string]JobResources
	// Foreign are schedules and open workflows that have names of ours and not our
	// search attributes, by name.
	Foreign []Foreign
	// Unread are the queues whose items are not known since no worker answers.
	Unread []string
	// Broken are the queues whose items are not known for another reason.
	Broken map[string]error
}

// Foreign is something that has a name of ours and is not ours.
type Foreign struct {
	JobID string // the job that would have the name
	Name  string // "schedule job/x"
}

// Resources lists the resources of all jobs. Besides the queues that are listed it asks
// the given ones. The lists behind it lag by about a second: confirm with LiveSchedule or
// LiveWorkflow before acting on a schedule or workflow.
func (c *ApplyClient) Resources(ctx context.Context, queues []string) (*Resources, error) {
	found := &Resources{Jobs: map[string]JobResources{}, Broken: map[string]error{}}
	for _, add := range []func(context.Context, *conn) error{found.addSchedules, found.addLoops, found.addForeignWorkflows} {
		if err := add(ctx, c.conn); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found.Foreign, func(a, b Foreign) int { return strings.Compare(a.Name, b.Name) })
	listed, err := c.queues().Names(ctx)
	if err != nil {
		return nil, err
	}
	names := slices.Concat(listed, queues)
	slices.Sort(names)
	return found, found.addWaiting(ctx, c.conn, slices.Compact(names))
}

func (r *Resources) addSchedules(ctx context.Context, c *conn) error {
	return c.listSchedules(ctx, "", func(entry *schedulepb.ScheduleListEntry) {
		id, named := contract.JobIDOfSchedule(entry.GetScheduleId())
		switch {
		case !named:
		case temporalclient.Attribute(entry.GetSearchAttributes(), contract.AttributeJobID.GetName()) != id:
			r.Foreign = append(r.Foreign, Foreign{JobID: id, Name: "schedule " + entry.GetScheduleId()})
		default:
			r.Jobs[id] = JobResources{
				Provider: job.Provider(temporalclient.Attribute(entry.GetSearchAttributes(), contract.AttributeProvider.GetName())),
				Schedule: true,
			}
		}
	})
}

func (r *Resources) addLoops(ctx context.Context, c *conn) error {
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", contract.ContinuousJobType)
	return c.listWorkflows(ctx, query, 0, func(info *workflowpb.WorkflowExecutionInfo) {
		run := newRun(info)
		if run.WorkflowID != contract.JobWorkflowID(run.JobID) {
			return // Not ours.
		}
		of := r.Jobs[run.JobID]
		of.Loop = true
		of.Provider = job.Provider(temporalclient.Attribute(info.GetSearchAttributes(), contract.AttributeProvider.GetName()))
		r.Jobs[run.JobID] = of
	})
}

// maxForeign bounds the foreign workflows that are listed: a foreign schedule
// under a name of ours may start any number.
const maxForeign = 100

func (r *Resources) addForeignWorkflows(ctx context.Context, c *conn) error {
	query := fmt.Sprintf("WorkflowId STARTS_WITH %s AND %s IS NULL AND ExecutionStatus = 'Running'",
		quote(contract.JobWorkflowID("")), contract.AttributeJobID.GetName())
	return c.listWorkflows(ctx, query, maxForeign, func(info *workflowpb.WorkflowExecutionInfo) {
		id := info.GetExecution().GetWorkflowId()
		jobID, _ := strings.CutPrefix(id, contract.JobWorkflowID(""))
		r.Foreign = append(r.Foreign, Foreign{JobID: jobID, Name: "workflow " + id})
	})
}

// addWaiting adds what waits in queues.
func (r *Resources) addWaiting(ctx context.Context, c *conn, queues []string) error {
	unread, err := c.eachWaitingIn(ctx, queues, func(_ string, item contract.QueueItem) bool {
		of := r.Jobs[item.Job.ID]
		if of.Waiting == nil { // Later ones are its repeats.
			of.Waiting = &item
		}
		if of.Provider == "" {
			of.Provider = item.Job.Provider
		}
		r.Jobs[item.Job.ID] = of
		return true
	})
	for _, queue := range unread {
		if errors.Is(queue.Err, ErrNoWorker) {
			r.Unread = append(r.Unread, queue.Name)
		} else {
			r.Broken[queue.Name] = queue.Err
		}
	}
	return err
}
