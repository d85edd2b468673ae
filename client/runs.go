package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/metadata"
	"github.com/dendrascience/dendra-jobs/job"
)

// RunRef names a run.
type RunRef struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
}

// RunStatus is the status of a run.
type RunStatus string

// The statuses of a run.
const (
	RunRunning    RunStatus = "running"
	RunWaiting    RunStatus = "waiting" // to be started at a time ahead
	RunCompleted  RunStatus = "completed"
	RunFailed     RunStatus = "failed"
	RunCanceled   RunStatus = "canceled"
	RunTerminated RunStatus = "terminated"
	RunTimedOut   RunStatus = "timed_out"
	// RunHeldBack: the job is failing, and the run came before the next run.
	RunHeldBack RunStatus = "held_back"
	// RunSuperseded: the run gave way to that of another start, see Run.SupersededBy.
	RunSuperseded RunStatus = "superseded"
)

// Open says that the run has not ended.
func (s RunStatus) Open() bool { return s == RunRunning || s == RunWaiting }

// RunStatuses lists every status.
func RunStatuses() []RunStatus {
	return []RunStatus{RunRunning, RunWaiting, RunCompleted, RunFailed, RunCanceled, RunTerminated, RunTimedOut, RunHeldBack, RunSuperseded}
}

// executionStatuses are those that a workflow may have whose run has a status.
var executionStatuses = map[RunStatus][]string{
	RunRunning: {"Running"}, RunWaiting: {"Running"}, RunCompleted: {"Completed"}, RunFailed: {"Failed"},
	RunCanceled: {"Canceled"}, RunTerminated: {"Terminated"}, RunTimedOut: {"TimedOut"},
	RunHeldBack: {"Canceled"}, RunSuperseded: {"Completed", "Canceled"},
}

func runStatus(status enumspb.WorkflowExecutionStatus) RunStatus {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return RunCompleted
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		return RunFailed
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return RunCanceled
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return RunTerminated
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return RunTimedOut
	default:
		return RunRunning
	}
}

// RunDetail is a run with all that is known of it.
type RunDetail struct {
	Run
	Job *job.Job `json:"job,omitempty"`
	// Output is the result of a completed run.
	Output *contract.RunOutput `json:"output,omitempty"`
	// Cursor is the position that the run has reached, or left behind.
	Cursor json.RawMessage `json:"cursor,omitempty"`
	// LastError is that of a run under way that is tried again, and NextAttempt when.
	LastError   string    `json:"last_error,omitempty"`
	NextAttempt time.Time `json:"next_attempt,omitzero"`
	// WaitingForWorker says that no worker has taken the run yet.
	WaitingForWorker bool `json:"waiting_for_worker,omitempty"`
}

// Get describes a run. An empty run id means the latest of the workflow id.
func (c *RunClient) Get(ctx context.Context, ref RunRef) (*RunDetail, error) {
	response, err := c.temporal.DescribeWorkflowExecution(ctx, ref.WorkflowID, ref.RunID)
	if err != nil {
		return nil, explain("run "+ref.WorkflowID, ofServer(ctx, err))
	}
	info := response.GetWorkflowExecutionInfo()
	if info.GetType().GetName() != contract.RunJobType {
		return nil, fmt.Errorf("workflow %s is a %s, not the run of a job: %w", ref.WorkflowID, info.GetType().GetName(), ErrNotFound)
	}
	detail := &RunDetail{Run: newRun(info)}
	if j, ok := metadata.Definition(info.GetMemo()); ok {
		detail.Job = &j
	}
	// A run that was terminated leaves its last heartbeat there.
	detail.addPending(response)
	if detail.Status == RunRunning || detail.Status == RunWaiting {
		return detail, nil
	}
	detail.Progress, detail.NextAttempt, detail.WaitingForWorker, detail.LastError = nil, time.Time{}, false, ""
	detail.LastUpdate = detail.Ended
	if detail.Status == RunTerminated {
		detail.Error, err = c.terminatedFor(ctx, detail.RunRef)
		return detail, err
	}
	detail.addEnd(c.temporal.GetWorkflow(ctx, ref.WorkflowID, detail.RunID).Get(ctx, &detail.Output))
	return detail, nil
}

