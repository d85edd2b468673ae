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
	"github.com/dendrascience/dendra-jobs/job"
)

// LiveState says what stands in Temporal for a job until someone removes it.
type LiveState struct {
	Provider job.Provider
	Schedule bool // a schedule
	Loop     bool // the open workflow of a continuous job
	// Waiting is an item that has not started, in the queue of its definition.
	Waiting *contract.QueueItem
}

// Survey is what stands in a namespace.
type Survey struct {
	// Jobs says what stands for which job id.
	Jobs map[string]LiveState
	// Foreign are schedules and open workflows that are named like ours and do
	// not carry our marks, by name.
	Foreign []Foreign
	// Unread are the queues whose items nobody can tell since no worker answers.
	Unread []string
	// Broken are the queues whose items nobody can tell for another reason.
	Broken map[string]error
}

// Foreign is something that is named like ours and is not.
type Foreign struct {
	JobID string // the job that would bear the name
	Name  string // "schedule job/x"
}

// Survey lists what stands. Besides the queues that are listed it asks the given
// ones. The lists behind it lag by about a second: confirm with LiveSchedule or
// LiveWorkflow before acting on a schedule or loop.
func (c *JobClient) Survey(ctx context.Context, queues []string) (*Survey, error) {
	survey := &Survey{Jobs: map[string]LiveState{}, Broken: map[string]error{}}
	for _, look := range []func(context.Context) error{survey.schedules(c.conn), survey.loops(c.conn), survey.foreignWorkflows(c.conn)} {
		if err := look(ctx); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(survey.Foreign, func(a, b Foreign) int { return strings.Compare(a.Name, b.Name) })
	listed, err := c.queueNames(ctx)
	if err != nil {
		return nil, err
	}
	names := slices.Concat(listed, queues)
	slices.Sort(names)
	return survey, c.waitingStates(ctx, slices.Compact(names), survey)
}

func (s *Survey) schedules(c *conn) func(context.Context) error {
	return func(ctx context.Context) error {
		return c.listSchedules(ctx, func(entry *schedulepb.ScheduleListEntry) {
			id, named := contract.JobIDOfSchedule(entry.GetScheduleId())
			switch {
			case !named:
			case Attribute(entry.GetSearchAttributes(), contract.AttributeJobID.GetName()) != id:
				s.Foreign = append(s.Foreign, Foreign{JobID: id, Name: "schedule " + entry.GetScheduleId()})
			default:
				s.Jobs[id] = LiveState{
					Provider: job.Provider(Attribute(entry.GetSearchAttributes(), contract.AttributeProvider.GetName())),
					Schedule: true,
				}
			}
		})
	}
}

func (s *Survey) loops(c *conn) func(context.Context) error {
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", contract.ContinuousJobType)
	return func(ctx context.Context) error {
		return c.listWorkflows(ctx, query, 0, func(info *workflowpb.WorkflowExecutionInfo) {
			run := newRun(info)
			if run.WorkflowID != contract.JobWorkflowID(run.JobID) {
				return // Not ours.
			}
			standing := s.Jobs[run.JobID]
			standing.Loop = true
			standing.Provider = job.Provider(Attribute(info.GetSearchAttributes(), contract.AttributeProvider.GetName()))
			s.Jobs[run.JobID] = standing
		})
	}
}

func (s *Survey) foreignWorkflows(c *conn) func(context.Context) error {
	query := fmt.Sprintf("WorkflowId STARTS_WITH %s AND %s IS NULL AND ExecutionStatus = 'Running'",
		quote(contract.JobWorkflowID("")), contract.AttributeJobID.GetName())
	return func(ctx context.Context) error {
		return c.listWorkflows(ctx, query, maxForeign, func(info *workflowpb.WorkflowExecutionInfo) {
			id := info.GetExecution().GetWorkflowId()
			jobID, _ := strings.CutPrefix(id, contract.JobWorkflowID(""))
			s.Foreign = append(s.Foreign, Foreign{JobID: jobID, Name: "workflow " + id})
		})
	}
}

// maxForeign bounds the foreign workflows that are listed: a foreign schedule
// under a name of ours may start any number.
const maxForeign = 100

// waitingStates adds what waits in queues. After the first that no worker answers
// for, the others are not asked: they have the same workers.
func (c *conn) waitingStates(ctx context.Context, names []string, survey *Survey) error {
	for i, name := range names {
		state, err := c.queues().State(ctx, name)
		if err == nil {
			err = c.eachWaiting(ctx, state, 0, func(item contract.QueueItem) bool {
				s := survey.Jobs[item.Job.ID]
				if s.Waiting == nil { // Later ones are its repeats.
					s.Waiting = &item
				}
				if s.Provider == "" {
					s.Provider = item.Job.Provider
				}
				survey.Jobs[item.Job.ID] = s
				return true
			})
		}
		switch {
		case err == nil, errors.Is(err, ErrNotFound):
		case errors.Is(err, ErrNoWorker):
			survey.Unread = names[i:]
			return nil
		case ctx.Err() != nil || isGone(err):
			return err
		default:
			survey.Broken[name] = err // One queue's trouble is not that of the others.
		}
	}
	return nil
}
