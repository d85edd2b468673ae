package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/job"
)

// Bounds of one MessageEnqueueBatch.
const (
	// MaxBatchItems is how many items a batch may have.
	MaxBatchItems = 100
	// MaxBatchBytes bounds the sum of their sizes, as [EnqueueItem.Size] counts them.
	MaxBatchBytes = 64 << 10
)

// MaxCursorBytes bounds the cursor of an item, as workers bound those of runs.
const MaxCursorBytes = 32 << 10

// Size bounds the bytes of an item as it is sent in a message and stored in a queue's
// state.
func (i EnqueueItem) Size() int { return i.item().measure() }

// item is the item as the queue keeps it.
func (i EnqueueItem) item() QueueItem {
	return QueueItem{Job: i.Job, Again: i.Again, RetryOf: i.RetryOf, Cursor: i.Cursor}
}

// retries says that the item is one that ran, or failed, before.
func (i EnqueueItem) retries() bool { return i.RetryOf != "" || i.DeadLetter != 0 }

// batch is the request of one item as a batch.
func (r EnqueueRequest) batch() EnqueueBatchRequest {
	return EnqueueBatchRequest{
		Items:     []EnqueueItem{{Job: r.Job, Again: r.Again, Parked: r.Parked, RetryOf: r.RetryOf, Cursor: r.Cursor}},
		RequestID: r.RequestID, Seen: r.Seen,
	}
}

// checkEnqueue is the validator of MessageEnqueue and MessageEnqueueBatch. It
// does not run on replay, so that the rules of a job may change.
func (q *queue) checkEnqueue(in EnqueueBatchRequest) error {
	if len(in.Items) == 0 || len(in.Items) > MaxBatchItems {
		return fmt.Errorf("queue %s refuses a batch of %d items: 1 to %d may be put in at once", q.Name, len(in.Items), MaxBatchItems)
	}
	for _, item := range in.Items {
		if err := checkItem(item, in.RequestID); err != nil {
			return refusedItem(fmt.Errorf("queue %s refuses %w", q.Name, err))
		}
	}
	if _, ok := q.answered(in); ok {
		return nil
	}
	if q.Draining {
		return fmt.Errorf("queue %s is being drained: it takes no more items until it is resumed", q.Name)
	}
	if q.parking() {
		return temporal.NewApplicationError(fmt.Sprintf("queue %s parks items now: try again soon", q.Name), ErrorTypeQueueBusy)
	}
	if err := q.checkSeen(in); err != nil {
		return err
	}
	if err := q.checkOneSpec(in.Items); err != nil {
		return err
	}
	size := 0
	for _, item := range in.Items {
		if err := q.checkKnown(item); err != nil {
			return refusedItem(err)
		}
		if err := q.checkFits(item); err != nil {
			return refusedItem(err)
		}
		size += item.Size()
	}
	if len(in.Items) > 1 && size > MaxBatchBytes {
		return fmt.Errorf("queue %s refuses a batch of %d bytes: at most %d may be put in at once", q.Name, size, MaxBatchBytes)
	}
	if len(in.Items) > 1 && size+q.WaitingBytes > MaxQueueBytes {
		return q.errFull()
	}
	return nil
}

// refusedItem marks an error as that of one item.
func refusedItem(err error) error {
	return temporal.NewApplicationError(err.Error(), ErrorTypeItemRefused)
}

// parking says that the tail has more than the pages that can be started at once:
// no more items are taken in until they have started.
func (q *queue) parking() bool {
	return q.mustPark() && (len(q.Tail) >= parkAtOnce*q.Paging.Items || sizeOf(q.Tail) >= parkAtOnce*q.Paging.Bytes)
}

// checkSeen sends a caller to the pages that may hold its jobs, if it has not
// looked there. The queue itself knows the ids of the pages of one chapter only.
func (q *queue) checkSeen(in EnqueueBatchRequest) error {
	parked := &q.Parked
	if len(parked.Pages) == 0 {
		return nil
	}
	look := LookInPages{Epoch: parked.Epoch, First: parked.Pages[0].First, Before: parked.chapterStart()}
	seen := in.Seen != nil && in.Seen.Epoch == parked.Epoch && in.Seen.Before >= look.Before
	if !seen {
		look.Chapters = parked.chapters()
	}
	for _, item := range in.Items {
		for _, page := range pagesOf(parked.Index, item.Job.ID) {
			looked := slices.ContainsFunc(item.Parked, func(p ParkedItem) bool { return p.Page == page })
			if !looked && !slices.Contains(look.Pages, page) {
				look.Pages = append(look.Pages, page)
			}
		}
	}
	if len(look.Chapters) == 0 && len(look.Pages) == 0 {
		return nil
	}
	return temporal.NewApplicationErrorWithOptions(
		fmt.Sprintf("queue %s has parked pages that may hold the job already: look there, then ask again", q.Name),
		ErrorTypeLookInPages, temporal.ApplicationErrorOptions{Details: []any{look}})
}

