package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	schedulepb "go.temporal.io/api/schedule/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Visibility queries for what a list of jobs is made of besides schedules.
var (
	// unscheduled finds the workflows of the jobs that have no schedule.
	unscheduled = fmt.Sprintf("WorkflowType = '%s' OR (WorkflowType = '%s' AND JobMode IN ('%s', '%s'))",
		contract.ContinuousJobType, contract.RunJobType, job.ModeOneShot, job.ModeQueued)
	// openLoops finds the continuous jobs that have not been stopped.
	openLoops = fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", contract.ContinuousJobType)
	// openScheduledRuns finds the runs under way of recurring jobs: schedules learn late how a run
	// has ended.
	openScheduledRuns = fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND %s = '%s'",
		contract.RunJobType, contract.AttributeJobMode.GetName(), job.ModeRecurring)
)

// scan reads what lists know of the jobs that match some terms of a visibility query: their
// schedules, and those of their workflows that another query finds. Failures of recurring
// jobs take another list.
func (c *conn) scan(ctx context.Context, terms, workflows string, failures bool) (map[string]*Facts, error) {
	jobs, latest, err := c.scanSchedules(ctx, terms)
	if err != nil {
		return nil, err
	}
	if failures {
		failing, err := c.failing(ctx, latest, func(run SeenRun) {
			if jobs[run.JobID] != nil {
				jobs[run.JobID].see(run.Run)
			}
		})
		if err != nil {
			return nil, err
		}
		for id, f := range failing {
			jobs[id].Failing = f
		}
	}
	if terms != "" {
		workflows = "(" + workflows + ") AND " + terms
	}
	return jobs, c.listWorkflows(ctx, workflows, 0, func(info *workflowpb.WorkflowExecutionInfo) {
		if run := newSeenRun(info); run.JobID != "" {
			addRun(jobs, run)
		}
	})
}

// addRun notes a run, or the workflow of a continuous job.
func addRun(jobs map[string]*Facts, run SeenRun) {
	known := jobs[run.JobID]
	switch {
	case run.Own && (known == nil || known.Schedule == nil && (known.Own == nil || known.Own.Opened.Before(run.Opened))):
		facts := run.Facts()
		jobs[run.JobID] = &facts
	case run.Own || run.Mode != job.ModeRecurring || !run.Status.Open():
	case known == nil:
		facts := run.job()
		facts.see(run.Run)
		jobs[run.JobID] = &facts
	default:
		if known.see(run.Run); known.Run.RunRef == run.RunRef { // Lists of schedules have no definitions.
			known.Bind = run.job().Bind
		}
	}
}

// scanSchedules reads the recurring jobs that match some terms of a visibility query, and
// their latest runs.
func (c *conn) scanSchedules(ctx context.Context, terms string) (map[string]*Facts, latestRuns, error) {
	jobs, latest := map[string]*Facts{}, latestRuns{}
	return jobs, latest, c.listSchedules(ctx, terms, func(entry *schedulepb.ScheduleListEntry) {
		if facts, ours := scheduled(entry); ours {
			jobs[facts.ID] = &facts
			latest.add(facts.ID, facts.DefinitionHash, entry.GetInfo().GetRecentActions())
		}
	})
}

