package workflows

import (
	"encoding/json"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
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
func JobQueue(ctx workflow.Context, state contract.QueueState) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	q := &queue{QueueState: state, signals: workflow.GetSignalChannel(ctx, contract.SignalEnqueue)}
	if q.Instance == "" {
		q.Instance = instance(workflow.GetInfo(ctx))
	}
	if q.PageSize == (contract.PageSize{}) {
		q.PageSize = contract.DefaultPageSize()
	}
	q.takeUnread(ctx)
	if err := q.handleMessages(ctx); err != nil {
		return err
	}
	return q.serve(ctx)
}

// instance is the QueueState.Instance of a new queue.
func instance(info *workflow.Info) string {
	id := info.FirstRunID
	if id == "" {
		id = info.WorkflowExecution.RunID
	}
	return id[:min(len(id), 8)]
}

type queue struct {
	contract.QueueState
	signals workflow.ReceiveChannel
	// end resolves when the running item has ended.
	end workflow.Future
	// reading resolves when the first page has been read, and readingPage is its number.
	reading     workflow.Future
	readingPage int64
	// startedWhileReading is the work of the runs that have started since.
	startedWhileReading []string
	// startingPage is the number of the first page that is being started.
	startingPage int64
	// stopped resolves when the queue is Stopping no more.
	stopped workflow.Future
	timer   pauseTimer
}

// serve is the one loop that decides what runs.
func (q *queue) serve(ctx workflow.Context) error {
	if q.Running != nil {
		q.end = watchRun(ctx, q.Running)
		// A request of the last moment may not have left: it is sent again.
		q.Running.CancelSent = false
	}
	if q.Stopping != nil {
		q.awaitHandler(ctx)
	}
	for {
		q.drainSignals(ctx)
		switch {
		case ready(q.end):
			q.endRun(ctx)
		case ready(q.reading):
			q.takePage(ctx)
		case ready(q.stopped):
			q.Stopping, q.stopped = nil, nil
		case q.mustTimePause():
			q.timePause(ctx)
		case ready(q.timer.over):
			q.endPause()
		case q.mustOverflow():
			q.startPages(ctx)
		case mustContinueAsNew(ctx):
			return continueAsNew(ctx, contract.JobQueueType, q.next())
		case q.mustReadPage():
			q.readPage(ctx)
		case q.mayStart():
			q.startRun(ctx)
		case q.mustCancel():
			q.cancelRun(ctx)
		case len(q.Overflow.Released) > 0:
			q.releasePages(ctx)
		default:
			workflow.SetCurrentDetails(ctx, q.details())
			if err := q.awaitWork(ctx); err != nil {
				return err
			}
		}
	}
}

// ready reports whether a future, if there is one, has a result.
func ready(future workflow.Future) bool { return future != nil && future.IsReady() }

// next is the state for the next run.
func (q *queue) next() contract.QueueState {
	next := q.QueueState
	next.Generation++
	next.SignalsRead = 0
	return next
}

// drainSignals takes in what was signaled. The loop itself reads the signals: a
// coroutine of its own could hold one while the loop continues as new.
func (q *queue) drainSignals(ctx workflow.Context) {
	for !q.mustOverflow() {
		var in contract.EnqueueRequest
		if !q.signals.ReceiveAsync(&in) {
			return
		}
		q.SignalsRead++
		q.takeSignaled(in, workflow.Now(ctx), func() []string { return q.recordedProblems(ctx, in) })
	}
}

// takeUnread takes in the signals that a recovered queue had not read.
func (q *queue) takeUnread(ctx workflow.Context) {
	for _, in := range q.UnreadSignals {
		q.takeSignaled(in, workflow.Now(ctx), func() []string { return q.recordedProblems(ctx, in) })
	}
	q.UnreadSignals = nil
}

// awaitWork waits until there is something to do.
func (q *queue) awaitWork(ctx workflow.Context) error {
	return workflow.Await(ctx, func() bool {
		return q.signals.Len() > 0 || ready(q.end) || ready(q.reading) || ready(q.stopped) || ready(q.timer.over) || q.mustTimePause() || q.mayStart() || q.mustCancel() ||
			q.mustOverflow() || q.mustReadPage() || len(q.Overflow.Released) > 0 ||
			mustContinueAsNew(ctx)
	})
}

