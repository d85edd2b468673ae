package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
)

func (q *queue) checkCancelItem(in contract.CancelItemRequest) error {
	switch {
	case in.WaitingOnly && q.runs(in.JobID) && q.meant(in, q.Running.Sequence):
		return fmt.Errorf("job %s runs now in queue %s; try again when it has ended", in.JobID, q.Name)
	case q.runs(in.JobID) && q.meant(in, q.Running.Sequence):
		return nil
	case q.haltedOver(in.JobID) && q.meant(in, q.Halted.Item.Sequence):
		return q.errHaltedOver(in.JobID)
	}
	waits := func(item contract.QueueItem) bool { return item.Job.ID == in.JobID && q.meant(in, item.Sequence) }
	removed := len(q.inOverflow(in))
	if slices.ContainsFunc(q.Tail, waits) {
		removed++
	}
	if removed == 0 && !slices.ContainsFunc(q.Waiting, waits) {
		return q.errNotInQueue(in.JobID)
	}
	return q.checkRanges(removed)
}

// meant reports whether a request to cancel means the item with a number.
func (q *queue) meant(in contract.CancelItemRequest, sequence int64) bool {
	return in.ExpectedSequence == 0 || in.ExpectedSequence == sequence
}

// inOverflow gives the numbers of the items to cancel that wait in overflow pages.
func (q *queue) inOverflow(in contract.CancelItemRequest) []int64 {
	sequences := in.Sequences
	if in.ExpectedSequence != 0 {
		sequences = []int64{in.ExpectedSequence}
	}
	return slices.DeleteFunc(slices.Clone(sequences), func(sequence int64) bool { return !q.Overflow.Waits(sequence) })
}

func (q *queue) errNotInQueue(jobID string) error {
	return temporal.NewApplicationError(fmt.Sprintf("job %s is not in queue %s", jobID, q.Name), contract.ErrorTypeNotInQueue)
}

func (q *queue) errHaltedOver(jobID string) error {
	return fmt.Errorf("job %s failed, and queue %s is halted over it: skip or resume the queue", jobID, q.Name)
}

// checkRanges refuses to note more removed numbers than there is room for.
func (q *queue) checkRanges(more int) error {
	if len(q.Overflow.Removed)+more > maxRemovedRanges {
		return fmt.Errorf("queue %s remembers no more than %d ranges of numbers that left its pages: purge one that joins some of them, or wait until the first pages have run",
			q.Name, maxRemovedRanges)
	}
	return nil
}

// cancelItem removes all items of a job that wait, or those of them that are meant, and
// asks the one that runs to stop.
func (q *queue) cancelItem(in contract.CancelItemRequest, now time.Time) contract.CancelItemReceipt {
	running := q.runs(in.JobID) && q.meant(in, q.Running.Sequence)
	if running {
		q.Running.Canceled = true
	}
	is := func(item contract.QueueItem) bool { return item.Job.ID == in.JobID && q.meant(in, item.Sequence) }
	for i := slices.IndexFunc(q.Waiting, is); i >= 0; i = slices.IndexFunc(q.Waiting, is) {
		q.finishCanceled(q.take(i), now)
	}
	for i := slices.IndexFunc(q.Tail, is); i >= 0; i = slices.IndexFunc(q.Tail, is) {
		q.finishCanceled(q.takeTail(i), now)
	}
	for _, sequence := range q.inOverflow(in) {
		q.removeNumbers(sequence, sequence)
		q.finish(contract.FinishedItem{JobID: in.JobID, Status: contract.ItemCanceled, Sequence: sequence, Ended: now})
	}
	return contract.CancelItemReceipt{Running: running}
}

// finishCanceled records an item that was canceled before it ran.
func (q *queue) finishCanceled(item contract.QueueItem, now time.Time) {
	q.finish(contract.FinishedItem{
		Sequence: item.Sequence, JobID: item.Job.ID, Status: contract.ItemCanceled,
		Accepted: item.Accepted, Ended: now, RequestID: item.RequestID,
	})
}

// takeTail removes the item at place i of the tail. Its number is missing in the
// page that the items around it may get into.
func (q *queue) takeTail(i int) contract.QueueItem {
	item := q.Tail[i]
	q.Tail = slices.Delete(slices.Clone(q.Tail), i, i+1)
	q.WaitingBytes -= item.Bytes
	q.removeNumbers(item.Sequence, item.Sequence)
	return item
}