// checkOneSpec refuses a batch in which a job has several specs: the queue would
// answer all but the first as known, as it does for a job that is in it already.
func (q *queue) checkOneSpec(items []EnqueueItem) error {
	hashes := map[string]string{}
	for _, item := range items {
		hash, err := item.Job.SpecHash()
		if err != nil {
			return err
		}
		if before, ok := hashes[item.Job.ID]; ok && before != hash {
			return fmt.Errorf("queue %s refuses job %s: it is in the batch with another spec", q.Name, item.Job.ID)
		}
		hashes[item.Job.ID] = hash
	}
	return nil
}

// checkKnown refuses a job that is in the queue with another spec, and the retry of a
// dead letter that is gone, unless what took it away was a retry that is still there.
func (q *queue) checkKnown(item EnqueueItem) error {
	hash, err := item.Job.SpecHash()
	if err != nil {
		return err
	}
	known, ok := q.known(item)
	retried := ok && item.RetryOf != ""
	if item.DeadLetter != 0 && !retried && !q.hasDead(item.DeadLetter) {
		return fmt.Errorf("queue %s has no dead letter %d", q.Name, item.DeadLetter)
	}
	if !ok || known.specHash == hash {
		return nil
	}
	if known.running {
		return fmt.Errorf("queue %s refuses job %s: it runs now with another spec", q.Name, item.Job.ID)
	}
	return fmt.Errorf("queue %s refuses job %s: it waits in it with another spec", q.Name, item.Job.ID)
}

// checkFits decides on signaled items, on replay as well: a change here needs a
// version (workflow.GetVersion). It refuses what a run could not start with.
func (q *queue) checkFits(item EnqueueItem) error {
	j := item.Job
	options := j.Options
	if j.ID == "" || j.Type == "" || j.Worker == "" || options.RunTimeout <= 0 || options.HeartbeatTimeout <= 0 ||
		options.StopGracePeriod <= 0 || options.RetryBackoff.Initial <= 0 || options.RetryBackoff.Coefficient < 1 {
		return fmt.Errorf("queue %s refuses job %q: its definition is not complete", q.Name, j.ID)
	}
	if mode := j.Mode(); mode != job.ModeQueued {
		return fmt.Errorf("queue %s refuses job %s: its mode is %s, not %s", q.Name, j.ID, mode, job.ModeQueued)
	}
	if name := j.Queue(); name != q.Name {
		return fmt.Errorf("queue %s refuses job %s: it belongs to queue %s", q.Name, j.ID, name)
	}
	if len(item.Cursor) > MaxCursorBytes {
		return fmt.Errorf("queue %s refuses job %s: its cursor has %d bytes, more than %d", q.Name, j.ID, len(item.Cursor), MaxCursorBytes)
	}
	full := q.sizeOf(item.item())+q.WaitingBytes > MaxQueueBytes
	if full && indexOf(q.Waiting, j.ID) < 0 && indexOf(q.Tail, j.ID) < 0 {
		return q.errFull()
	}
	return nil
}

func (q *queue) errFull() error {
	return fmt.Errorf("queue %s is full: %d items wait in it", q.Name, q.Depth())
}

// knownItem is an item of a job that is in the queue already.
type knownItem struct {
	sequence int64
	ahead    int
	running  bool
	specHash string // "" if its spec is not JSON
}

// known finds the job of an item in the queue, or in the pages where the caller
// has found it: what waits in a page still is for the queue to say.
func (s *QueueState) known(item EnqueueItem) (knownItem, bool) {
	if held, ahead := s.held(item.Job.ID); held != nil {
		hash, err := held.Job.SpecHash()
		if err != nil {
			hash = ""
		}
		return knownItem{
			sequence: held.Sequence, ahead: ahead, specHash: hash,
			running: s.Running != nil && s.Running.Job.ID == item.Job.ID,
		}, true
	}
	for _, found := range item.Parked {
		if found.Sequence != 0 && s.Parked.Waits(found.Sequence) {
			return knownItem{sequence: found.Sequence, ahead: s.ahead(found.Sequence), specHash: found.SpecHash}, true
		}
	}
	return knownItem{}, false
}

