package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// RunRef names a run.
type RunRef struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
}

// RunStatus says how a run stands.
type RunStatus string

// The states of a run.
const (
	RunRunning    RunStatus = "running"
	RunCompleted  RunStatus = "completed"
	RunFailed     RunStatus = "failed"
	RunCanceled   RunStatus = "canceled"
	RunTerminated RunStatus = "terminated"
	RunTimedOut   RunStatus = "timed_out"
)

// RunStatuses lists every status.
func RunStatuses() []RunStatus {
	return []RunStatus{RunRunning, RunCompleted, RunFailed, RunCanceled, RunTerminated, RunTimedOut}
}

var visibilityNames = map[RunStatus]string{
	RunRunning: "Running", RunCompleted: "Completed", RunFailed: "Failed",
	RunCanceled: "Canceled", RunTerminated: "Terminated", RunTimedOut: "TimedOut",
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

// StatusOf says how a workflow stands.
func StatusOf(w *WorkflowLive) RunStatus { return runStatus(w.Status) }

// RunFilter narrows a list of runs. Empty fields do not.
type RunFilter struct {
	JobID  string
	Type   string
	Mode   job.Mode
	Queue  string
	Status RunStatus
	Since  time.Time
	Limit  int // 0: all
}

func (f RunFilter) query() string {
	terms := []string{"WorkflowType = " + quote(workflows.RunJobType)}
	equal := func(name, value string) {
		if value != "" {
			terms = append(terms, name+" = "+quote(value))
		}
	}
	equal(workflows.AttributeJobID.GetName(), f.JobID)
	equal(workflows.AttributeJobType.GetName(), f.Type)
	equal(workflows.AttributeJobMode.GetName(), string(f.Mode))
	equal(workflows.AttributeQueue.GetName(), f.Queue)
	equal("ExecutionStatus", visibilityNames[f.Status])
	if !f.Since.IsZero() {
		terms = append(terms, "StartTime >= "+quote(f.Since.UTC().Format(time.RFC3339Nano)))
	}
	return strings.Join(terms, " AND ")
}

// Run is one run of a job.
type Run struct {
	RunRef
	JobID  string    `json:"job_id"`
	Type   string    `json:"type"`
	Mode   job.Mode  `json:"mode"`
	Queue  string    `json:"queue,omitempty"`
	Status RunStatus `json:"status"`
	// Scheduled is when a recurring run was due, Started when it was started.
	Scheduled time.Time `json:"scheduled,omitzero"`
	Started   time.Time `json:"started"`
	Ended     time.Time `json:"ended,omitzero"`
}

// Duration is how long the run has taken so far.
func (r Run) Duration() time.Duration {
	if r.Ended.IsZero() {
		return time.Since(r.Started)
	}
	return r.Ended.Sub(r.Started)
}

// RunDetail is a run with all that is known of it.
type RunDetail struct {
	Run
	Job *job.Job `json:"job,omitempty"`
	// Output is the result of a completed run.
	Output *workflows.RunOutput `json:"output,omitempty"`
	// Class and Error tell why a run ended without one.
	Class string `json:"class,omitempty"`
	Error string `json:"error,omitempty"`
	// Attempt, Progress, Worker and LastError tell of a run under way.
	Attempt   int           `json:"attempt,omitempty"`
	Progress  *job.Progress `json:"progress,omitempty"`
	Worker    string        `json:"worker,omitempty"`
	LastError string        `json:"last_error,omitempty"`
	NextTry   time.Time     `json:"next_try,omitzero"`
	// WaitingForWorker says that no worker has taken the run yet.
	WaitingForWorker bool `json:"waiting_for_worker,omitempty"`
}

// Runs lists runs, the latest first. A run that was started within the last
// second may be missing: the list is eventually consistent.
func (c *Client) Runs(ctx context.Context, filter RunFilter) ([]Run, error) {
	var runs []Run
	err := c.listWorkflows(ctx, filter.query(), filter.Limit, func(info *workflowpb.WorkflowExecutionInfo) {
		runs = append(runs, newRun(info))
	})
	return runs, err
}

func newRun(info *workflowpb.WorkflowExecutionInfo) Run {
	attributes := info.GetSearchAttributes()
	run := Run{
		RunRef:  RunRef{WorkflowID: info.GetExecution().GetWorkflowId(), RunID: info.GetExecution().GetRunId()},
		JobID:   attribute(attributes, workflows.AttributeJobID.GetName()),
		Type:    attribute(attributes, workflows.AttributeJobType.GetName()),
		Mode:    job.Mode(attribute(attributes, workflows.AttributeJobMode.GetName())),
		Queue:   attribute(attributes, workflows.AttributeQueue.GetName()),
		Status:  runStatus(info.GetStatus()),
		Started: info.GetStartTime().AsTime(),
	}
	if t := info.GetCloseTime(); t != nil {
		run.Ended = t.AsTime()
	}
	if payload, ok := attributes.GetIndexedFields()["TemporalScheduledStartTime"]; ok {
		if err := decode(payload, &run.Scheduled); err != nil {
			run.Scheduled = time.Time{}
		}
	}
	return run
}

// Run describes a run. An empty run id means the latest of the workflow id.
func (c *Client) Run(ctx context.Context, ref RunRef) (*RunDetail, error) {
	response, err := c.temporal.DescribeWorkflowExecution(ctx, ref.WorkflowID, ref.RunID)
	if err != nil {
		return nil, explain("run "+ref.WorkflowID, err)
	}
	info := response.GetWorkflowExecutionInfo()
	if info.GetType().GetName() != workflows.RunJobType {
		return nil, fmt.Errorf("workflow %s is a %s, not the run of a job: %w", ref.WorkflowID, info.GetType().GetName(), ErrNotFound)
	}
	detail := &RunDetail{Run: newRun(info)}
	if j, ok := definition(info.GetMemo()); ok {
		detail.Job = &j
	}
	if detail.Status == RunRunning {
		detail.addPending(response)
		return detail, nil
	}
	detail.addEnd(c.temporal.GetWorkflow(ctx, ref.WorkflowID, detail.RunID).Get(ctx, &detail.Output))
	return detail, nil
}

func (d *RunDetail) addPending(response *workflowservice.DescribeWorkflowExecutionResponse) {
	pending := response.GetPendingActivities()
	if len(pending) == 0 {
		d.WaitingForWorker = response.GetPendingWorkflowTask().GetStartedTime() == nil && response.GetPendingWorkflowTask() != nil
		return
	}
	activity := pending[0]
	d.Attempt = int(activity.GetAttempt())
	d.Worker = activity.GetLastWorkerIdentity()
	if activity.GetLastFailure() != nil {
		d.LastError = activity.GetLastFailure().GetMessage()
	}
	waits := activity.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED
	if next := activity.GetScheduledTime(); waits && next != nil && next.AsTime().After(time.Now()) {
		d.NextTry = next.AsTime()
	} else if waits {
		d.WaitingForWorker = true
	}
	if payloads := activity.GetHeartbeatDetails().GetPayloads(); len(payloads) == 1 {
		var beat workflows.Heartbeat
		if err := decode(payloads[0], &beat); err == nil {
			d.Progress = &beat.Progress
		}
	}
}

func (d *RunDetail) addEnd(err error) {
	if err == nil {
		if d.Output != nil {
			d.Worker, d.Attempt = d.Output.Worker, d.Output.Attempts
		}
		return
	}
	d.Output = nil
	if temporal.IsCanceledError(err) {
		return // The status says it.
	}
	d.Class, d.Error = workflows.Cause(err)
	var activity *temporal.ActivityError
	if errors.As(err, &activity) {
		d.Worker = activity.Identity()
	}
}

// Follow waits for the end of a run and reports whenever its progress changes.
func (c *Client) Follow(ctx context.Context, ref RunRef, report func(*RunDetail)) (*RunDetail, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// How it ended is read below; an error here only ends the waiting. It tells
		// at once, as a rule: now and then the server lets it wait for its 20 s.
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
			return c.Run(ctx, ref)
		case <-ticker.C:
			detail, err := c.Run(ctx, ref)
			if err != nil {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				return nil, err
			}
			if detail.Status != RunRunning {
				return detail, nil
			}
			report(detail)
		}
	}
}