func (q *queue) checkMoveItem(in contract.MoveItemRequest) error {
	switch {
	case q.runs(in.JobID):
		return fmt.Errorf("job %s runs now in queue %s", in.JobID, q.Name)
	case q.haltedOver(in.JobID):
		return q.errHaltedOver(in.JobID)
	case indexOf(q.Waiting, in.JobID) >= 0:
		return nil
	case in.Item != nil && q.Overflow.Waits(in.Item.Sequence):
		if in.Item.Job.ID != in.JobID {
			return fmt.Errorf("the item to move is job %s, not %s", in.Item.Job.ID, in.JobID)
		}
		if in.Item.Bytes+q.WaitingBytes > maxMovedBytes {
			return fmt.Errorf("queue %s holds as many moved items as it has room for: move job %s when some of them have run", q.Name, in.JobID)
		}
		return q.checkRanges(1)
	case indexOf(q.Tail, in.JobID) >= 0:
		return q.checkRanges(1)
	}
	return q.errNotInQueue(in.JobID)
}

// maxMovedBytes bounds what a queue holds itself once items of overflow pages are moved to its
// front: the rest of its state has its place besides.
const maxMovedBytes = contract.MaxQueueBytes / 2

// moveItem makes an item the next one: the first of the job that waits.
func (q *queue) moveItem(in contract.MoveItemRequest) contract.QueueSummary {
	var item contract.QueueItem
	if i := indexOf(q.Waiting, in.JobID); i >= 0 {
		item = q.take(i)
	} else if in.Item != nil && q.Overflow.Waits(in.Item.Sequence) {
		item = *in.Item
		q.removeNumbers(item.Sequence, item.Sequence)
	} else {
		item = q.takeTail(indexOf(q.Tail, in.JobID))
	}
	q.toFront(item)
	return q.Summary()
}

func (q *queue) toFront(item contract.QueueItem) {
	q.Waiting = append([]contract.QueueItem{item}, q.Waiting...)
	q.WaitingBytes += item.Bytes
}

func (q *queue) onPause(in contract.PauseRequest) contract.QueueSummary {
	before := q.before(false)
	q.Paused, q.PauseReason, q.PauseEnd = true, contract.AddReason(q.PauseReason, in.Reason), in.End
	return q.answer(before)
}

// before is what a pause or a resume finds.
func (q *queue) before(unchanged bool) contract.Before {
	return contract.Before{Paused: q.Paused, Reason: q.PauseReason, End: q.PauseEnd, Unchanged: unchanged}
}

func (q *queue) answer(before contract.Before) contract.QueueSummary {
	summary := q.Summary()
	summary.Before = before
	return summary
}

// unchanged refuses a message that would change nothing, with its answer: it leaves no trace in
// the history.
func (q *queue) unchanged() error {
	return temporal.NewApplicationError(fmt.Sprintf("queue %s is already in the requested state", q.Name), contract.ErrorTypeUnchanged, q.answer(q.before(true)))
}

func (q *queue) checkPause(in contract.PauseRequest) error {
	same := q.PauseEnd.Equal(in.End) && q.PauseReason == contract.AddReason(q.PauseReason, in.Reason)
	if q.Paused && (same || in.UnlessPaused) {
		return q.unchanged()
	}
	return nil
}

func (q *queue) checkResume(contract.ResumeRequest) error {
	if !q.Paused && !q.Draining && q.Halted == nil {
		return q.unchanged()
	}
	return nil
}

// onResume lets the queue go on. A failed item that halted it is tried again,
// first, and goes on at the position that its run left; a queue that was halted while it was drained is drained on.
func (q *queue) onResume(contract.ResumeRequest) contract.QueueSummary {
	before := q.before(false)
	q.endPause()
	halt := q.Halted
	if halt == nil {
		q.Draining = false
		return q.answer(before)
	}
	q.Halted, q.Overflow.StartFailed = nil, false
	if halt.Item != nil {
		q.toFront(*halt.Item)
	}
	return q.answer(before)
}

func (q *queue) checkSkip(contract.SkipRequest) error {
	if q.Halted == nil {
		return fmt.Errorf("queue %s is not halted: there is nothing to skip", q.Name)
	}
	return nil
}

// onSkip gives up what halted the queue, and goes on with the next item.
func (q *queue) onSkip(contract.SkipRequest) contract.QueueSummary {
	halt := q.Halted
	q.Halted, q.Overflow.StartFailed = nil, false
	if item := halt.Item; item != nil {
		q.addDeadLetter(deadLetter(*item, halt.RunID, halt.Error, halt.Since))
	}
	if halt.Page != 0 && len(q.Overflow.Pages) > 0 && q.Overflow.Pages[0] == halt.Page {
		q.Lost += int64(q.Overflow.CountBetween(halt.Page, q.Overflow.End(0)))
		q.dropFirstPage()
	}
	return q.Summary()
}

