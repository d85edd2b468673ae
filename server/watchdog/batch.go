package watchdog

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// batch are records of one phase that this replica tells together.
type batch struct {
	group string
	wait  time.Duration // before it is sent

	mu      sync.Mutex
	closed  bool // it takes no more
	records []alerts.Stored
}

// add adds a record, and reports whether the batch has taken it.
func (b *batch) add(record alerts.Stored) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.records = append(b.records, record)
	}
	return !b.closed
}

func (b *batch) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// close has the batch take no more records, and gives those that it has.
func (b *batch) close() []alerts.Stored {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return slices.Clone(b.records)
}

// update puts a record as it was written in place of the one that the batch has.
func (b *batch) update(record alerts.Stored) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := b.at(record.Name); at >= 0 {
		b.records[at] = record
	}
}

// lose drops a record that another replica has taken over.
func (b *batch) lose(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := b.at(name); at >= 0 {
		b.records = slices.Delete(b.records, at, at+1)
	}
}

func (b *batch) at(name string) int {
	return slices.IndexFunc(b.records, func(r alerts.Stored) bool { return r.Name == name })
}

// maxWrites is how many records of a batch are written at once.
const maxWrites = 8

// each does something with all records that the batch has, and gives how many it has then.
func (b *batch) each(do func(alerts.Stored)) int {
	b.mu.Lock()
	records := slices.Clone(b.records)
	b.mu.Unlock()
	var group errgroup.Group
	group.SetLimit(maxWrites)
	for _, record := range records {
		group.Go(func() error {
			do(record)
			return nil
		})
	}
	_ = group.Wait() // None has an error.
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.records)
}

// groupOf is the group of a record that this replica is about to make: that of the batch that
// waits for more of its phase, or else another one.
func (w *Watchdog) groupOf(phase alerts.Phase) string {
	if b := w.waiting[phase]; b != nil && !b.isClosed() {
		return b.group
	}
	return rand.Text()
}

// join adds a record that this replica has written to the batch of its group, which is sent
// after a while. If another replica has made the group, all of it is taken over within two
// rounds.
func (w *Watchdog) join(ctx context.Context, record alerts.Stored, taken bool) {
	w.setBusy(record.Name, true)
	if b := w.batches[record.Group]; b != nil && b.add(record) {
		return
	}
	b := &batch{group: record.Group, wait: w.GroupWait, records: []alerts.Stored{record}}
	if taken {
		b.wait = min(b.wait, 2*w.Every)
	} else if b.wait > 0 {
		w.waiting[record.Phase] = b
	}
	w.batches[record.Group] = b
	w.sends.Go(func() { w.deliver(ctx, b) })
}
