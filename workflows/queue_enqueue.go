package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// How a queue knows repeats
//
// Items of the same work (job and spec) that wait at the same time make one run.
// The first runs at its place. The others are dropped in one of two places:
//
//   - Here, when an item is put in: if the queue itself holds its work (the head, the
//     tail, the running item, the one it is halted over), the answer names that item.
//     If its request is among the last 32, or ended among the last 20 items, the
//     answer is that of the first time.
//   - In takePage, when the queue takes items back from an overflow page. Nothing is
//     kept of the identities of items in pages, so their repeats are accepted with a
//     number of their own. Such a repeat is dropped at its turn: if the queue holds
//     the work by then, or has started it since the repeat was accepted. The memo of
//     each run has how many items were accepted when it started. An item with a
//     number up to that was put in while the earlier one waited.
//
// Copies may be any number of items apart, since the memo is on the server. The limit:
// a repeat is run again if, at its turn, the run of the first is older than the
// retention of the namespace, or is not the latest run of its job.

// takeSignaled puts in what was signaled, by the checks of MessageEnqueue. Nobody
// waits for an answer: an item that is refused shows as failed, and the others are
// taken. Problems gives what checkItem says of the items, "" for nothing; it may end
// with the last problem.
func (q *queue) takeSignaled(in contract.EnqueueRequest, now time.Time, problems func() []string) {
	if _, ok := q.answered(in); ok {
		return
	}
	found := problems()
	taken := contract.EnqueueRequest{RequestID: in.RequestID}
	for i, item := range in.Items {
		problem := ""
		if i < len(found) {
			problem = found[i]
		}
		if problem == "" {
			problem = text(cmp.Or(q.checkKnown(item), q.checkRoom(item.Size()+sizeOfItems(taken.Items))))
		}
		if problem == "" {
			taken.Items = append(taken.Items, item)
			continue
		}
		q.finish(contract.FinishedItem{
			JobID: item.Job.ID, Status: contract.ItemFailed, Ended: now, Error: problem, RequestID: in.RequestID,
		})
	}
	if len(taken.Items) > 0 {
		q.enqueue(taken, len(in.Items)-len(taken.Items), now)
	}
}

// text is that of an error, "" for none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// recordedProblems is problemsOf. What was found is recorded, once for all signals of
// which it is the same, since the rules of a job may change between a run and its
// replay.
func (q *queue) recordedProblems(ctx workflow.Context, in contract.EnqueueRequest) []string {
	var problems []string
	same := func(a, b any) bool { return slices.Equal(a.([]string), b.([]string)) } //nolint:forcetypeassert // Both are what problemsOf gives.
	err := workflow.MutableSideEffect(ctx, "signaled", func(workflow.Context) any { return problemsOf(q.Name, in) }, same).Get(&problems)
	if err != nil {
		return slices.Repeat([]string{"the item cannot be checked: " + err.Error()}, len(in.Items))
	}
	return problems
}

// problemsOf is what checkItem says of the items of a signal, up to the last problem.
func problemsOf(queue string, in contract.EnqueueRequest) []string {
	problems := []string{}
	for i, item := range in.Items {
		err := checkItem(queue, item, in.RequestID)
		if i >= contract.MaxBatchItems {
			err = errBatchItems(queue, len(in.Items))
		}
		if err != nil {
			problems = append(problems, make([]string, i-len(problems))...)
			problems = append(problems, shorten(err.Error()))
		}
	}
	return problems
}

func errBatchItems(queue string, items int) error {
	return fmt.Errorf("queue %s refuses a batch of %d items: 1 to %d may be put in at once", queue, items, contract.MaxBatchItems)
}

// checkEnqueue is the validator of MessageEnqueue. It does not run on replay, so that
// the rules of a job may change.
func (q *queue) checkEnqueue(in contract.EnqueueRequest) error {
	if len(in.Items) == 0 || len(in.Items) > contract.MaxBatchItems {
		return errBatchItems(q.Name, len(in.Items))
	}
	if before := q.answeredRequest(in.RequestID); before != nil && before.Refused > 0 {
		return fmt.Errorf("queue %s took request %s by a signal and refused %d of its items", q.Name, in.RequestID, before.Refused)
	}
	if _, ok := q.answered(in); ok {
		return nil
	}
	for _, item := range in.Items {
		if err := checkItem(q.Name, item, in.RequestID); err != nil {
			return refusedItem(err)
		}
	}
	if q.startsManyPages() {
		return temporal.NewApplicationError(
			fmt.Sprintf("queue %s starts overflow pages now: try again soon", q.Name), contract.ErrorTypeQueueBusy)
	}
	if err := q.checkOneSpec(in.Items); err != nil {
		return err
	}
	for _, item := range in.Items {
		if err := q.checkKnown(item); err != nil {
			return refusedItem(err)
		}
	}
	size := sizeOfItems(in.Items)
	if len(in.Items) > 1 && size > contract.MaxBatchBytes {
		return fmt.Errorf("queue %s refuses a batch of %d bytes: at most %d may be put in at once", q.Name, size, contract.MaxBatchBytes)
	}
	return q.checkRoom(size)
}