func (q *queue) checkDrain(contract.DrainRequest) error {
	if q.Draining {
		return q.unchanged()
	}
	return nil
}

func (q *queue) onDrain(contract.DrainRequest) contract.QueueSummary {
	q.Draining = true
	return q.Summary()
}

// purged is the range of numbers that a request means.
func (q *queue) purged(in contract.PurgeRequest) (from, to int64) {
	if in.To == 0 {
		return in.From, q.Accepted
	}
	return in.From, min(in.To, q.Accepted)
}

// checkPurge refuses to remember one range more than there is room for. One that
// touches a range that is removed already, or whole pages at the front, takes no room.
func (q *queue) checkPurge(in contract.PurgeRequest) error {
	after := &queue{QueueState: q.QueueState, startingPage: q.startingPage}
	after.purge(in)
	if n := len(after.Overflow.Removed); n > maxRemovedRanges && n > len(q.Overflow.Removed) {
		return q.checkRanges(1)
	}
	return nil
}

// purge removes what waits, of the given range of numbers. What runs goes on.
func (q *queue) purge(in contract.PurgeRequest) contract.PurgeReceipt {
	from, to := q.purged(in)
	before := q.Depth()
	within := func(item contract.QueueItem) bool { return item.Sequence >= from && item.Sequence <= to }
	q.Waiting = slices.DeleteFunc(slices.Clone(q.Waiting), within)
	q.Tail = slices.DeleteFunc(slices.Clone(q.Tail), within)
	q.WaitingBytes = sizeOf(q.Waiting) + sizeOf(q.Tail)
	if from <= to {
		q.removeNumbers(from, to)
	}
	removed := before - q.Depth()
	q.Canceled += int64(removed)
	return contract.PurgeReceipt{Removed: removed}
}

func (q *queue) checkSet(in contract.SetQueueRequest) error {
	if !in.OnFailure.Valid() {
		return fmt.Errorf("queue %s: %q is not what a failure can do: continue or halt", q.Name, in.OnFailure)
	}
	if q.OnFailure == in.OnFailure {
		return q.unchanged()
	}
	return nil
}

func (q *queue) onSet(in contract.SetQueueRequest) contract.QueueSummary {
	q.OnFailure = in.OnFailure
	return q.Summary()
}

// dropDead forgets dead letters.
func (q *queue) dropDead(in contract.DropDeadRequest) contract.DropDeadReceipt {
	if in.All {
		dropped := len(q.DeadLetters)
		q.DeadLetters = nil
		return contract.DropDeadReceipt{Dropped: dropped}
	}
	dropped := q.dropDeadLetters(func(l contract.DeadLetter) bool { return slices.Contains(in.Sequences, l.Sequence) })
	return contract.DropDeadReceipt{Dropped: dropped}
}

// onReadState answers QueryState.
func (q *queue) onReadState() (contract.QueueState, error) { return q.QueueState, nil }

// handleMessages installs the handlers of all messages.
func (q *queue) handleMessages(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, contract.QueryState, q.onReadState); err != nil {
		return fmt.Errorf("handle query %s: %w", contract.QueryState, err)
	}
	now := func() time.Time { return workflow.Now(ctx) }
	for _, install := range []func() error{
		func() error {
			return handle(ctx, contract.MessageEnqueue,
				func(in contract.EnqueueRequest) contract.EnqueueReceipts { return q.enqueue(in, 0, now()) }, q.checkEnqueue)
		},
		func() error {
			return handle(ctx, contract.MessageCancelItem,
				func(in contract.CancelItemRequest) contract.CancelItemReceipt { return q.cancelItem(in, now()) }, q.checkCancelItem)
		},
		func() error { return handle(ctx, contract.MessageMoveItem, q.moveItem, q.checkMoveItem) },
		func() error { return handle(ctx, contract.MessagePauseQueue, q.onPause, q.checkPause) },
		func() error { return handle(ctx, contract.MessageResumeQueue, q.onResume, q.checkResume) },
		func() error { return handle(ctx, contract.MessageSkip, q.onSkip, q.checkSkip) },
		func() error { return handle(ctx, contract.MessageDrainQueue, q.onDrain, q.checkDrain) },
		func() error { return handle(ctx, contract.MessagePurge, q.purge, q.checkPurge) },
		func() error { return handle(ctx, contract.MessageSetQueue, q.onSet, q.checkSet) },
		func() error { return handle(ctx, contract.MessageDropDead, q.dropDead, nil) },
	} {
		if err := install(); err != nil {
			return err
		}
	}
	return nil
}
