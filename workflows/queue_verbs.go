package workflows

import (
	"fmt"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
)

func (q *queue) checkCancelItem(in CancelItemRequest) error {
	held, _ := q.held(in.JobID)
	switch {
	case held != nil && in.Only != 0 && in.Only != held.Sequence:
		return q.errNotInQueue(in.JobID)
	case q.Running == nil || q.Running.Job.ID != in.JobID:
		return q.checkWaits(in.JobID, in.Sequence)
	case in.WaitingOnly:
		return fmt.Errorf("job %s runs now in queue %s; try again when it has ended", in.JobID, q.Name)
	}
	return nil
}

func (q *queue) errNotInQueue(jobID string) error {
	return temporal.NewApplicationError(fmt.Sprintf("job %s is not in queue %s", jobID, q.Name), ErrorTypeNotInQueue)
}

// checkWaits refuses a job that does not wait: in the queue itself or, if the
// caller has found it there, in a page.
func (q *queue) checkWaits(jobID string, sequence int64) error {
	switch {
	case q.haltedOver(jobID):
		return fmt.Errorf("job %s failed, and queue %s is halted over it: skip or resume the queue", jobID, q.Name)
	case indexOf(q.Waiting, jobID) >= 0:
		return nil
	case indexOf(q.Tail, jobID) >= 0, sequence != 0 && q.Parked.Waits(sequence):
		if q.Parked.full() {
			return fmt.Errorf("queue %s remembers no more single items that left its pages; purge a longer range of numbers, or wait until the first pages have run", q.Name)
		}
		return nil
	}
	return q.errNotInQueue(jobID)
}

func (q *queue) cancelItem(in CancelItemRequest, now time.Time) CancelItemReceipt {
	if q.Running != nil && q.Running.Job.ID == in.JobID {
		q.Running.Canceled = true
		return CancelItemReceipt{Running: true}
	}
	finished := FinishedItem{JobID: in.JobID, Status: ItemCanceled, Sequence: in.Sequence, Ended: now}
	if item, ok := q.remove(in.JobID, in.Sequence); ok {
		finished.Sequence, finished.Accepted, finished.RequestID = item.Sequence, item.Accepted, item.RequestID
	}
	q.finish(finished)
	return CancelItemReceipt{}
}

// remove takes a job from the head, the tail or the page where it has the given
// number. What was in a page is not given: only the page has it.
func (q *queue) remove(jobID string, sequence int64) (QueueItem, bool) {
	if i := indexOf(q.Waiting, jobID); i >= 0 {
		return q.take(i), true
	}
	if i := indexOf(q.Tail, jobID); i >= 0 {
		return q.takeTail(i), true
	}
	q.Parked.remove(sequence, sequence)
	q.Parked.dropEmpty(q.Tail)
	return QueueItem{}, false
}

// takeTail removes the item at place i of the tail. Its number is missing in the
// page that the items around it may be parked in.
func (q *queue) takeTail(i int) QueueItem {
	item := q.Tail[i]
	q.Tail = append(q.Tail[:i:i], q.Tail[i+1:]...)
	q.WaitingBytes -= item.size()
	q.Parked.remove(item.Sequence, item.Sequence)
	q.Parked.tidy(q.Tail)
	return item
}

func (q *queue) checkMoveItem(in MoveItemRequest) error {
	if q.Running != nil && q.Running.Job.ID == in.JobID {
		return fmt.Errorf("job %s runs now in queue %s", in.JobID, q.Name)
	}
	if in.Parked == nil {
		return q.checkWaits(in.JobID, 0)
	}
	if in.Parked.Job.ID != in.JobID {
		return fmt.Errorf("the parked item is job %s, not %s", in.Parked.Job.ID, in.JobID)
	}
	if in.Parked.size()+q.WaitingBytes > maxMovedBytes {
		return fmt.Errorf("queue %s holds as many moved items as it has room for: move job %s when some of them have run", q.Name, in.JobID)
	}
	return q.checkWaits(in.JobID, in.Parked.Sequence)
}

// maxMovedBytes bounds what a queue holds itself once parked items are moved to its
// front: the rest of its state has its place besides.
const maxMovedBytes = MaxQueueBytes / 2

// moveItem makes an item the next one.
func (q *queue) moveItem(in MoveItemRequest) QueueSummary {
	var sequence int64
	if in.Parked != nil {
		sequence = in.Parked.Sequence
	}
	item, ok := q.remove(in.JobID, sequence)
	if !ok {
		item = *in.Parked
	}
	q.toFront(item)
	return q.Summary()
}

func (q *queue) toFront(item QueueItem) {
	q.Waiting = append([]QueueItem{item}, q.Waiting...)
	q.WaitingBytes += item.size()
}

func (q *queue) onPause(in contract.PauseRequest) QueueSummary {
	q.Paused, q.PauseReason = true, job.Cut(in.Reason, maxPauseReason)
	return q.Summary()
}

// onResume lets the queue go on. A failed item that halted it is tried again,
// first, and goes on at the position that its run left; a queue that was halted while it was drained is drained on.
func (q *queue) onResume(contract.ResumeRequest) QueueSummary {
	q.Paused, q.PauseReason = false, ""
	halt := q.Halted
	if halt == nil {
		q.Draining = false
		return q.Summary()
	}
	q.Halted, q.Parked.Stuck = nil, false
	if halt.Item != nil {
		q.toFront(*halt.Item)
	}
	return q.Summary()
}

