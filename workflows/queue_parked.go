package workflows

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sort"
)

// Paging says when items of a deep queue are parked in pages, which are
// workflows of their own.
type Paging struct {
	// Items is how many items a page has, unless Bytes is reached before.
	Items int `json:"items"`
	// Bytes is the size at which a page is full.
	Bytes int `json:"bytes"`
}

// DefaultPaging keeps the state of a queue with 100,000 waiting items of usual
// size (some 650 bytes each) below 256 KiB: 60 KiB of head, 48 KiB of tail, 25
// KiB that list 1,400 pages, 25 KiB of hashes, and what else is kept.
func DefaultPaging() *Paging { return &Paging{Items: 100, Bytes: 48 << 10} }

// chapterPages is how many full pages share one index: 2,000 ids, 22 KiB.
const chapterPages = 20

// Parked tells of the items in pages. They are numbered without gaps: every
// number from the first page's to Last is in its page, and waits unless it is in
// Gone. So pages never change, and what someone read of them stays true.
type Parked struct {
	// Epoch tells the pages of this queue from those of an earlier one of the
	// same name.
	Epoch string `json:"epoch,omitempty"`
	// Pages are the parked pages in the order they will run.
	Pages []PageRef `json:"pages,omitempty"`
	// Last is the number of the last item that was ever parked.
	Last int64 `json:"last,omitempty"`
	// Gone are the items of pages, or of the tail, that do not wait any more.
	Gone []Range `json:"gone,omitempty"`
	// Index has the ids in the pages of the chapter that is not full yet. The
	// last page of every full chapter carries the chapter's index.
	Index []PageIndex `json:"index,omitempty"`
	// Released are pages that were taken over or purged and are to be ended.
	Released []int64 `json:"released,omitempty"`

	// Stuck says that a page could not be started while the queue was halted over an
	// item: it is tried again when the queue goes on.
	Stuck bool `json:"stuck,omitempty"`

	// starting is the first page that is being started. What is gone of its items
	// must not be forgotten.
	starting int64
}

// PageRef names a parked page by the number of its first item.
type PageRef struct {
	First int64 `json:"first"`
	// Index says that the page carries the index of its chapter.
	Index bool `json:"index,omitempty"`
}

// Range is a range of item numbers, both ends included.
type Range [2]int64

// PageIndex has the hashes of the job ids in a page, 8 bytes each, in order.
type PageIndex struct {
	First  int64  `json:"first"`
	Hashes []byte `json:"hashes"`
}

// IDHash is the hash of a job id in a PageIndex.
func IDHash(jobID string) uint64 {
	sum := sha256.Sum256([]byte(jobID))
	return binary.BigEndian.Uint64(sum[:])
}

func newPageIndex(first int64, items []QueueItem) PageIndex {
	index := PageIndex{First: first, Hashes: make([]byte, 0, 8*len(items))}
	for _, item := range items {
		index.Hashes = binary.BigEndian.AppendUint64(index.Hashes, IDHash(item.Job.ID))
	}
	return index
}

// All gives the hashes one by one.
func (p PageIndex) All() []uint64 {
	all := make([]uint64, 0, len(p.Hashes)/8)
	for i := 0; i+8 <= len(p.Hashes); i += 8 {
		all = append(all, binary.BigEndian.Uint64(p.Hashes[i:]))
	}
	return all
}

// pagesOf gives the numbers of the indexed pages that have an id.
func pagesOf(index []PageIndex, jobID string) []int64 {
	if len(index) == 0 {
		return nil
	}
	var pages []int64
	hash := binary.BigEndian.AppendUint64(nil, IDHash(jobID))
	for _, page := range index {
		for at := 0; at+8 <= len(page.Hashes); at += 8 {
			if bytes.Equal(page.Hashes[at:at+8], hash) {
				pages = append(pages, page.First)
				break
			}
		}
	}
	return pages
}

// end is the number of the last item that page i may have.
func (p *Parked) end(i int) int64 {
	if i+1 < len(p.Pages) {
		return p.Pages[i+1].First - 1
	}
	return p.Last
}

// Waits says whether the item with a number waits in a page.
func (p *Parked) Waits(sequence int64) bool {
	return len(p.Pages) > 0 && sequence >= p.Pages[0].First && sequence <= p.Last && p.goneIn(sequence, sequence) == 0
}