// refusedItem marks an error as that of one item.
func refusedItem(err error) error {
	return temporal.NewApplicationError(err.Error(), contract.ErrorTypeItemRefused)
}

// checkRoom refuses items of a size if the queue takes none, or has no room.
func (q *queue) checkRoom(size int) error {
	switch {
	case q.Draining:
		return fmt.Errorf("queue %s is being drained: it takes no more items until it is resumed", q.Name)
	case size+q.WaitingBytes > contract.MaxQueueBytes:
		return fmt.Errorf("queue %s is full: %d items wait in it", q.Name, q.Depth())
	}
	return nil
}

func sizeOfItems(items []contract.EnqueueItem) int {
	size := 0
	for _, item := range items {
		size += item.Size()
	}
	return size
}

// checkOneSpec refuses a batch in which a job has several specs: its items would wait
// at the same time.
func (q *queue) checkOneSpec(items []contract.EnqueueItem) error {
	works := map[string]string{}
	for _, item := range items {
		work := contract.Work(item.Job)
		if before, ok := works[item.Job.ID]; ok && before != work {
			return fmt.Errorf("queue %s refuses job %s: it is in the batch with another spec", q.Name, item.Job.ID)
		}
		works[item.Job.ID] = work
	}
	return nil
}

// checkKnown refuses a job that the queue itself holds with another spec, and the retry
// of a dead letter that is gone, unless a retry that is still there took it away.
func (q *queue) checkKnown(item contract.EnqueueItem) error {
	held, _ := q.held(item.Job.ID)
	retried := held != nil && item.RetryOf != ""
	if item.DeadLetter != 0 && !retried && !q.hasDeadLetter(item.DeadLetter) {
		return fmt.Errorf("queue %s has no dead letter %d", q.Name, item.DeadLetter)
	}
	switch {
	case held == nil || held.Work() == contract.Work(item.Job):
		return nil
	case q.runs(item.Job.ID):
		return fmt.Errorf("queue %s refuses job %s: it runs now with another spec", q.Name, item.Job.ID)
	}
	return fmt.Errorf("queue %s refuses job %s: it waits in it with another spec", q.Name, item.Job.ID)
}

// enqueue appends items unless the queue itself holds their jobs. Refused is how many
// items the request had besides.
func (q *queue) enqueue(in contract.EnqueueRequest, refused int, now time.Time) contract.EnqueueReceipts {
	if receipts, ok := q.answered(in); ok {
		return receipts
	}
	first := q.Accepted + 1
	known := map[int]int64{}
	receipts := make([]contract.EnqueueReceipt, len(in.Items))
	for i, item := range in.Items {
		held, ahead := q.held(item.Job.ID)
		if held == nil {
			q.dropRetried(item)
			receipts[i] = q.accept(item, in.RequestID, now)
			continue
		}
		if held.Work() == contract.Work(item.Job) {
			q.dropRetried(item)
			held.AllowRerun = held.AllowRerun || item.AllowRerun
		}
		receipts[i] = contract.EnqueueReceipt{Sequence: held.Sequence, Ahead: ahead, Duplicate: true}
		known[i] = held.Sequence
	}
	if in.RequestID != "" {
		q.Answered = append(q.Answered, contract.AnsweredRequest{ID: in.RequestID, First: first, Known: known, Refused: refused})
		if extra := len(q.Answered) - answeredRequests; extra > 0 {
			q.Answered = slices.Clone(q.Answered[extra:])
		}
	}
	return contract.EnqueueReceipts{Receipts: receipts}
}

// accept numbers an item and appends it to the head, or to the tail if the head
// is full.
func (q *queue) accept(item contract.EnqueueItem, requestID string, now time.Time) contract.EnqueueReceipt {
	receipt := contract.EnqueueReceipt{Sequence: q.Accepted + 1, Ahead: q.Depth() + q.Busy()}
	q.Accepted++
	accepted := contract.QueueItem{
		Sequence: q.Accepted, Job: item.Job, Accepted: now, AllowRerun: item.AllowRerun,
		RequestID: requestID, RetryOf: item.RetryOf, Cursor: item.Cursor, Bytes: item.Size(),
	}
	if q.headHasRoom(accepted.Bytes) {
		q.Waiting = append(q.Waiting, accepted)
	} else {
		q.Tail = append(q.Tail, accepted)
	}
	q.WaitingBytes += accepted.Bytes
	return receipt
}

