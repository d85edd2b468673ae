package contract

import "github.com/dendrascience/dendra-jobs/job"

// PageSize bounds a page of items: one is full at either bound.
type PageSize struct {
	Items int `json:"items"`
	Bytes int `json:"bytes"`
}

// DefaultPageSize keeps the state of a queue with 100,000 waiting items of usual
// size (some 650 bytes each) below 256 KiB: 60 KiB of head, 48 KiB of tail, 15
// KiB that list 1,400 pages, and what else is kept.
func DefaultPageSize() PageSize { return PageSize{Items: 100, Bytes: 48 << 10} }

// MaxQueuePages bounds the overflow pages of a queue: with pages of
// [DefaultPageSize] and items of usual size, 150,000 items.
const MaxQueuePages = 2000

// Overflow is what a queue knows of the items in overflow pages. They are numbered without gaps:
// every number from the first page's to Last is in its page, and waits unless it is
// in Removed. So pages never change, and what someone read of them stays true.
type Overflow struct {
	// Pages are the numbers of the first items of the pages, in the order they run.
	Pages []int64 `json:"pages,omitempty"`
	// Last is the number of the last item that was ever in a page.
	Last int64 `json:"last,omitempty"`
	// Removed are the items of pages, or of the tail, that do not wait any more.
	Removed []Range `json:"removed,omitempty"`
	// Released are pages in which nothing waits and that are to be ended.
	Released []int64 `json:"released,omitempty"`
	// StartFailed says that a page could not be started while the queue was halted:
	// it is tried again when the queue goes on.
	StartFailed bool `json:"start_failed,omitempty"`
}

// Range is a range of item numbers, both ends included.
type Range [2]int64

// QueuePage is the input of a JobQueuePage workflow: waiting items of a deep
// queue. It never changes.
type QueuePage struct {
	Queue string `json:"queue"`
	// First is the number of the first item, and of the page.
	First int64       `json:"first"`
	Items []QueueItem `json:"items"`
}

// ReadPageInput is the input of the activity that reads a page.
type ReadPageInput struct {
	Queue    string `json:"queue"`
	Instance string `json:"instance"`
	Page     int64  `json:"page"`
}

// ReadPageOutput is what a page holds.
type ReadPageOutput struct {
	Items []QueueItem `json:"items"`
	// Ran are the numbers of the items whose work the queue has started since they
	// were accepted.
	Ran []int64 `json:"ran,omitempty"`
}

// End is the number of the last item that page i may have.
func (o *Overflow) End(i int) int64 {
	if i+1 < len(o.Pages) {
		return o.Pages[i+1] - 1
	}
	return o.Last
}

// Waits reports whether the item with a number waits in a page.
func (o *Overflow) Waits(sequence int64) bool { return o.CountBetween(sequence, sequence) == 1 }

// Count counts the items that wait in pages.
func (o *Overflow) Count() int { return o.CountBetween(0, o.Last) }

// CountBetween counts the items that wait in pages, with numbers from one to another,
// both included.
func (o *Overflow) CountBetween(from, to int64) int {
	if len(o.Pages) == 0 {
		return 0
	}
	from, to = max(from, o.Pages[0]), min(to, o.Last)
	if from > to {
		return 0
	}
	n := to - from + 1
	for _, r := range o.Removed {
		if first, last := max(r[0], from), min(r[1], to); first <= last {
			n -= last - first + 1
		}
	}
	return int(n)
}

// IsRepeat reports whether a run did the work of an item that was put in before it started.
func IsRepeat(item QueueItem, instance string, of ItemOfRun, ran job.Job) bool {
	return of.Instance == instance && item.Sequence <= of.Accepted && Work(ran) == item.Work()
}
