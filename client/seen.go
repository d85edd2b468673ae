package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// SeenRun is a run, or the workflow of a continuous job, with all that a list of
// workflows says of it and of its job.
type SeenRun struct {
	Run
	Provider       job.Provider
	DefinitionHash string
	// Opened and Closed are the times that ScanSince compares. Closed is zero of a run
	// that has not ended.
	Opened time.Time
	Closed time.Time
	// Loop says that it is the workflow of a continuous job, and ContinuedAsNew that
	// another one goes on with the job.
	Loop           bool
	ContinuedAsNew bool
	// Own says that the workflow bears the id of the job: its status is the job's.
	Own bool
	// Left are the failures in a row that an ended run of a recurring job has left, or
	// those of a continuous job; nil if there are none.
	Left *contract.Failing

	info *workflowpb.WorkflowExecutionInfo
}

// Definition is the definition that the run was started with.
func (s *SeenRun) Definition() (job.Job, bool) {
	return temporalclient.MemoDefinition(s.info.GetMemo())
}

// Forget releases what Definition and Facts read.
func (s *SeenRun) Forget() { s.info = nil }

// Facts are those of the job of a run that is its own.
func (s *SeenRun) Facts() Facts {
	facts := s.job()
	memo := s.info.GetMemo()
	facts.Own = &OwnFacts{Run: s.Run, Opened: s.Opened, Pause: pauseOf(memo)}
	if !temporalclient.MemoField(memo, contract.MemoStopped, &facts.Own.Stopped) {
		facts.Own.Stopped = contract.Stopped{}
	}
	if j, ok := s.Definition(); ok {
		facts.Tags = j.Options.Tags
	}
	if s.Loop {
		facts.Failing = s.Left
	}
	return facts
}

// job says what job the run is of.
func (s *SeenRun) job() Facts {
	return Facts{
		ID: s.JobID, Type: s.Type, Mode: s.Mode, Queue: s.Queue, Owner: s.Owner, Provider: s.Provider, DefinitionHash: s.DefinitionHash,
	}
}

func (s *SeenRun) underWay() *RunFacts { return &RunFacts{RunRef: s.RunRef, Started: s.Started} }

// Pauses says whether people had paused the schedule of the run's job at a time, as far
// as the run knows.
func (s *SeenRun) Pauses() Pauses { return Pauses{pausesIn(s.info.GetMemo())} }

// Pauses are times in which a schedule was paused.
type Pauses struct{ spans []pauseSpan }

// Cover says that the schedule was paused at a time.
func (p Pauses) Cover(at time.Time) bool {
	for _, span := range p.spans {
		if span.covers(at) {
			return true
		}
	}
	return false
}

func newSeenRun(info *workflowpb.WorkflowExecutionInfo) SeenRun {
	seen := SeenRun{
		Run:            newRun(info),
		Provider:       job.Provider(temporalclient.Attribute(info.GetSearchAttributes(), contract.AttributeProvider.GetName())),
		DefinitionHash: temporalclient.Attribute(info.GetSearchAttributes(), contract.AttributeDefinitionHash.GetName()),
		Opened:         info.GetStartTime().AsTime(),
		Loop:           info.GetType().GetName() == contract.ContinuousJobType,
		ContinuedAsNew: info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW,
		info:           info,
	}
	if closed := info.GetCloseTime(); closed != nil {
		seen.Closed = closed.AsTime()
	}
	seen.Own = seen.WorkflowID == contract.JobWorkflowID(seen.JobID)
	if seen.Loop {
		seen.Left = failingLoop(info.GetMemo())
	} else {
		seen.Left = failingEnd(info, seen.DefinitionHash)
	}
	return seen
}

// jobWorkflows are the workflows that are runs or continuous jobs.
var jobWorkflows = fmt.Sprintf("WorkflowType IN ('%s', '%s')", contract.RunJobType, contract.ContinuousJobType)

// ScanSince goes through the runs and continuous jobs that have started or ended since a
// time of Temporal's clock, and through all continuous jobs that have not ended: their
// memos change without that.
func (c *RunClient) ScanSince(ctx context.Context, since time.Time, visit func(SeenRun)) error {
	at := quote(since.UTC().Format(time.RFC3339Nano))
	return c.scan(ctx, fmt.Sprintf("%s AND (StartTime >= %s OR CloseTime >= %s OR (WorkflowType = '%s' AND ExecutionStatus = 'Running'))",
		jobWorkflows, at, at, contract.ContinuousJobType), 0, visit)
}

// ScanOpen goes through the runs and continuous jobs that have not ended.
func (c *RunClient) ScanOpen(ctx context.Context, visit func(SeenRun)) error {
	return c.scan(ctx, jobWorkflows+" AND ExecutionStatus = 'Running'", 0, visit)
}

// ScanEnded goes through the runs and continuous jobs that have ended, the latest first,
// up to a limit; 0 means all.
func (c *RunClient) ScanEnded(ctx context.Context, limit int, visit func(SeenRun)) error {
	return c.scan(ctx, jobWorkflows+" AND ExecutionStatus NOT IN ('Running', 'ContinuedAsNew')", limit, visit)
}

// ScanUnscheduled goes through the runs of jobs that have no schedule, up to a limit.
func (c *RunClient) ScanUnscheduled(ctx context.Context, limit int, visit func(SeenRun)) error {
	return c.scan(ctx, unscheduled, limit, visit)
}

