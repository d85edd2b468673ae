package workflows

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// Bounds of what a queue keeps to show and to work with.
const (
	recentItems      = 20
	maxDeadLetters   = 100
	maxRemovedRanges = 500
	answeredRequests = 32
)

// indexOf gives the place of a job among items, or -1.
func indexOf(items []contract.QueueItem, jobID string) int {
	for i := range items {
		if items[i].Job.ID == jobID {
			return i
		}
	}
	return -1
}

// runs reports whether a job runs now.
func (q *queue) runs(jobID string) bool { return q.Running != nil && q.Running.Job.ID == jobID }

// sizeOf is the size of items in the state.
func sizeOf(items []contract.QueueItem) int {
	size := 0
	for _, item := range items {
		size += item.Bytes
	}
	return size
}

// held finds a job that the queue itself holds, running, waiting, or failed so that
// the queue is halted over it, and how many items are ahead of it.
func (q *queue) held(jobID string) (item *contract.QueueItem, ahead int) {
	if q.Running != nil && q.Running.Job.ID == jobID {
		return &q.Running.QueueItem, 0
	}
	if q.haltedOver(jobID) {
		return q.Halted.Item, 0
	}
	if i := indexOf(q.Waiting, jobID); i >= 0 {
		return &q.Waiting[i], i + q.Busy()
	}
	if i := indexOf(q.Tail, jobID); i >= 0 {
		return &q.Tail[i], len(q.Waiting) + q.Overflow.Count() + i + q.Busy()
	}
	return nil, 0
}

// haltedOver reports whether the queue is halted over the failure of a job.
func (q *queue) haltedOver(jobID string) bool {
	return q.Halted != nil && q.Halted.Item != nil && q.Halted.Item.Job.ID == jobID
}

// take removes the waiting item at place i of the head.
func (q *queue) take(i int) contract.QueueItem {
	item := q.Waiting[i]
	q.Waiting = append(q.Waiting[:i:i], q.Waiting[i+1:]...)
	q.WaitingBytes -= item.Bytes
	return item
}

// finish records the end of an item.
func (q *queue) finish(item contract.FinishedItem) {
	item.Error = shorten(item.Error)
	item.JobID, item.RequestID = job.Cut(item.JobID, maxShownID), job.Cut(item.RequestID, contract.MaxRequestIDBytes)
	switch item.Status {
	case contract.ItemCompleted:
		q.Completed++
	case contract.ItemFailed:
		q.Failed++
	case contract.ItemCanceled:
		q.Canceled++
	case contract.ItemSkipped:
		q.Skipped++
	}
	if item.Ran() {
		q.Pace.Count(item.Ended)
	}
	q.Recent = append(q.Recent, item)
	if extra := len(q.Recent) - recentItems; extra > 0 {
		q.Recent = append([]contract.FinishedItem(nil), q.Recent[extra:]...)
	}
}

// addDeadLetter keeps a failed item. The oldest letters make room.
func (q *queue) addDeadLetter(letter contract.DeadLetter) {
	q.DeadLetters = append(q.DeadLetters, letter)
	if extra := len(q.DeadLetters) - maxDeadLetters; extra > 0 {
		q.DeadLetters = slices.Clone(q.DeadLetters[extra:])
		q.DeadDropped += int64(extra)
	}
}

// hasDeadLetter reports whether there is a dead letter of an item.
func (q *queue) hasDeadLetter(sequence int64) bool {
	return slices.ContainsFunc(q.DeadLetters, func(l contract.DeadLetter) bool { return l.Sequence == sequence })
}

// dropDeadLetters removes the dead letters that match, and counts them.
func (q *queue) dropDeadLetters(match func(contract.DeadLetter) bool) (dropped int) {
	before := len(q.DeadLetters)
	q.DeadLetters = slices.DeleteFunc(slices.Clone(q.DeadLetters), match)
	return before - len(q.DeadLetters)
}

// dropRetried removes the dead letters that an item is a retry of: the one that it
// names, and those of the same job with the same spec.
func (q *queue) dropRetried(item contract.EnqueueItem) {
	if !item.IsRetry() {
		return
	}
	hash, err := item.Job.DefinitionHash()
	q.dropDeadLetters(func(l contract.DeadLetter) bool {
		if l.Sequence == item.DeadLetter {
			return true
		}
		return item.RetryOf != "" && l.JobID == item.Job.ID && (l.RunID == item.RetryOf || err == nil && l.DefinitionHash == hash)
	})
}

// details is the text that the Web UI shows for the running workflow.
func (q *queue) details() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**queue %s** · %d waiting · %d completed · %d failed · %d canceled\n", q.Name, q.Depth(), q.Completed, q.Failed, q.Canceled)
	if q.Paused {
		fmt.Fprintf(&b, "\nPaused: %s\n", contract.Plain(contract.PauseText(q.PauseReason, q.PauseEnd)))
	}
	if q.Draining {
		b.WriteString("\nDraining: takes no more items.\n")
	}
	if h := q.Halted; h != nil {
		fmt.Fprintf(&b, "\nHalted since %s: %s\n", h.Since.UTC().Format(time.RFC3339), contract.Plain(h.Reason()))
	}
	if n := int64(len(q.DeadLetters)) + q.DeadDropped; n > 0 {
		fmt.Fprintf(&b, "\nDead letters: %d, the oldest %d dropped\n", n, q.DeadDropped)
	}
	if w := q.Stopping; w != nil {
		fmt.Fprintf(&b, "\nWaiting until %s for the handler of the terminated run of %s to stop\n", w.Until.UTC().Format(time.TimeOnly), w.JobID)
	}
	if r := q.Running; r != nil {
		fmt.Fprintf(&b, "\nRunning: #%d %s since %s\n", r.Sequence, r.Job.ID, r.Started.UTC().Format(time.RFC3339))
	}
	for i, item := range q.Waiting {
		if i == 5 {
			fmt.Fprintf(&b, "\n… and %d more\n", q.Depth()-i)
			break
		}
		fmt.Fprintf(&b, "\n- #%d %s", item.Sequence, item.Job.ID)
	}
	return b.String()
}