// headHasRoom reports whether the next item goes to the head: it does as long as
// nothing is in pages or in the tail. Only deep queues have pages.
func (q *queue) headHasRoom(size int) bool {
	return len(q.Overflow.Pages) == 0 && len(q.Tail) == 0 &&
		len(q.Waiting) < q.PageSize.Items && q.WaitingBytes+size <= q.PageSize.Bytes
}

// answered finds what a request put in before: its answer was lost on the way,
// and the caller asks again.
func (q *queue) answered(in contract.EnqueueRequest) (contract.EnqueueReceipts, bool) {
	if in.RequestID == "" {
		return contract.EnqueueReceipts{}, false
	}
	if before := q.answeredRequest(in.RequestID); before != nil {
		return contract.EnqueueReceipts{Receipts: q.answerAgain(in, before)}, true
	}
	sequence := q.sequenceOf(in.RequestID)
	if len(in.Items) != 1 || sequence == 0 {
		return contract.EnqueueReceipts{}, false
	}
	return contract.EnqueueReceipts{Receipts: []contract.EnqueueReceipt{{Sequence: sequence, Ahead: q.ahead(sequence)}}}, true
}

// answeredRequest is a request that put items in before, nil if there is none.
func (q *queue) answeredRequest(id string) *contract.AnsweredRequest {
	i := slices.IndexFunc(q.Answered, func(before contract.AnsweredRequest) bool { return id != "" && before.ID == id })
	if i < 0 {
		return nil
	}
	return &q.Answered[i]
}

func (q *queue) answerAgain(in contract.EnqueueRequest, before *contract.AnsweredRequest) []contract.EnqueueReceipt {
	next := before.First
	receipts := make([]contract.EnqueueReceipt, len(in.Items))
	for i := range in.Items {
		sequence, known := before.Known[i]
		if !known {
			sequence = next
			next++
		}
		receipts[i] = contract.EnqueueReceipt{Sequence: sequence, Ahead: q.ahead(sequence), Duplicate: known}
	}
	return receipts
}

// ahead is Position of an item that may have left the queue.
func (q *queue) ahead(sequence int64) int {
	ahead, _ := q.Position(sequence)
	return ahead
}

// sequenceOf is the number of the item that a request of one item put in, if the
// queue itself holds it or has just seen it end, else 0.
func (q *queue) sequenceOf(requestID string) int64 {
	if q.Running != nil && q.Running.RequestID == requestID {
		return q.Running.Sequence
	}
	for _, item := range slices.Concat(q.Waiting, q.Tail) {
		if item.RequestID == requestID {
			return item.Sequence
		}
	}
	for _, item := range q.Recent { // One that was refused has no number.
		if item.RequestID == requestID && item.Sequence != 0 {
			return item.Sequence
		}
	}
	return 0
}

// checkItem refuses an item that is not right in itself. Messages and signals are held
// to it alike. A retry has the definition that its job had: only what cannot be started
// is refused of it, since the rules of a job may have changed since it ran.
func checkItem(queue string, item contract.EnqueueItem, requestID string) error {
	j := item.Job
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("queue %s refuses job %.200q: %s", queue, j.ID, fmt.Sprintf(format, args...))
	}
	for _, id := range []struct{ what, value string }{{"request id", requestID}, {"retried run id", item.RetryOf}} {
		if size := len(id.value); size > contract.MaxRequestIDBytes {
			return refuse("its %s has %d bytes, more than %d", id.what, size, contract.MaxRequestIDBytes)
		}
	}
	if size := len(item.Cursor); size > contract.MaxCursorBytes {
		return refuse("its cursor has %d bytes, more than %d", size, contract.MaxCursorBytes)
	}
	if mode := j.Mode(); mode != job.ModeQueued {
		return refuse("its mode is %s, not %s", mode, job.ModeQueued)
	}
	if name := j.Queue(); name != queue {
		return refuse("it belongs to queue %s", name)
	}
	if _, err := j.DefinitionHash(); err != nil {
		return refuse("%s", err)
	}
	if !item.IsRetry() {
		if problems := j.Validate(); len(problems) > 0 {
			return refuse("%s", problems[0])
		}
	}
	if problem := cannotStart(item); problem != "" {
		return refuse("it cannot be started: %s", problem)
	}
	return nil
}
