package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
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
	RunRunning RunStatus = "running"
	// RunWaiting: to be started at a time ahead, or, if Run.WaitReason says so, no worker
	// has taken it.
	RunWaiting RunStatus = "waiting"
	// RunCanceling: it was asked to stop, and has not ended.
	RunCanceling  RunStatus = "canceling"
	RunCompleted  RunStatus = "completed"
	RunFailed     RunStatus = "failed"
	RunCanceled   RunStatus = "canceled"
	RunTerminated RunStatus = "terminated"
	RunTimedOut   RunStatus = "timed_out"
	// RunHeldBack: the job is failing, and the run came before the next run.
	RunHeldBack RunStatus = "held_back"
	// RunSuperseded: the run gave way to that of another start, see Run.SupersededBy.
	RunSuperseded RunStatus = "superseded"
	// RunInterrupted: of an iteration, which was cut short.
	RunInterrupted RunStatus = "interrupted"
)

// Open reports whether the run has not ended.
func (s RunStatus) Open() bool { return s == RunRunning || s == RunWaiting || s == RunCanceling }

// Did reports whether the run tells how its job does: one that was held back or gave way did nothing.
func (s RunStatus) Did() bool { return s != RunHeldBack && s != RunSuperseded }

// RunStatuses lists every status.
func RunStatuses() []RunStatus {
	return []RunStatus{
		RunRunning, RunWaiting, RunCanceling, RunCompleted, RunFailed, RunCanceled, RunTerminated, RunTimedOut, RunHeldBack, RunSuperseded, RunInterrupted,
	}
}

// executionStatuses are those that a workflow may have whose run has a status. No workflow is
// an iteration.
var executionStatuses = map[RunStatus][]string{
	RunRunning: {"Running"}, RunWaiting: {"Running"}, RunCanceling: {"Running"}, RunCompleted: {"Completed"}, RunFailed: {"Failed"},
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
	// Kind is that of the error of a failed run.
	Kind errclass.Kind `json:"kind,omitempty"`
	// LastError and LastClass are those of a run under way that is tried again, and
	// NextAttempt when.
	LastError   string    `json:"last_error,omitempty"`
	LastClass   string    `json:"last_class,omitempty"`
	NextAttempt time.Time `json:"next_attempt,omitzero"`
	// Binding is the service of a bound job's run, and its changes. A worker has to answer for
	// a run under way.
	Binding *contract.Binding `json:"binding,omitempty"`

	pending *workflowpb.PendingActivityInfo // of a run under way, or that was terminated
}

// Get describes a run. An empty run id means the latest of the workflow id.
func (c *RunClient) Get(ctx context.Context, ref RunRef) (*RunDetail, error) {
	detail, err := c.look(ctx, ref)
	if err == nil {
		c.addBinding(ctx, detail)
	}
	if err == nil && detail.WaitReason != "" {
		err = c.serveRuns(ctx, waitingRun{&detail.Run, detail.need()})
	}
	return detail, err
}

// look is Get without the service of a bound run under way.
func (c *conn) look(ctx context.Context, ref RunRef) (*RunDetail, error) {
	response, err := c.temporal.DescribeWorkflowExecution(ctx, ref.WorkflowID, ref.RunID)
	if err != nil {
		return nil, explain("run "+ref.WorkflowID, ofServer(ctx, err))
	}
	info := response.GetWorkflowExecutionInfo()
	if info.GetType().GetName() != contract.RunJobType {
		return nil, fmt.Errorf("workflow %s is a %s, not the run of a job: %w", ref.WorkflowID, info.GetType().GetName(), ErrNotFound)
	}
	detail := &RunDetail{Run: newRun(info)}
	if j, ok := temporalclient.MemoDefinition(info.GetMemo()); ok {
		detail.Job = &j
	}
	// A run that was terminated leaves its last heartbeat there.
	detail.addPending(response)
	if detail.Status.Open() {
		return detail, nil
	}
	detail.Binding = endOf(info).Binding
	detail.Progress, detail.NextAttempt, detail.WaitReason, detail.LastError, detail.LastClass = nil, time.Time{}, "", "", ""
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
	defer func() {
		if d.Status.Open() && response.GetWorkflowExtendedInfo().GetCancelRequested() {
			d.Status = RunCanceling
		} else if d.Status == RunRunning && d.WaitReason != "" {
			d.Status = RunWaiting
		}
	}()
	pending := response.GetPendingActivities()
	if d.Status == RunWaiting {
		return // For its time.
	}
	if len(pending) == 0 {
		if task := response.GetPendingWorkflowTask(); task != nil && task.GetStartedTime() == nil {
			d.WaitReason = "no " + d.workerWord() + " has taken it"
		}
		return
	}
	activity := pending[0]
	d.pending = activity
	if activity.GetActivityType().GetName() == contract.ChooseServiceActivity {
		// It has not been tried yet, or is to be tried elsewhere.
		if d.WaitReason = activity.GetLastFailure().GetMessage(); d.WaitReason == "" {
			d.WaitReason = "no worker has looked for a service yet"
		}
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
		d.LastClass = activity.GetLastFailure().GetApplicationFailureInfo().GetType()
	}
	waits := activity.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED
	if next := activity.GetScheduledTime(); waits && next != nil && next.AsTime().After(time.Now()) {
		d.NextAttempt = next.AsTime()
	} else if waits && d.Job != nil && len(d.Job.Options.Bind) > 0 {
		d.WaitReason = notTakenByService
	} else if waits {
		d.WaitReason = "no " + d.workerWord() + " that serves " + activity.GetActivityType().GetName() + " has taken it"
	}
	if payloads := activity.GetHeartbeatDetails().GetPayloads(); len(payloads) == 1 {
		var beat contract.Heartbeat
		if err := temporalclient.DecodePayload(payloads[0], &beat); err == nil {
			d.Progress, d.Cursor = &beat.Progress, beat.Cursor
		}
	}
}

const notTakenByService = "its service has not taken it"

// workerWord names what kind of worker the run needs.
func (d *RunDetail) workerWord() string {
	if d.Job == nil || d.Job.Worker == "" {
		return "worker"
	}
	return "worker of type " + string(d.Job.Worker)
}

// bindingTimeout is how long a worker may take to tell the service of a run.
const bindingTimeout = 2 * time.Second

// addBinding asks for the service of a bound run under way. Where no worker answers, it is
// not known.
func (c *conn) addBinding(ctx context.Context, d *RunDetail) {
	if !d.Status.Open() || d.Delayed() || d.Job == nil || len(d.Job.Options.Bind) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, bindingTimeout)
	defer cancel()
	state, err := queryState[contract.RunState](ctx, c, d.WorkflowID, d.RunID, true)
	if err != nil || state.Binding.Service == "" {
		return // It has none yet.
	}
	if d.Binding = &state.Binding; d.WaitReason == notTakenByService {
		d.WaitReason = "service " + state.Binding.Service + " has not taken it"
	}
}

// addEnd adds what the history has of the end; lists know most of it from the memo.
func (d *RunDetail) addEnd(err error) {
	if err == nil {
		if output := d.Output; output != nil {
			d.Worker, d.Attempts, d.Handovers = output.Worker, output.Attempts, output.Handovers
			d.Message, d.Counts, d.Cursor = output.Message, output.Counts, output.Cursor
			d.Binding = output.Binding
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
	cause := contract.Cause(err)
	d.Class, d.Kind, d.Error = cause.Class, cause.Kind, cause.Error()
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
