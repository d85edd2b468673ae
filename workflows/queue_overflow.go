package workflows

import (
	"cmp"
	"slices"

	"github.com/dendrascience/dendra-jobs/contract"
)

// removeNumbers notes that the items of a range do not wait any more, in pages or in
// the tail, whose items may get into one.
func (q *queue) removeNumbers(from, to int64) {
	merged := contract.Range{from, to}
	var kept []contract.Range
	for _, r := range q.Overflow.Removed {
		if r[1]+1 < merged[0] || r[0] > merged[1]+1 {
			kept = append(kept, r)
			continue
		}
		merged = contract.Range{min(r[0], merged[0]), max(r[1], merged[1])}
	}
	kept = append(kept, merged)
	slices.SortFunc(kept, func(a, b contract.Range) int { return cmp.Compare(a[0], b[0]) })
	q.Overflow.Removed = kept
	q.dropEmptyPages()
}

// dropFirstPage removes the first page, whose items were taken or do not wait any more.
func (q *queue) dropFirstPage() {
	q.Overflow.Released = append(q.Overflow.Released, q.Overflow.Pages[0])
	q.Overflow.Pages = slices.Clone(q.Overflow.Pages[1:])
	q.forgetRemoved()
}

// dropEmptyPages removes the pages in which nothing waits.
func (q *queue) dropEmptyPages() {
	var kept []int64
	for i, first := range q.Overflow.Pages {
		if q.Overflow.CountBetween(first, q.Overflow.End(i)) > 0 {
			kept = append(kept, first)
			continue
		}
		q.Overflow.Released = append(q.Overflow.Released, first)
	}
	q.Overflow.Pages = kept
	q.forgetRemoved()
}

// forgetRemoved drops the ranges that no page and no item of the tail comes after.
func (q *queue) forgetRemoved() {
	var before int64
	switch {
	case len(q.Overflow.Pages) > 0:
		before = q.Overflow.Pages[0]
	case q.startingPage > 0: // What is removed of its items must not be forgotten.
		before = q.startingPage
	case len(q.Tail) > 0:
		before = q.Tail[0].Sequence
	default:
		q.Overflow.Removed = nil
	}
	q.Overflow.Removed = slices.DeleteFunc(slices.Clone(q.Overflow.Removed), func(r contract.Range) bool { return r[1] < before })
}