// listSchedules goes through the schedules that a visibility query finds, ours or not; ""
// finds all.
func (c *conn) listSchedules(ctx context.Context, query string, visit func(*schedulepb.ScheduleListEntry)) error {
	request := &workflowservice.ListSchedulesRequest{Namespace: c.namespace, MaximumPageSize: 1000, Query: query}
	for {
		response, err := read(ctx, c, c.temporal.WorkflowService().ListSchedules, request)
		if err != nil {
			return fmt.Errorf("list schedules: %w", err)
		}
		for _, entry := range response.GetSchedules() {
			visit(entry)
		}
		if request.NextPageToken = response.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

// scheduled reports false for a schedule that is not ours.
func scheduled(entry *schedulepb.ScheduleListEntry) (Facts, bool) {
	get := func(name string) string { return temporalclient.Attribute(entry.GetSearchAttributes(), name) }
	id, named := contract.JobIDOfSchedule(entry.GetScheduleId())
	if !named || get(contract.AttributeJobID.GetName()) != id {
		return Facts{}, false
	}
	info := entry.GetInfo()
	schedule := &ScheduleFacts{Paused: info.GetPaused()}
	schedule.PauseReason, schedule.PauseEnd = contract.PauseOf(info.GetNotes(), get(contract.AttributePauseEnd.GetName()))
	for _, at := range info.GetFutureActionTimes() {
		schedule.Next = append(schedule.Next, at.AsTime())
	}
	facts := Facts{
		ID: id, Type: get(contract.AttributeJobType.GetName()), Mode: job.ModeRecurring,
		Owner: get(contract.AttributeOwner.GetName()), Provider: job.Provider(get(contract.AttributeProvider.GetName())),
		DefinitionHash: get(contract.AttributeDefinitionHash.GetName()), Schedule: schedule,
	}
	facts.addStarts(info.GetRecentActions())
	return facts, true
}

// addStarts notes the latest starts of a schedule, as far as it knows of their runs.
func (f *Facts) addStarts(actions []*schedulepb.ScheduleActionResult) {
	for _, action := range actions {
		run := action.GetStartWorkflowResult()
		f.Schedule.LastStart, f.Schedule.LastRun = action.GetActualTime().AsTime(), RunRef{WorkflowID: run.GetWorkflowId(), RunID: run.GetRunId()}
		if action.GetStartWorkflowStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			f.see(Run{Status: RunCompleted, Started: f.Schedule.LastStart})
		}
	}
}

// WaitingFacts are those of a job of which an item waits in a queue, and nothing else is
// known.
func WaitingFacts(queue string, item contract.QueueItem) Facts {
	j := item.Job
	return Facts{
		ID: j.ID, Type: j.Type, Mode: job.ModeQueued, Queue: queue, Owner: j.Options.Owner.String(), Provider: j.Provider,
		Tags: j.Options.Tags, Bind: j.Options.Bind, Waits: true,
	}
}

// Wait notes an item of the job that waits in a queue. The job is that of the item, unless
// a run or a schedule of it is there.
func (f *Facts) Wait(queue string, item contract.QueueItem) {
	switch {
	case f.Waits: // Another one is a repeat.
	case f.Schedule != nil || f.Own != nil && f.Own.Status.Open():
		f.Waits = true
	default:
		own := f.Own
		*f = WaitingFacts(queue, item)
		f.Own = own
	}
}

// addWaiting adds the items that wait in queues. It names the queues that cannot be read.
func (c *conn) addWaiting(ctx context.Context, jobs map[string]*Facts) (unread []string, _ error) {
	names, err := c.queues().Names(ctx)
	if err != nil {
		return nil, err
	}
	unanswered, err := c.eachWaitingIn(ctx, names, func(queue string, item contract.QueueItem) bool {
		if jobs[item.Job.ID] == nil {
			jobs[item.Job.ID] = &Facts{}
		}
		jobs[item.Job.ID].Wait(queue, item)
		return true
	})
	for _, queue := range unanswered {
		unread = append(unread, queue.Name)
	}
	return unread, err
}

// MaxLooks bounds the jobs under way that are looked at one by one for a list: the first
// ones by id.
const MaxLooks = 100

// lookAtOpen looks at the runs under way.
func (c *conn) lookAtOpen(ctx context.Context, jobs map[string]*Facts) error {
	now := time.Now()
	var open []*Facts
	for _, id := range slices.Sorted(maps.Keys(jobs)) {
		if _, ok := jobs[id].UnderWay(now); ok && len(open) < MaxLooks {
			open = append(open, jobs[id])
		}
	}
	return temporalclient.Each(len(open), 0, func(n int) (err error) {
		at, _ := open[n].UnderWay(now)
		open[n].Look, err = c.lookAt(ctx, at)
		return err
	})
}

// LookAt looks at a run under way, or at the workflow of a continuous job.
func (c *JobClient) LookAt(ctx context.Context, at RunRef) (*Look, error) { return c.lookAt(ctx, at) }

func (c *conn) lookAt(ctx context.Context, at RunRef) (*Look, error) {
	response, err := c.temporal.DescribeWorkflowExecution(ctx, at.WorkflowID, at.RunID)
	switch {
	case isNotFound(err):
		return &Look{Ended: true}, nil // Its history was deleted since.
	case err != nil:
		return nil, fmt.Errorf("describe workflow %s: %w", at.WorkflowID, ofServer(ctx, err))
	}
	return lookOf(response), nil
}

// lookOf reads the description of a workflow.
func lookOf(response *workflowservice.DescribeWorkflowExecutionResponse) *Look {
	info := response.GetWorkflowExecutionInfo()
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return &Look{Ended: true}
	}
	detail := RunDetail{Run: Run{Status: RunRunning}}
	if j, ok := temporalclient.MemoDefinition(info.GetMemo()); ok {
		detail.Job = &j
	}
	detail.addPending(response)
	look := &Look{
		Canceling: detail.Status == RunCanceling, WaitReason: detail.WaitReason,
		Taken:      detail.Attempts > 0 && detail.WaitReason == "" && detail.NextAttempt.IsZero(),
		Progresses: detail.Progress != nil && detail.Progress.Done > 0,
	}
	if detail.LastClass == errclass.TeardownBlocked && !detail.NextAttempt.IsZero() {
		look.Blocked = &contract.Failing{Failing: true, Failures: detail.Attempts - 1, Class: detail.LastClass, Error: detail.LastError}
	}
	return look
}