// Position is how many items run before the waiting one with a number, the
// running one included. It reports false if that does not wait.
func (s *QueueState) Position(sequence int64) (ahead int, waits bool) {
	number := func(item QueueItem) bool { return item.Sequence == sequence }
	if i := slices.IndexFunc(s.Waiting, number); i >= 0 {
		return i + s.busy(), true
	}
	if s.Parked.Waits(sequence) {
		return len(s.Waiting) + s.Parked.waiting(0, sequence-1) + s.busy(), true
	}
	if i := slices.IndexFunc(s.Tail, number); i >= 0 {
		return len(s.Waiting) + s.Parked.count() + i + s.busy(), true
	}
	return 0, false
}

// ahead is Position of an item that may have left the queue.
func (s *QueueState) ahead(sequence int64) int {
	ahead, _ := s.Position(sequence)
	return ahead
}

// enqueue appends items unless their jobs are in the queue already.
func (s *QueueState) enqueue(in EnqueueBatchRequest, now time.Time) []EnqueueReceipt {
	if receipts, ok := s.answered(in); ok {
		return receipts
	}
	first := s.Accepted + 1
	var known []int
	receipts := make([]EnqueueReceipt, len(in.Items))
	for i, item := range in.Items {
		if there, ok := s.known(item); ok {
			if hash, err := item.Job.SpecHash(); err == nil && hash == there.specHash {
				s.unburyRetried(item)
			}
			receipts[i] = EnqueueReceipt{Sequence: there.sequence, Ahead: there.ahead, Duplicate: true}
			known = append(known, i)
			continue
		}
		s.unburyRetried(item)
		accepted := item.item()
		accepted.Accepted, accepted.RequestID = now, in.RequestID
		receipts[i] = s.accept(accepted)
	}
	if in.RequestID != "" && s.Paging != nil {
		s.Answered = append(s.Answered, AnsweredRequest{ID: in.RequestID, First: first, Known: known})
		if extra := len(s.Answered) - answeredRequests; extra > 0 {
			s.Answered = append([]AnsweredRequest(nil), s.Answered[extra:]...)
		}
	}
	return receipts
}

// accept numbers an item and appends it to the head, or to the tail if the head
// is full.
func (s *QueueState) accept(item QueueItem) EnqueueReceipt {
	receipt := EnqueueReceipt{Sequence: s.Accepted + 1, Ahead: s.Depth() + s.busy()}
	s.Accepted++
	item.Sequence = s.Accepted
	item = s.measured(item)
	size := item.size()
	if s.headHasRoom(size) {
		s.Waiting = append(s.Waiting, item)
	} else {
		s.Tail = append(s.Tail, item)
	}
	s.WaitingBytes += size
	return receipt
}

// headHasRoom says whether the next item goes to the head: it does as long as
// nothing is parked or in the tail. Only deep queues have pages.
func (s *QueueState) headHasRoom(size int) bool {
	if s.Paging == nil {
		return true
	}
	return len(s.Parked.Pages) == 0 && len(s.Tail) == 0 &&
		len(s.Waiting) < s.Paging.Items && s.WaitingBytes+size <= s.Paging.Bytes
}

// answered finds what a request put in before: its answer was lost on the way,
// and the caller asks again.
func (s *QueueState) answered(in EnqueueBatchRequest) ([]EnqueueReceipt, bool) {
	if in.RequestID == "" {
		return nil, false
	}
	for _, before := range s.Answered {
		if before.ID == in.RequestID {
			return s.answerAgain(in, before), true
		}
	}
	if len(in.Items) != 1 {
		return nil, false
	}
	sequence := s.sequenceOf(in.RequestID)
	return []EnqueueReceipt{{Sequence: sequence, Ahead: s.ahead(sequence)}}, sequence != 0
}

func (s *QueueState) answerAgain(in EnqueueBatchRequest, before AnsweredRequest) []EnqueueReceipt {
	next := before.First
	receipts := make([]EnqueueReceipt, len(in.Items))
	for i, item := range in.Items {
		if slices.Contains(before.Known, i) {
			there, _ := s.known(item)
			receipts[i] = EnqueueReceipt{Sequence: there.sequence, Ahead: there.ahead, Duplicate: true}
			continue
		}
		receipts[i] = EnqueueReceipt{Sequence: next, Ahead: s.ahead(next)}
		next++
	}
	return receipts
}

// sequenceOf is the number of the item that a request of one item put in, if the
// queue itself holds it or has just seen it end, else 0.
func (s *QueueState) sequenceOf(requestID string) int64 {
	if s.Running != nil && s.Running.RequestID == requestID {
		return s.Running.Sequence
	}
	for _, item := range s.Waiting {
		if item.RequestID == requestID {
			return item.Sequence
		}
	}
	for _, item := range s.Recent {
		if item.RequestID == requestID {
			return item.Sequence
		}
	}
	return 0
}