func (c *RunClient) scan(ctx context.Context, query string, limit int, visit func(SeenRun)) error {
	return c.listWorkflows(ctx, query, limit, func(info *workflowpb.WorkflowExecutionInfo) {
		if seen := newSeenRun(info); seen.JobID != "" {
			visit(seen)
		}
	})
}

// SeenSchedule is a recurring job as a list of schedules has it. That list does not say
// whether the job is failing.
type SeenSchedule struct {
	Facts
	// Limits are those of the definition; nil if it has none, or if the list does not tell.
	Limits *contract.Limits

	skips []SkippedStart
}

// Skips says that people have the schedule leave out a start.
func (s *SeenSchedule) Skips(at time.Time) bool {
	return slices.ContainsFunc(s.skips, func(skip SkippedStart) bool { return skip.At.Equal(at) })
}

// ScanSchedules goes through the recurring jobs.
func (c *JobClient) ScanSchedules(ctx context.Context, visit func(SeenSchedule)) error {
	return c.listSchedules(ctx, "", func(entry *schedulepb.ScheduleListEntry) {
		if facts, ours := scheduled(entry); ours {
			seen := SeenSchedule{Facts: facts, skips: comingSkips(entry.GetInfo().GetSpec(), time.Time{})}
			var limits contract.Limits
			if temporalclient.MemoField(entry.GetMemo(), contract.MemoLimits, &limits) && limits.Definition == seen.DefinitionHash {
				seen.Limits = &limits
			}
			visit(seen)
		}
	})
}

// LoopState asks a continuous job for what it remembers. A live worker has to answer.
func (c *JobClient) LoopState(ctx context.Context, jobID string) (*contract.ContinuousState, error) {
	return c.loopState(ctx, jobID)
}

// IterationRun is an iteration that a continuous job remembers, as a run.
func IterationRun(state *contract.ContinuousState, it contract.Iteration) Run {
	return iterationRun(&Live{Job: state.Job, Workflow: &WorkflowLive{}}, it)
}

// SeenQueue is a queue as a list of workflows has it.
type SeenQueue struct {
	Name  string
	RunID string
	// Status is that of the queue's workflow: it has ended unless it is running.
	Status RunStatus
	Closed time.Time
}

// Scan goes through the queues, of each its latest workflow.
func (c *QueueClient) Scan(ctx context.Context) (map[string]SeenQueue, error) {
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus != 'ContinuedAsNew'", contract.JobQueueType)
	started := map[string]time.Time{}
	queues := map[string]SeenQueue{}
	err := c.listWorkflows(ctx, query, 0, func(info *workflowpb.WorkflowExecutionInfo) {
		name := temporalclient.Attribute(info.GetSearchAttributes(), contract.AttributeQueue.GetName())
		at := info.GetStartTime().AsTime()
		if name == "" || info.GetExecution().GetWorkflowId() != contract.QueueWorkflowID(name) || at.Before(started[name]) {
			return
		}
		seen := SeenQueue{Name: name, RunID: info.GetExecution().GetRunId(), Status: runStatus(info.GetStatus())}
		if closed := info.GetCloseTime(); closed != nil {
			seen.Closed = closed.AsTime()
		}
		started[name], queues[name] = at, seen
	})
	return queues, err
}

// pausesIn gives the pauses that the memo of a run keeps.
func pausesIn(memo *commonpb.Memo) []pauseSpan {
	var spans []pauseSpan
	if !temporalclient.MemoField(memo, contract.MemoPauses, &spans) {
		return nil
	}
	return spans
}

// SeenService is a service as a list of activities has it.
type SeenService struct {
	ID    string
	RunID string
	// Lost says that it fell silent.
	Lost bool
}

// ScanServices goes through the services that run, and through those that fell silent
// since a time, of each its latest announcement.
func (c *WorkerClient) ScanServices(ctx context.Context, lostSince time.Time) ([]SeenService, error) {
	query := fmt.Sprintf("ActivityType = '%s' AND (ExecutionStatus = 'Running' OR (ExecutionStatus = 'TimedOut' AND CloseTime > %s))",
		contract.ServiceType, quote(lostSince.UTC().Format(time.RFC3339)))
	found, err := c.temporal.ListActivities(ctx, sdk.ListActivitiesOptions{Query: query})
	if err != nil {
		return nil, fmt.Errorf("list services: %w", err)
	}
	latest := map[string]*sdk.ActivityExecutionInfo{}
	for info, err := range found.Results {
		if err != nil {
			return nil, fmt.Errorf("list services: %w", err)
		}
		if known := latest[info.ActivityID]; contract.IsServiceID(info.ActivityID) && (known == nil || known.ScheduleTime.Before(info.ScheduleTime)) {
			latest[info.ActivityID] = info
		}
	}
	services := make([]SeenService, 0, len(latest))
	for id, info := range latest {
		services = append(services, SeenService{ID: id, RunID: info.ActivityRunID, Lost: info.Status == enumspb.ACTIVITY_EXECUTION_STATUS_TIMED_OUT})
	}
	slices.SortFunc(services, func(a, b SeenService) int { return strings.Compare(a.ID, b.ID) })
	return services, nil
}

// Service describes a service, nil if it is not live and was not lost.
func (c *WorkerClient) Service(ctx context.Context, id string) (*LiveService, error) {
	return describeService(ctx, c.temporal, id)
}
