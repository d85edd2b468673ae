package workflows

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
)

// JobQueue runs the items of one queue in the order they were accepted, one at
// a time. It lives as long as its namespace: a cancel request does not end it,
// since what it has accepted must not be lost.
//
// Each item is a RunJob workflow of its own, a child that outlives the queue's
// run. While it runs it is the lock. The queue sees its end through the child's
// future, or, after continue-as-new, through an activity that waits for it: so
// a run that someone terminated cannot hold the queue.
func JobQueue(ctx workflow.Context, state QueueState) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	q := &queue{QueueState: state, signals: workflow.GetSignalChannel(ctx, SignalEnqueue)}
	if err := q.listen(ctx); err != nil {
		return err
	}
	return q.serve(ctx)
}

type queue struct {
	QueueState
	signals workflow.ReceiveChannel
	// end resolves when the running item has ended.
	end workflow.Future
}

func (q *queue) listen(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, QueryState, func() (QueueState, error) {
		return q.QueueState, nil
	}); err != nil {
		return fmt.Errorf("handle query %s: %w", QueryState, err)
	}
	enqueue := func(in EnqueueRequest) EnqueueReceipt { return q.enqueue(in, workflow.Now(ctx)) }
	cancelItem := func(in CancelItemRequest) CancelItemReceipt { return q.cancelItem(ctx, in) }
	for _, install := range []func() error{
		func() error { return MessageEnqueue.handle(ctx, enqueue, q.checkEnqueue) },
		func() error { return MessageCancelItem.handle(ctx, cancelItem, q.checkCancelItem) },
		func() error { return MessagePauseQueue.handle(ctx, q.onPause, nil) },
		func() error { return MessageResumeQueue.handle(ctx, q.onResume, nil) },
	} {
		if err := install(); err != nil {
			return err
		}
	}
	return nil
}

// checkEnqueue is the validator of MessageEnqueue. It does not run on replay, so
// that the rules of a job may change.
func (q *queue) checkEnqueue(in EnqueueRequest) error {
	if problems := in.Job.Validate(); len(problems) > 0 {
		return fmt.Errorf("queue %s refuses job %s: %s", q.Name, in.Job.ID, problems[0])
	}
	if in.RequestID != "" {
		if _, ok := q.answered(in.RequestID); ok {
			return nil
		}
	}
	if i := q.find(in.Job.ID); i >= 0 && !sameSpec(q.Waiting[i].Job, in.Job) {
		return fmt.Errorf("queue %s refuses job %s: it waits in it with another spec", q.Name, in.Job.ID)
	}
	if q.Running != nil && q.Running.Job.ID == in.Job.ID && !sameSpec(q.Running.Job, in.Job) {
		return fmt.Errorf("queue %s refuses job %s: it runs now with another spec", q.Name, in.Job.ID)
	}
	return q.checkFits(in)
}

// sameSpec says that two definitions of a job would do the same.
func sameSpec(a, b job.Job) bool {
	first, err := a.SpecHash()
	if err != nil {
		return false
	}
	second, err := b.SpecHash()
	return err == nil && first == second
}

// checkFits decides on signaled items, on replay as well: a change here needs a
// version (workflow.GetVersion). It refuses what a run could not start with.
func (q *queue) checkFits(in EnqueueRequest) error {
	options := in.Job.Options
	if in.Job.ID == "" || in.Job.Type == "" || in.Job.Worker == "" || options.RunTimeout <= 0 || options.HeartbeatTimeout <= 0 ||
		options.StopGracePeriod <= 0 || options.RetryBackoff.Initial <= 0 || options.RetryBackoff.Coefficient < 1 {
		return fmt.Errorf("queue %s refuses job %q: its definition is not complete", q.Name, in.Job.ID)
	}
	if mode := in.Job.Mode(); mode != job.ModeQueued {
		return fmt.Errorf("queue %s refuses job %s: its mode is %s, not %s", q.Name, in.Job.ID, mode, job.ModeQueued)
	}
	if name := in.Job.Queue(); name != q.Name {
		return fmt.Errorf("queue %s refuses job %s: it belongs to queue %s", q.Name, in.Job.ID, name)
	}
	if (QueueItem{Job: in.Job}).size()+q.WaitingBytes > MaxQueueBytes && q.find(in.Job.ID) < 0 {
		return fmt.Errorf("queue %s is full: %d items wait in it", q.Name, len(q.Waiting))
	}
	return nil
}

