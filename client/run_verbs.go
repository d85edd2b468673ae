package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// Cancel asks a run to stop: its handler has the job's stop grace period. It returns once the
// request is taken. A run that waits for its time ends without having done anything. Of a run
// that had ended, and that nobody had asked to stop, it is a [StateError].
func (c *RunClient) Cancel(ctx context.Context, ref RunRef, reason string) error {
	_, err := call(ctx, c.conn, c.temporal.WorkflowService().RequestCancelWorkflowExecution, &workflowservice.RequestCancelWorkflowExecutionRequest{
		Namespace:         c.namespace,
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: ref.WorkflowID, RunId: ref.RunID},
		Identity:          c.identity, RequestId: newRequestID(), Reason: reason,
	})
	if err != nil {
		return explain("cancel run "+ref.WorkflowID, err)
	}
	// The server takes a request for a run that has ended, too, but it notes only what it acts on.
	return c.checkEnded(ctx, ref, true)
}

// checkEnded gives a [StateError] for a run that has ended. One that was asked to stop may.
func (c *conn) checkEnded(ctx context.Context, ref RunRef, mayStop bool) error {
	response, err := c.temporal.DescribeWorkflowExecution(ctx, ref.WorkflowID, ref.RunID)
	if err != nil {
		return explain("run "+ref.WorkflowID, ofServer(ctx, err))
	}
	info := response.GetWorkflowExecutionInfo()
	if info.GetCloseTime() == nil || mayStop && response.GetWorkflowExtendedInfo().GetCancelRequested() {
		return nil
	}
	status := strings.ReplaceAll(string(runStatus(info.GetStatus())), "_", " ")
	return stateErrorf("run %s of %s has ended already: it is %s", info.GetExecution().GetRunId(), ref.WorkflowID, status)
}

// Terminate ends a run at once. Its handler hears of that when it reports next, and what
// it has not reported by then is lost. Of a run that had ended it is a [StateError].
func (c *RunClient) Terminate(ctx context.Context, ref RunRef, reason string) error {
	_, err := call(ctx, c.conn, c.temporal.WorkflowService().TerminateWorkflowExecution, &workflowservice.TerminateWorkflowExecutionRequest{
		Namespace:         c.namespace,
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: ref.WorkflowID, RunId: ref.RunID},
		Identity:          c.identity, Reason: reason,
	})
	if err = explain("terminate run "+ref.WorkflowID, err); errors.Is(err, ErrNotFound) {
		return cmp.Or(c.checkEnded(ctx, ref, false), err)
	}
	return err
}

// Retried is what Retry started: a run, or a place in a queue.
type Retried struct {
	Job job.Job
	// Run goes on at the last position that the other one has left; zero where a
	// queue starts it.
	Run RunRef
	// Receipt is the place in the queue of a queued job, whose run goes on there as
	// well when its turn comes.
	Receipt *contract.EnqueueReceipt
	// ExistedBefore says that it was started by an earlier request, and Status its status.
	ExistedBefore bool
	Status        RunStatus
}

// ErrNotRetried says that a run is not one to try again: it has not ended, has
// completed, or was followed by another one.
var ErrNotRetried = errors.New("it is not tried again")

// Retry starts a run again that failed, was canceled, terminated or timed out,
// with the definition that it had. Several calls for one run start one run. While
// a run of a recurring job is under way that may not overlap, it is an error; the
// schedule itself takes no notice of the run that is started here. Dead letters of a
// queued job with this spec go.
func (c *RunClient) Retry(ctx context.Context, ref RunRef) (Retried, error) {
	detail, err := c.Get(ctx, ref)
	if err != nil {
		return Retried{}, err
	}
	if err := checkRetry(detail); err != nil {
		return Retried{}, err
	}
	j := *detail.Job
	retried := Retried{Job: j}
	latest, err := c.temporal.DescribeWorkflowExecution(ctx, detail.WorkflowID, "")
	if err != nil {
		return retried, explain("run "+detail.WorkflowID, err)
	}
	if newer := newRun(latest.GetWorkflowExecutionInfo()); newer.RetryOf == detail.RunID {
		retried.Run, retried.ExistedBefore, retried.Status = newer.RunRef, true, newer.Status
		return retried, nil
	} else if newer.RunID != detail.RunID {
		return retried, fmt.Errorf("run %s of %s was followed by run %s (%s): %w", detail.RunID, detail.WorkflowID, newer.RunID, newer.Status, ErrNotRetried)
	}
	if err := c.checkOverlap(ctx, detail); err != nil {
		return retried, err
	}
	requestID := "retry-" + detail.RunID
	if j.Mode() == job.ModeQueued {
		receipt, err := c.enqueueItem(ctx, contract.EnqueueItem{
			Job: j, AllowRerun: true, RetryOf: detail.RunID, Cursor: detail.Cursor,
		}, requestID)
		retried.Receipt = &receipt
		return retried, err
	}
	retried.Run, err = c.start(ctx, j, start{
		workflowID: detail.WorkflowID, workflowType: contract.RunJobType, requestID: requestID, retryOf: detail.RunID,
		input: contract.RunInput{
			Job: j, StartedBy: contract.StartedByRetry, Cursor: detail.Cursor, RetryOf: detail.RunID,
		},
	})
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return retried, fmt.Errorf("a run of %s is under way: %w", detail.WorkflowID, ErrNotRetried)
	}
	return retried, explain("start job "+j.ID, err)
}

func checkRetry(detail *RunDetail) error {
	name := fmt.Sprintf("run %s of %s", detail.RunID, detail.WorkflowID)
	switch {
	case detail.Status.Open(), detail.Status == RunCompleted, detail.Status == RunHeldBack, detail.Status == RunSuperseded:
		return fmt.Errorf("%s is %s: %w", name, strings.ReplaceAll(string(detail.Status), "_", " "), ErrNotRetried)
	case detail.Job == nil:
		return fmt.Errorf("%s does not carry its definition: %w", name, ErrNotOurs)
	}
	return nil
}

// checkOverlap refuses to start a run of a recurring job while another is under
// way that it may not overlap with.
func (c *conn) checkOverlap(ctx context.Context, detail *RunDetail) error {
	if detail.Mode != job.ModeRecurring {
		return nil
	}
	live, err := c.jobs().LiveSchedule(ctx, detail.JobID)
	if err != nil || live == nil || live.Job.Recurring == nil || live.Job.Recurring.OverlapPolicy() == job.OverlapAllowAll {
		return err
	}
	for _, running := range live.Schedule.GetInfo().GetRunningWorkflows() {
		return overlaps(running.GetWorkflowId())
	}
	// Runs that were not started by the schedule itself.
	open, err := c.listRuns(ctx, RunFilter{JobID: detail.JobID, Status: RunRunning, Limit: 1, asListed: true})
	if err == nil && len(open) > 0 {
		return overlaps(open[0].WorkflowID)
	}
	return err
}

func overlaps(workflowID string) error {
	return fmt.Errorf("%s of the recurring job runs now and may not overlap with another: %w", workflowID, ErrNotRetried)
}
