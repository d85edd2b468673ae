package reconcile

import (
	"context"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// keys is a work queue of keys. No key is worked on twice at once: one that is added
// meanwhile is worked on again. One that fails is tried again, after a wait that grows
// with its failures in a row.
type keys struct {
	ctx     context.Context //nolint:containedctx // The life of the queue.
	do      func(ctx context.Context, key string) error
	backoff job.Backoff
	slots   chan struct{}
	closing chan struct{}
	work    *job.Group

	mu      sync.Mutex
	closed  bool
	entries map[string]*entry
}

// entry is a key that waits for a slot, is worked on, or has failed.
type entry struct {
	waiting, working bool
	again            bool // it was added while it was worked on
	failures         int  // in a row
	retry            *time.Timer
}

// newKeys makes a queue that works on so many keys at once, until ctx ends.
func newKeys(ctx context.Context, parallel int, backoff job.Backoff, do func(ctx context.Context, key string) error) *keys {
	work, ctx := job.NewGroup(ctx)
	return &keys{
		ctx: ctx, do: do, backoff: backoff, slots: make(chan struct{}, parallel), work: work,
		closing: make(chan struct{}), entries: map[string]*entry{},
	}
}

// add has a key worked on as soon as there is a slot, also if it waits after a failure.
func (k *keys) add(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.addLocked(key)
}

// addUnlessFailed is add for a key that does not wait after a failure.
func (k *keys) addUnlessFailed(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.entries[key]; e == nil || e.retry == nil {
		k.addLocked(key)
	}
}

// repeatWorking has the keys that are worked on now worked on once more.
func (k *keys) repeatWorking() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.entries {
		e.again = e.again || e.working
	}
}

func (k *keys) addLocked(key string) {
	if k.closed {
		return
	}
	e := k.entries[key]
	if e == nil {
		e = &entry{}
		k.entries[key] = e
	}
	if e.retry != nil {
		e.retry.Stop()
		e.retry = nil
	}
	switch {
	case e.waiting:
	case e.working:
		e.again = true
	default:
		e.waiting = true
		k.work.Go(func() error {
			k.workOn(key, e)
			return nil
		})
	}
}

// close takes no more keys, forgets those that wait, and waits for those at work. Its error is
// that of one whose work panicked: the queue has ended with it.
func (k *keys) close() error {
	k.mu.Lock()
	if !k.closed {
		k.closed = true
		close(k.closing)
	}
	for _, e := range k.entries {
		if e.retry != nil {
			e.retry.Stop()
		}
	}
	k.mu.Unlock()
	return k.work.Wait()
}

func (k *keys) workOn(key string, e *entry) {
	for again := true; again; {
		select {
		case k.slots <- struct{}{}:
		case <-k.closing:
			return
		case <-k.ctx.Done():
			return
		}
		if k.begin(e) {
			again = k.end(key, e, k.do(k.ctx, key))
		} else {
			again = false
		}
		<-k.slots
	}
}

// begin reports false when no more keys are worked on.
func (k *keys) begin(e *entry) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	e.waiting, e.working = false, true
	return !k.closed && k.ctx.Err() == nil
}

// end reports whether the key is to be worked on again at once.
func (k *keys) end(key string, e *entry, err error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	e.working = false
	if err == nil {
		e.failures = 0
	} else {
		e.failures++
	}
	switch {
	case k.closed:
		return false
	case e.again:
		e.again, e.waiting = false, true
		return true
	case err == nil:
		delete(k.entries, key)
	default:
		e.retry = time.AfterFunc(k.backoff.Wait(e.failures), func() { k.add(key) })
	}
	return false
}