// waiting counts the items from one number to another that wait in pages.
func (p *Parked) waiting(from, to int64) int {
	if len(p.Pages) == 0 {
		return 0
	}
	from, to = max(from, p.Pages[0].First), min(to, p.Last)
	if from > to {
		return 0
	}
	return int(to - from + 1 - p.goneIn(from, to))
}

// count counts the items that wait in pages.
func (p *Parked) count() int { return p.waiting(0, p.Last) }

// CountIn counts the items that wait in the page with a number.
func (p *Parked) CountIn(first int64) int {
	for i, page := range p.Pages {
		if page.First == first {
			return p.waiting(first, p.end(i))
		}
	}
	return 0
}

// goneIn counts the numbers of a range that are gone.
func (p *Parked) goneIn(from, to int64) int64 {
	var gone int64
	for _, r := range p.Gone {
		if first, last := max(r[0], from), min(r[1], to); first <= last {
			gone += last - first + 1
		}
	}
	return gone
}

// remove notes that the items of a range do not wait any more.
func (p *Parked) remove(from, to int64) {
	merged := Range{from, to}
	var kept []Range
	for _, r := range p.Gone {
		if r[1]+1 < merged[0] || r[0] > merged[1]+1 {
			kept = append(kept, r)
			continue
		}
		merged = Range{min(r[0], merged[0]), max(r[1], merged[1])}
	}
	kept = append(kept, merged)
	sort.Slice(kept, func(a, b int) bool { return kept[a][0] < kept[b][0] })
	p.Gone = kept
}

// leaves gives what would be known if the items of a range waited no more, with what
// would be in the tail then.
func (p Parked) leaves(from, to int64, tail []QueueItem) Parked {
	p.Pages, p.Gone = slices.Clone(p.Pages), slices.Clone(p.Gone)
	p.Index, p.Released = slices.Clone(p.Index), slices.Clone(p.Released)
	p.remove(from, to)
	p.dropEmpty(tail)
	return p
}

// full says that no more single items can be noted as gone.
func (p *Parked) full() bool { return len(p.Gone) >= maxGoneRanges }

// forget drops what is known of items before a number.
func (p *Parked) forget(before int64) {
	p.Gone = slices.DeleteFunc(p.Gone, func(r Range) bool { return r[1] < before })
	p.Index = slices.DeleteFunc(p.Index, func(i PageIndex) bool { return i.First < before })
}

// dropFirst removes the first page, whose items were taken over or do not wait
// any more.
func (p *Parked) dropFirst(tail []QueueItem) {
	p.Released = append(p.Released, p.Pages[0].First)
	p.Pages = append([]PageRef(nil), p.Pages[1:]...)
	p.tidy(tail)
}

// tidy drops the ranges and indexes that nothing refers to any more.
func (p *Parked) tidy(tail []QueueItem) {
	switch {
	case len(p.Pages) > 0:
		p.forget(p.Pages[0].First)
	case p.starting > 0:
		p.forget(p.starting)
	case len(tail) > 0:
		p.forget(tail[0].Sequence)
	default:
		p.Gone, p.Index = nil, nil
	}
}

// dropEmpty removes the pages in which nothing waits. One that carries the index
// of pages before it stays until these are gone.
func (p *Parked) dropEmpty(tail []QueueItem) {
	var kept []PageRef
	for i, page := range p.Pages {
		needed := page.Index && len(kept) > 0 && !kept[len(kept)-1].Index
		if needed || p.waiting(page.First, p.end(i)) > 0 {
			kept = append(kept, page)
			continue
		}
		p.Released = append(p.Released, page.First)
	}
	p.Pages = kept
	p.Index = slices.DeleteFunc(p.Index, func(i PageIndex) bool {
		return !slices.ContainsFunc(kept, func(page PageRef) bool { return page.First == i.First })
	})
	p.tidy(tail)
}

// chapterStart is the first number that no index in a page tells of.
func (p *Parked) chapterStart() int64 {
	if len(p.Index) > 0 {
		return p.Index[0].First
	}
	return p.Last + 1
}

// chapters are the pages that carry an index.
func (p *Parked) chapters() []int64 {
	var pages []int64
	for _, page := range p.Pages {
		if page.Index {
			pages = append(pages, page.First)
		}
	}
	return pages
}
