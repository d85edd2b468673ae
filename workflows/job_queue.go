package workflows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"

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
	q.strict = workflow.GetVersion(ctx, strictItemsChange, workflow.DefaultVersion, 1) != workflow.DefaultVersion
	if err := q.handleMessages(ctx); err != nil {
		return err
	}
	return q.serve(ctx)
}

type queue struct {
	QueueState
	signals workflow.ReceiveChannel
	// end resolves when the running item has ended.
	end workflow.Future
	// reading resolves when the page that is taken over has been read, and
	// readingPage is its number.
	reading     workflow.Future
	readingPage int64
	// settled resolves when the queue is Settling no more.
	settled workflow.Future
}

// serve is the one loop that decides what runs.
func (q *queue) serve(ctx workflow.Context) error {
	if q.Running != nil {
		q.end = watchRun(ctx, q.Running)
		// A request of the last moment may not have left: it is sent again.
		q.Running.CancelSent = false
	}
	if q.Settling != nil && settles(ctx) {
		q.settle(ctx)
	}
	for {
		q.drainSignals(ctx)
		q.refill()
		switch {
		case ready(q.end):
			q.endRun(ctx)
		case ready(q.reading):
			q.endTakeOver(ctx)
		case ready(q.settled):
			q.Settling, q.settled = nil, nil
		case q.mustPark():
			q.park(ctx)
		case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			return workflow.NewContinueAsNewError(ctx, contract.JobQueueType, q.next())
		case q.mustTakeOver():
			q.takeOver(ctx)
		case q.mayStart():
			q.startRun(ctx)
		case q.mustCancel():
			q.cancelRun(ctx)
		case len(q.Parked.Released) > 0:
			q.release(ctx)
		default:
			workflow.SetCurrentDetails(ctx, q.details())
			if err := q.awaitNews(ctx); err != nil {
				return err
			}
		}
	}
}

// ready says that a future, if there is one, has a result.
func ready(future workflow.Future) bool { return future != nil && future.IsReady() }

// next is the state for the next run. One that has no pages, since it began before
// there were any, may have them from then on.
func (s *QueueState) next() QueueState {
	next := *s
	next.Generation++
	next.SignalsRead = 0
	if next.Paging == nil {
		next.Paging = DefaultPaging()
	}
	return next
}

// drainSignals takes in what was signaled. The loop itself reads the signals: a
// coroutine of its own could hold one while the loop continues as new.
func (q *queue) drainSignals(ctx workflow.Context) {
	for !q.mustPark() {
		var in EnqueueRequest
		if !q.signals.ReceiveAsync(&in) {
			return
		}
		q.SignalsRead++
		q.takeSignaled(in, workflow.Now(ctx), func() error { return checkSignaled(ctx, in) })
	}
}

// takeSignaled puts in what was signaled, or shows it as failed if it does not fit or
// check refuses it.
func (q *queue) takeSignaled(in EnqueueRequest, now time.Time, check func() error) {
	err := q.checkFits(in.batch().Items[0])
	if err == nil && q.strict {
		err = check()
	}
	if err == nil && q.Draining {
		err = fmt.Errorf("queue %s is being drained: it takes no more items until it is resumed", q.Name)
	}
	if err != nil {
		q.finish(FinishedItem{JobID: in.Job.ID, Status: ItemFailed, Ended: now, Error: err.Error()})
		return
	}
	q.enqueue(in.batch(), now)
}

// awaitNews waits until there is something to do.
func (q *queue) awaitNews(ctx workflow.Context) error {
	return workflow.Await(ctx, func() bool {
		return q.signals.Len() > 0 || ready(q.end) || ready(q.reading) || ready(q.settled) || q.mayStart() || q.mustCancel() ||
			q.mustPark() || q.mustRefill() || q.mustTakeOver() || len(q.Parked.Released) > 0 ||
			workflow.GetInfo(ctx).GetContinueAsNewSuggested()
	})
}

func (q *queue) mayStart() bool {
	return q.Running == nil && q.settled == nil && !q.Paused && q.Halted == nil && len(q.Waiting) > 0
}

func (q *queue) mustCancel() bool {
	return q.Running != nil && q.Running.Canceled && !q.Running.CancelSent
}

// cancelRun asks the running item to stop. It stays the lock until it has ended.
func (q *queue) cancelRun(ctx workflow.Context) {
	item := q.Running
	item.CancelSent = true
	workflow.RequestCancelExternalWorkflow(ctx, contract.JobWorkflowID(item.Job.ID), item.RunID)
}

// startRun starts the head of the queue as a run of its own.
func (q *queue) startRun(ctx workflow.Context) {
	q.Running = &RunningItem{QueueItem: q.take(0), Started: workflow.Now(ctx)}
	item := q.Running
	if err := cannotStart(item.QueueItem); err != nil && startLimits(ctx) {
		q.finishRun(ctx, ItemFailed, err)
		return
	}
	attributes, err := contract.Attributes(item.Job)
	if err != nil {
		q.finishRun(ctx, ItemFailed, err)
		return
	}
	reuse := enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
	if item.Again {
		reuse = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	}
	memo := map[string]any{contract.MemoJob: item.Job, contract.MemoItem: item.Sequence}
	trigger := contract.StartedByQueue
	if item.RetryOf != "" {
		trigger, memo[contract.MemoRetryOf] = contract.StartedByRetry, item.RetryOf
	}
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            contract.JobWorkflowID(item.Job.ID),
		TaskQueue:             contract.TaskQueue(item.Job.Worker),
		WorkflowIDReusePolicy: reuse,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WaitForCancellation:   true,
		TypedSearchAttributes: attributes,
		StaticSummary:         contract.Summary(item.Job),
		Memo:                  memo,
	}), contract.RunJobType, contract.RunInput{Job: item.Job, StartedBy: trigger, Cursor: item.Cursor, RetryOf: item.RetryOf})
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
	case endedWithoutHandler(err) && settles(ctx):
		ended := q.Running.Job
		q.finishRun(ctx, ItemFailed, err)
		q.Settling = &Settling{JobID: ended.ID, Until: workflow.Now(ctx).Add(ended.Options.HeartbeatTimeout.Std())}
		q.settle(ctx)
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
		finished.Error = contract.ErrorReason(err)
	}
	q.finish(finished)
	q.Running, q.end = nil, nil
	if status == ItemFailed {
		q.failed(item, shorten(finished.Error), contract.LastCursor(err), finished.Ended)
	}
}