func (q *queue) checkCancelItem(in CancelItemRequest) error {
	meant := func(sequence int64) bool { return in.Only == 0 || in.Only == sequence }
	if q.Running != nil && q.Running.Job.ID == in.JobID && meant(q.Running.Sequence) {
		if in.WaitingOnly {
			return fmt.Errorf("job %s runs now in queue %s; try again when it has ended", in.JobID, q.Name)
		}
		return nil
	}
	if i := q.find(in.JobID); i >= 0 && meant(q.Waiting[i].Sequence) {
		return nil
	}
	return temporal.NewApplicationError(fmt.Sprintf("job %s is not in queue %s", in.JobID, q.Name), ErrorTypeNotInQueue)
}

func (q *queue) cancelItem(ctx workflow.Context, in CancelItemRequest) CancelItemReceipt {
	if q.Running != nil && q.Running.Job.ID == in.JobID {
		q.Running.Canceled = true
		return CancelItemReceipt{Running: true}
	}
	item := q.take(q.find(in.JobID))
	q.finish(FinishedItem{
		Sequence: item.Sequence, JobID: item.Job.ID, Status: ItemCanceled,
		Accepted: item.Accepted, Ended: workflow.Now(ctx), RequestID: item.RequestID,
	})
	return CancelItemReceipt{}
}

func (q *queue) onPause(in PauseRequest) QueueSummary {
	q.Paused, q.PauseReason = true, in.Reason
	return q.summary()
}

func (q *queue) onResume(ResumeRequest) QueueSummary {
	q.Paused, q.PauseReason = false, ""
	return q.summary()
}

// serve is the one loop that decides what runs.
func (q *queue) serve(ctx workflow.Context) error {
	if q.Running != nil {
		q.end = watchRun(ctx, q.Running)
		// A request of the last moment may not have left: it is sent again.
		q.Running.CancelSent = false
	}
	for {
		q.drainSignals(ctx)
		switch {
		case q.end != nil && q.end.IsReady():
			q.endRun(ctx)
		case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			q.Generation++
			return workflow.NewContinueAsNewError(ctx, JobQueueType, q.QueueState)
		case q.mayStart():
			q.startRun(ctx)
		case q.mustCancel():
			q.cancelRun(ctx)
		default:
			workflow.SetCurrentDetails(ctx, q.details())
			if err := q.awaitNews(ctx); err != nil {
				return err
			}
		}
	}
}

// drainSignals takes in what was signaled. The loop itself reads the signals: a
// coroutine of its own could hold one while the loop continues as new.
func (q *queue) drainSignals(ctx workflow.Context) {
	for {
		var in EnqueueRequest
		if !q.signals.ReceiveAsync(&in) {
			return
		}
		if err := q.checkFits(in); err != nil {
			q.finish(FinishedItem{JobID: in.Job.ID, Status: ItemFailed, Ended: workflow.Now(ctx), Error: err.Error()})
			continue
		}
		q.enqueue(in, workflow.Now(ctx))
	}
}

// awaitNews waits until there is something to do.
func (q *queue) awaitNews(ctx workflow.Context) error {
	return workflow.Await(ctx, func() bool {
		return q.signals.Len() > 0 || q.end != nil && q.end.IsReady() || q.mayStart() || q.mustCancel() ||
			workflow.GetInfo(ctx).GetContinueAsNewSuggested()
	})
}

func (q *queue) mayStart() bool {
	return q.Running == nil && !q.Paused && len(q.Waiting) > 0
}

func (q *queue) mustCancel() bool {
	return q.Running != nil && q.Running.Canceled && !q.Running.CancelSent
}

// cancelRun asks the running item to stop. It stays the lock until it has ended.
func (q *queue) cancelRun(ctx workflow.Context) {
	item := q.Running
	item.CancelSent = true
	workflow.RequestCancelExternalWorkflow(ctx, JobWorkflowID(item.Job.ID), item.RunID)
}