func (q *queue) checkSkip(SkipRequest) error {
	if q.Halted == nil {
		return fmt.Errorf("queue %s is not halted: there is nothing to skip", q.Name)
	}
	return nil
}

// onSkip gives up what halted the queue, and goes on with the next item.
func (q *queue) onSkip(SkipRequest) QueueSummary {
	halt := q.Halted
	q.Halted, q.Parked.Stuck = nil, false
	if item := halt.Item; item != nil {
		q.bury(deadLetter(*item, halt.RunID, halt.Error, halt.Since))
	}
	if halt.Page != 0 && len(q.Parked.Pages) > 0 && q.Parked.Pages[0].First == halt.Page {
		q.Lost += int64(q.Parked.waiting(halt.Page, q.Parked.end(0)))
		q.Parked.dropFirst(q.Tail)
	}
	return q.Summary()
}

func (q *queue) onDrain(DrainRequest) QueueSummary {
	q.Draining = true
	return q.Summary()
}

// purged is the range of numbers that a request means.
func (q *queue) purged(in PurgeRequest) (from, to int64) {
	if in.To == 0 {
		return in.From, q.Accepted
	}
	return in.From, min(in.To, q.Accepted)
}

// checkPurge refuses to remember one range more than there is room for. One that
// touches a range that is gone already, or whole pages at the front, takes no room.
func (q *queue) checkPurge(in PurgeRequest) error {
	from, to := q.purged(in)
	if q.Paging == nil || from > to {
		return nil
	}
	tail := slices.DeleteFunc(slices.Clone(q.Tail), func(item QueueItem) bool { return item.Sequence >= from && item.Sequence <= to })
	after := len(q.Parked.leaves(from, to, tail).Gone)
	if after > maxGoneRanges && after > len(q.Parked.Gone) {
		return fmt.Errorf("queue %s remembers no more than %d ranges of numbers that left its pages: purge one that joins some of them, or wait until the first pages have run",
			q.Name, maxGoneRanges)
	}
	return nil
}

// purge removes what waits, of the given range of numbers. What runs goes on.
func (q *queue) purge(in PurgeRequest) PurgeReceipt {
	from, to := q.purged(in)
	before := q.Depth()
	within := func(item QueueItem) bool { return item.Sequence >= from && item.Sequence <= to }
	q.Waiting = slices.DeleteFunc(slices.Clone(q.Waiting), within)
	q.Tail = slices.DeleteFunc(slices.Clone(q.Tail), within)
	q.WaitingBytes = sizeOf(q.Waiting) + sizeOf(q.Tail)
	if q.Paging != nil && from <= to {
		q.Parked.remove(from, to)
		q.Parked.dropEmpty(q.Tail)
	}
	removed := before - q.Depth()
	q.Canceled += int64(removed)
	return PurgeReceipt{Removed: removed}
}

func (q *queue) checkSet(in SetQueueRequest) error {
	if !in.OnFailure.Valid() {
		return fmt.Errorf("queue %s: %q is not what a failure can do: continue or halt", q.Name, in.OnFailure)
	}
	return nil
}

func (q *queue) onSet(in SetQueueRequest) QueueSummary {
	q.OnFailure = in.OnFailure
	return q.Summary()
}

// dropDead forgets dead letters.
func (q *queue) dropDead(in DropDeadRequest) DropDeadReceipt {
	if in.All {
		dropped := len(q.DeadLetters)
		q.DeadLetters = nil
		return DropDeadReceipt{Dropped: dropped}
	}
	dropped := 0
	for _, sequence := range in.Sequences {
		if q.unbury(sequence) {
			dropped++
		}
	}
	return DropDeadReceipt{Dropped: dropped}
}

// onReadState answers QueryState.
func (q *queue) onReadState() (QueueState, error) { return q.QueueState, nil }

// handleMessages installs the handlers of all messages.
func (q *queue) handleMessages(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, contract.QueryState, q.onReadState); err != nil {
		return fmt.Errorf("handle query %s: %w", contract.QueryState, err)
	}
	now := func() time.Time { return workflow.Now(ctx) }
	for _, install := range []func() error{
		func() error {
			return handle(ctx, MessageEnqueue,
				func(in EnqueueRequest) EnqueueReceipt { return q.enqueue(in.batch(), now())[0] },
				func(in EnqueueRequest) error { return q.checkEnqueue(in.batch()) })
		},
		func() error {
			return handle(ctx, MessageEnqueueBatch, func(in EnqueueBatchRequest) EnqueueBatchReceipt {
				return EnqueueBatchReceipt{Receipts: q.enqueue(in, now())}
			}, q.checkEnqueue)
		},
		func() error {
			return handle(ctx, MessageCancelItem,
				func(in CancelItemRequest) CancelItemReceipt { return q.cancelItem(in, now()) }, q.checkCancelItem)
		},
		func() error { return handle(ctx, MessageMoveItem, q.moveItem, q.checkMoveItem) },
		func() error { return handle(ctx, MessagePauseQueue, q.onPause, nil) },
		func() error { return handle(ctx, MessageResumeQueue, q.onResume, nil) },
		func() error { return handle(ctx, MessageSkip, q.onSkip, q.checkSkip) },
		func() error { return handle(ctx, MessageDrainQueue, q.onDrain, nil) },
		func() error { return handle(ctx, MessagePurge, q.purge, q.checkPurge) },
		func() error { return handle(ctx, MessageSetQueue, q.onSet, q.checkSet) },
		func() error { return handle(ctx, MessageDropDead, q.dropDead, nil) },
	} {
		if err := install(); err != nil {
			return err
		}
	}
	return nil
}