func (q *queue) mayStart() bool {
	return q.Running == nil && q.stopped == nil && !q.Paused && q.Halted == nil && len(q.Waiting) > 0
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
	q.Running = &contract.RunningItem{QueueItem: q.take(0), Started: workflow.Now(ctx)}
	item := q.Running
	attributes, err := contract.Attributes(item.Job)
	if err != nil {
		q.finishRun(ctx, contract.ItemFailed, err)
		return
	}
	reuse := enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
	if item.AllowRerun {
		reuse = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	}
	memo := map[string]any{contract.MemoJob: item.Job, contract.MemoItem: contract.ItemOfRun{
		Instance: q.Instance, Sequence: item.Sequence, Accepted: q.Accepted, Since: item.Accepted,
	}}
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
			q.finishRun(ctx, contract.ItemSkipped, errors.New("the job ran before, or runs outside the queue now"))
			return
		}
		q.finishRun(ctx, contract.ItemFailed, err)
		return
	}
	item.RunID = execution.RunID
	q.end = child
	if q.reading != nil {
		q.startedWhileReading = append(q.startedWhileReading, item.Work())
	}
}

// endRun takes in the end of the running item.
func (q *queue) endRun(ctx workflow.Context) {
	err := q.end.Get(ctx, nil)
	switch {
	case err == nil:
		q.finishRun(ctx, contract.ItemCompleted, nil)
	case canceledRun(err):
		q.finishRun(ctx, contract.ItemCanceled, nil)
	case contract.EndedWithoutHandler(err):
		ended := q.Running.Job
		q.finishRun(ctx, contract.ItemFailed, err)
		q.Stopping = &contract.StoppingHandler{JobID: ended.ID, Until: workflow.Now(ctx).Add(ended.Options.HeartbeatTimeout.Std())}
		q.awaitHandler(ctx)
	default:
		q.finishRun(ctx, contract.ItemFailed, err)
	}
}

func (q *queue) finishRun(ctx workflow.Context, status contract.ItemStatus, err error) {
	item := q.Running
	finished := contract.FinishedItem{
		Sequence: item.Sequence, JobID: item.Job.ID, Status: status, RunID: item.RunID,
		Accepted: item.Accepted, Started: item.Started, Ended: workflow.Now(ctx), RequestID: item.RequestID,
	}
	if err != nil {
		finished.Error = contract.ErrorReason(err)
	}
	q.finish(finished)
	q.Running, q.end = nil, nil
	if status == contract.ItemFailed {
		q.failed(item, shorten(finished.Error), contract.LastCursor(err), finished.Ended)
	}
}

// failed puts an item that failed among the dead letters, or halts the queue
// over it: as its job says, or the queue where it does not. The cursor is the one that
// the run left, if it did.
func (q *queue) failed(item *contract.RunningItem, text string, cursor json.RawMessage, at time.Time) {
	policy := q.OnFailure
	if queued := item.Job.Queued; queued != nil && queued.OnFailure != "" {
		policy = queued.OnFailure
	}
	if policy == job.OnFailureHalt {
		failed := retryOf(item.QueueItem, item.RunID, cursor)
		q.Halted = &contract.Halt{Since: at, Error: text, Item: &failed, RunID: item.RunID}
		return
	}
	q.addDeadLetter(deadLetter(item.QueueItem, item.RunID, text, at))
}

// retryOf is the item as it is tried again after its run failed, from the position that
// the run left. One that could not even be started, or left none, is tried as it was.
func retryOf(item contract.QueueItem, runID string, cursor json.RawMessage) contract.QueueItem {
	if runID != "" {
		item.RetryOf = runID
	}
	if len(cursor) > 0 && len(cursor) <= contract.MaxCursorBytes {
		item.Bytes += len(cursor) - len(item.Cursor)
		item.Cursor = cursor
	}
	return item
}

// deadLetter is what is kept of an item that failed.
func deadLetter(item contract.QueueItem, runID, text string, at time.Time) contract.DeadLetter {
	letter := contract.DeadLetter{
		Sequence: item.Sequence, JobID: item.Job.ID, Ended: at, Error: job.Cut(text, maxDeadText), RunID: runID,
	}
	if hash, err := item.Job.DefinitionHash(); err == nil {
		letter.DefinitionHash = hash
	}
	return letter
}

// maxDeadText bounds the error of a dead letter; its run has all of it.
const maxDeadText = 200

// watchRun awaits the end of an item that an earlier run of the queue started.
func watchRun(ctx workflow.Context, item *contract.RunningItem) workflow.Future {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           contract.QueuesTaskQueue,
		StartToCloseTimeout: 24 * time.Hour,
		HeartbeatTimeout:    15 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{MaximumInterval: 10 * time.Second},
		Summary:             item.Job.ID,
	})
	return workflow.ExecuteActivity(ctx, contract.WatchRunActivity, contract.WatchRunInput{
		WorkflowID: contract.JobWorkflowID(item.Job.ID), RunID: item.RunID,
	})
}

// canceledRun reports whether a run, awaited or watched, was canceled.
func canceledRun(err error) bool {
	var app *temporal.ApplicationError
	return temporal.IsCanceledError(err) || errors.As(err, &app) && app.Type() == contract.ErrorTypeRunCanceled
}
