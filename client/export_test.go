package client

import (
	"context"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// TriggerTime is the time of a trigger of a job.
func TriggerTime(jobID string, r *job.Recurring, now time.Time) time.Time {
	return triggerTime(jobID, r, now)
}

// PauseSpan is pauseSpan.
type PauseSpan = pauseSpan

// MaxPauseSpans is maxPauseSpans.
const MaxPauseSpans = maxPauseSpans

// What a Schedule keeps of its pauses, and which dead letters are retried.
var (
	PausesOf           = pausesOf
	SetPaused          = setPaused
	LatestDeadLetters  = latestDeadLetters
	RetriedDeadLetters = retriedDeadLetters
)

// Schedules changes schedules.
type Schedules struct{ schedules }

// NewSchedules changes those of a service.
func NewSchedules(service scheduleService, namespace string) Schedules {
	return Schedules{schedules{service: service, namespace: namespace}}
}

// ScheduleEdit is scheduleEdit.
type ScheduleEdit = scheduleEdit

// NewScheduleEdit changes a schedule alone.
func NewScheduleEdit(schedule *schedulepb.Schedule) *ScheduleEdit {
	return &ScheduleEdit{schedule: schedule}
}

// Change makes a schedule what edit makes of it.
func (s Schedules) Change(
	ctx context.Context, jobID string, edit func(now *workflowservice.DescribeScheduleResponse) (*ScheduleEdit, error),
) error {
	return s.change(ctx, jobID, edit)
}

// Trigger has a schedule start a run, and gives its run id.
func (s Schedules) Trigger(ctx context.Context, jobID string, r *job.Recurring, overlap enumspb.ScheduleOverlapPolicy) (string, error) {
	triggered, err := s.trigger(ctx, jobID, r, overlap)
	return triggered.started.GetRunId(), err
}

// QueueHistory is queueHistory.
type QueueHistory struct{ queueHistory }

// Add takes in the next event.
func (h *QueueHistory) Add(event *historypb.HistoryEvent) error { return h.add(event) }

// Input is the state that the run began with.
func (h *QueueHistory) Input() contract.QueueState { return h.input }

// Answers reports whether a worker has carried the run on.
func (h *QueueHistory) Answers() bool { return h.answers }

// Recover makes the state that the run left the input of another one.
func (h *QueueHistory) Recover(left contract.QueueState, now time.Time) (state contract.QueueState, orphans []string) {
	return h.recover(left, now)
}

// NewRun is newRun.
var NewRun = newRun

// Matches reports whether a list with a filter has a run: that a query finds its workflow, and
// that it is kept if the list looks at what was found.
func Matches(f RunFilter, info *workflowpb.WorkflowExecutionInfo) bool {
	names := f.executionStatuses()
	return !f.impossible() && (len(names) == 0 || slices.Contains(names, info.GetStatus().String())) && (!f.needsLook() || f.matches(newRun(info), info))
}

// Missed are the starts without a run of a job that was made at a time and has had some runs,
// where the server counts some starts outside the catch-up window.
func Missed(j job.Job, runs []Run, since, until time.Time, window int64) ([]MissedStart, error) {
	live := &Live{Job: j, DefinitionHash: "one", Schedule: &workflowservice.DescribeScheduleResponse{
		Schedule: &schedulepb.Schedule{}, Info: &schedulepb.ScheduleInfo{CreateTime: timestamppb.New(since), MissedCatchupWindow: window},
	}}
	facts, err := live.StartFacts()
	if err != nil {
		return nil, err
	}
	var defined []DefinedRun
	for _, run := range runs {
		defined = append(defined, DefinedRun{run, live.DefinitionHash})
	}
	account, err := AccountStarts(&live.Job, facts, defined, since, until, maxReportedStarts)
	if err != nil {
		return nil, err
	}
	return slices.Concat(account.MissedStarts, account.LeftOutStarts), nil
}