// failed puts an item that failed among the dead letters, or halts the queue
// over it: as its job says, or the queue where it does not. The cursor is the one that
// the run left, if it did.
func (q *queue) failed(item *RunningItem, text string, cursor json.RawMessage, at time.Time) {
	policy := q.OnFailure
	if queued := item.Job.Queued; queued != nil && queued.OnFailure != "" {
		policy = queued.OnFailure
	}
	if policy == job.OnFailureHalt {
		failed := item.QueueItem.retry(item.RunID, cursor)
		if q.strict {
			failed = q.measured(failed)
		}
		q.Halted = &Halt{Since: at, Error: text, Item: &failed, RunID: item.RunID}
		return
	}
	q.bury(deadLetter(item.QueueItem, item.RunID, text, at))
}

// deadLetter is what is kept of an item that failed.
func deadLetter(item QueueItem, runID, text string, at time.Time) DeadLetter {
	letter := DeadLetter{Sequence: item.Sequence, JobID: item.Job.ID, Ended: at, Error: job.Cut(text, maxDeadText), RunID: runID}
	if hash, err := item.Job.SpecHash(); err == nil {
		letter.SpecHash = hash
	}
	if runID == "" {
		if size := jsonBytes(item.Job); size <= maxDeadJob {
			letter.Job, letter.JobBytes = &item.Job, size
		}
	}
	letter.JobID = job.Cut(letter.JobID, maxShownID)
	return letter
}

// maxDeadText bounds the error of a dead letter; its run has all of it.
const maxDeadText = 200

// watchRun awaits the end of an item that an earlier run of the queue started.
func watchRun(ctx workflow.Context, item *RunningItem) workflow.Future {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           contract.QueuesTaskQueue,
		StartToCloseTimeout: 24 * time.Hour,
		HeartbeatTimeout:    15 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{MaximumInterval: 10 * time.Second},
		Summary:             item.Job.ID,
	})
	return workflow.ExecuteActivity(ctx, contract.WatchRunActivity, WatchRunInput{
		WorkflowID: contract.JobWorkflowID(item.Job.ID), RunID: item.RunID,
	})
}

// WatchRunInput names the run to watch.
type WatchRunInput struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
}

// Types of the errors of a queue's messages.
const (
	// ErrorTypeNotInQueue is that of a job that neither waits nor runs, as far as
	// the queue itself and the pages that the caller has looked into can tell.
	ErrorTypeNotInQueue = "NotInQueue"
	// ErrorTypeLookInPages asks the caller to look for its jobs in the pages that
	// the detail, a [LookInPages], names.
	ErrorTypeLookInPages = "LookInPages"
	// ErrorTypeItemRefused says that one item of several is refused, and not all.
	ErrorTypeItemRefused = "ItemRefused"
	// ErrorTypeQueueBusy asks the caller to try again soon.
	ErrorTypeQueueBusy = "QueueBusy"
)

// Types of the errors of WatchRun and ReadPage.
const (
	errorTypePageNotFound   = "PageNotFound"
	errorTypePageUnreadable = "PageUnreadable"
	errorTypeRunCanceled    = "RunCanceled"
	errorTypeRunFailed      = "RunFailed"
	errorTypeRunCutOff      = "RunCutOff"
)

// canceledRun says that a run, awaited or watched, was canceled.
func canceledRun(err error) bool {
	var app *temporal.ApplicationError
	return temporal.IsCanceledError(err) || errors.As(err, &app) && app.Type() == errorTypeRunCanceled
}

// WatchRun waits until a run has ended. It succeeds if the run completed, fails
// for good if it was canceled, failed, was cut off from its handler or deleted, and is tried again for
// every other reason. The details of the error of a run that failed are an
// ActivityOutput with its cursor.
func WatchRun(ctx context.Context, in WatchRunInput) error {
	done := make(chan error, 1)
	go func() {
		done <- Await(ctx, activity.GetClient(ctx), in.WorkflowID, in.RunID, nil)
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
		// Someone deleted it: its handler hears of that no sooner than of a termination.
		return temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("run %s of %s is not there any more", in.RunID, in.WorkflowID), errorTypeRunCutOff, nil)
	case endedWithoutHandler(err):
		return temporal.NewNonRetryableApplicationError(contract.ErrorReason(err), errorTypeRunCutOff, nil)
	case errors.As(err, &execution):
		// The queue reads the cursor from it, as from the error of the run itself.
		last := contract.LastOutput(err)
		return temporal.NewNonRetryableApplicationError(contract.ErrorReason(err), errorTypeRunFailed, nil,
			contract.ActivityOutput{Worker: last.Worker, Result: job.Result{Cursor: last.Result.Cursor}})
	}
	return err
}
