package client

import (
	"context"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

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

// Facts are those of the job of a run that is its own.
func (s *SeenRun) Facts() Facts {
	facts := s.job()
	memo := s.info.GetMemo()
	facts.Own = &OwnFacts{Run: s.Run, Opened: s.Opened, Pause: pauseOf(memo)}
	if !temporalclient.MemoField(memo, contract.MemoStopped, &facts.Own.Stopped) {
		facts.Own.Stopped = contract.Stopped{}
	}
	if s.Loop {
		facts.Failing = s.Left
	}
	return facts
}

// job says what job the run is of.
func (s *SeenRun) job() Facts {
	facts := Facts{
		ID: s.JobID, Type: s.Type, Mode: s.Mode, Queue: s.Queue, Owner: s.Owner, Provider: s.Provider, DefinitionHash: s.DefinitionHash,
	}
	if j, ok := s.Definition(); ok {
		facts.Tags, facts.Bind = j.Options.Tags, j.Options.Bind
	}
	return facts
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

// ScanFailed goes through the runs that failed or timed out, and that have ended since a time, the
// latest first, up to a limit.
func (c *RunClient) ScanFailed(ctx context.Context, since time.Time, limit int, visit func(SeenRun)) error {
	return c.scan(ctx, fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus IN ('Failed', 'TimedOut') AND CloseTime >= %s",
		contract.RunJobType, quote(since.UTC().Format(time.RFC3339Nano))), limit, visit)
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

// SameSkips reports whether people have two schedules leave out the same starts.
func (s *SeenSchedule) SameSkips(other *SeenSchedule) bool {
	return slices.EqualFunc(s.skips, other.skips, func(a, b SkippedStart) bool { return a.At.Equal(b.At) })
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
	return c.continuousState(ctx, jobID)
}

// IterationRun is an iteration that a continuous job remembers, as a run.
func IterationRun(state *contract.ContinuousState, it contract.Iteration) Run {
	return iterationRun(&Live{Job: state.Job, Workflow: &WorkflowLive{}}, it)
}