// startRun starts the head of the queue as a run of its own.
func (q *queue) startRun(ctx workflow.Context) {
	q.Running = &RunningItem{QueueItem: q.take(0), Started: workflow.Now(ctx)}
	item := q.Running
	attributes, err := Attributes(item.Job)
	if err != nil {
		q.finishRun(ctx, ItemFailed, err)
		return
	}
	reuse := enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
	if item.Again {
		reuse = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	}
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            JobWorkflowID(item.Job.ID),
		TaskQueue:             TaskQueue(item.Job.Worker),
		WorkflowIDReusePolicy: reuse,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WaitForCancellation:   true,
		TypedSearchAttributes: attributes,
		StaticSummary:         Summary(item.Job),
		Memo:                  map[string]any{MemoJob: item.Job},
	}), RunJobType, RunInput{Job: item.Job, Trigger: TriggerQueue, KeepEnd: true})
	var execution workflow.Execution
	if err := child.GetChildWorkflowExecution().Get(ctx, &execution); err != nil {
		if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
			q.finishRun(ctx, ItemSkipped, errors.New("the job ran before, or runs outside the queue now"))
			return
		}
		q.finishRun(ctx, ItemFailed, err)
		return
	}
	item.RunID = execution.RunID
	q.end = child
}

// endRun takes in the end of the running item.
func (q *queue) endRun(ctx workflow.Context) {
	err := q.end.Get(ctx, nil)
	switch {
	case err == nil:
		q.finishRun(ctx, ItemCompleted, nil)
	case canceledRun(err):
		q.finishRun(ctx, ItemCanceled, nil)
	default:
		q.finishRun(ctx, ItemFailed, err)
	}
}

func (q *queue) finishRun(ctx workflow.Context, status ItemStatus, err error) {
	item := q.Running
	finished := FinishedItem{
		Sequence: item.Sequence, JobID: item.Job.ID, Status: status, RunID: item.RunID,
		Accepted: item.Accepted, Started: item.Started, Ended: workflow.Now(ctx), RequestID: item.RequestID,
	}
	if err != nil {
		finished.Error = reason(err)
	}
	q.finish(finished)
	q.Running, q.end = nil, nil
}

// watchRun awaits the end of an item that an earlier run of the queue started.
func watchRun(ctx workflow.Context, item *RunningItem) workflow.Future {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           QueuesTaskQueue,
		StartToCloseTimeout: 24 * time.Hour,
		HeartbeatTimeout:    15 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{MaximumInterval: 10 * time.Second},
		Summary:             item.Job.ID,
	})
	return workflow.ExecuteActivity(ctx, WatchRunActivity, WatchRunInput{
		WorkflowID: JobWorkflowID(item.Job.ID), RunID: item.RunID,
	})
}

// WatchRunInput names the run to watch.
type WatchRunInput struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
}

// ErrorTypeNotInQueue is the type of the error of MessageCancelItem for a job that
// neither waits nor runs.
const ErrorTypeNotInQueue = "NotInQueue"

// Types of the errors of WatchRun.
const (
	errorTypeRunCanceled = "RunCanceled"
	errorTypeRunFailed   = "RunFailed"
	errorTypeRunNotFound = "RunNotFound"
)

// canceledRun says that a run, awaited or watched, was canceled.
func canceledRun(err error) bool {
	var app *temporal.ApplicationError
	return temporal.IsCanceledError(err) || errors.As(err, &app) && app.Type() == errorTypeRunCanceled
}

// WatchRun waits until a run has ended. It succeeds if the run completed, fails
// for good if it was canceled, failed or is not there, and is tried again for
// every other reason.
func WatchRun(ctx context.Context, in WatchRunInput) error {
	done := make(chan error, 1)
	go func() {
		done <- activity.GetClient(ctx).GetWorkflow(ctx, in.WorkflowID, in.RunID).Get(ctx, nil)
	}()
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			activity.RecordHeartbeat(ctx)
		case <-activity.GetWorkerStopChannel(ctx):
			return errors.New("the worker that watched the run shuts down")
		case err := <-done:
			return watched(in, err)
		}
	}
}

func watched(in WatchRunInput, err error) error {
	var notFound *serviceerror.NotFound
	var execution *temporal.WorkflowExecutionError
	switch {
	case err == nil:
		return nil
	case temporal.IsCanceledError(err):
		return temporal.NewNonRetryableApplicationError("the run was canceled", errorTypeRunCanceled, nil)
	case errors.As(err, &notFound):
		return temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("run %s of %s is not there any more", in.RunID, in.WorkflowID), errorTypeRunNotFound, nil)
	case errors.As(err, &execution):
		return temporal.NewNonRetryableApplicationError(reason(err), errorTypeRunFailed, nil)
	}
	return err
}