// terminatedFor reads why and by whom a run was terminated.
func (c *conn) terminatedFor(ctx context.Context, ref RunRef) (string, error) {
	events := c.temporal.GetWorkflowHistory(ctx, ref.WorkflowID, ref.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return "", explain("run "+ref.WorkflowID, err)
		}
		if end := event.GetWorkflowExecutionTerminatedEventAttributes(); end != nil {
			return fmt.Sprintf("terminated by %s: %s", end.GetIdentity(), end.GetReason()), nil
		}
	}
	return "", nil
}

func (d *RunDetail) addPending(response *workflowservice.DescribeWorkflowExecutionResponse) {
	pending := response.GetPendingActivities()
	if d.Status == RunWaiting {
		return
	}
	if len(pending) == 0 {
		d.WaitingForWorker = response.GetPendingWorkflowTask().GetStartedTime() == nil && response.GetPendingWorkflowTask() != nil
		return
	}
	activity := pending[0]
	if activity.GetActivityType().GetName() == contract.ChooseServiceActivity {
		// It has not been tried yet, or is to be tried elsewhere.
		d.WaitingForWorker, d.LastError = true, activity.GetLastFailure().GetMessage()
		return
	}
	d.Attempts = int(activity.GetAttempt())
	d.Worker = activity.GetLastWorkerIdentity()
	for _, at := range []*timestamppb.Timestamp{activity.GetLastStartedTime(), activity.GetLastHeartbeatTime()} {
		if at != nil && at.AsTime().After(d.LastUpdate) {
			d.LastUpdate = at.AsTime()
		}
	}
	if activity.GetLastFailure() != nil {
		d.LastError = activity.GetLastFailure().GetMessage()
	}
	waits := activity.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED
	if next := activity.GetScheduledTime(); waits && next != nil && next.AsTime().After(time.Now()) {
		d.NextAttempt = next.AsTime()
	} else if waits {
		d.WaitingForWorker = true
	}
	if payloads := activity.GetHeartbeatDetails().GetPayloads(); len(payloads) == 1 {
		var beat contract.Heartbeat
		if err := metadata.Decode(payloads[0], &beat); err == nil {
			d.Progress, d.Cursor = &beat.Progress, beat.Cursor
		}
	}
}

// addEnd adds what the history has of the end; lists know most of it from the memo.
func (d *RunDetail) addEnd(err error) {
	if err == nil {
		if output := d.Output; output != nil {
			d.Worker, d.Attempts, d.Handovers = output.Worker, output.Attempts, output.Handovers
			d.Message, d.Counts, d.Cursor = output.Message, output.Counts, output.Cursor
		}
		return
	}
	d.Output = nil
	if cursor := contract.LastCursor(err); len(cursor) > 0 {
		d.Cursor = cursor
	}
	if temporal.IsCanceledError(err) {
		return // The status says it.
	}
	d.Class, d.Error = contract.Cause(err)
	var activity *temporal.ActivityError
	if errors.As(err, &activity) && d.Worker == "" {
		d.Worker = activity.Identity()
	}
}

// Follow waits for the end of a run and reports whenever its progress changes.
func (c *RunClient) Follow(ctx context.Context, ref RunRef, report func(*RunDetail)) (*RunDetail, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// How it ended is read below; an error here only ends the waiting. An end that
		// this does not hear of at once, the looks below find.
		_ = c.temporal.GetWorkflow(ctx, ref.WorkflowID, ref.RunID).Get(ctx, nil)
	}()
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return c.Get(ctx, ref)
		case <-ticker.C:
			detail, err := c.Get(ctx, ref)
			if err != nil {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				return nil, err
			}
			if !detail.Status.Open() {
				return detail, nil
			}
			report(detail)
		}
	}
}
