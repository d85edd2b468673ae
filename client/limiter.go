package client

import (
	"context"
	"slices"
	"sync"
)

// Bounds on the calls of a client that are under way at once. With two, one that hangs
// keeps no other waiting.
const (
	maxUnderWay = 64
	minUnderWay = 2
)

// limiter bounds the calls under way by how the server bears them: when it is busy, to half of
// what it had to do, and after as many answers in a row as there may be calls, to one more.
// Who waits longest is next.
type limiter struct {
	mu              sync.Mutex
	limit, underWay int
	calm            int // answers in a row
	waiting         []chan struct{}
}

func newLimiter() *limiter { return &limiter{limit: maxUnderWay} }

// acquire waits until the call may begin. It ends with the context.
func (l *limiter) acquire(ctx context.Context) error {
	mine := make(chan struct{})
	l.mu.Lock()
	l.waiting = append(l.waiting, mine)
	l.next()
	l.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, mine); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	} else { // It came at the same moment.
		l.underWay--
		l.next()
	}
	return ctx.Err()
}

// next lets those begin who wait. It is called with the lock.
func (l *limiter) next() {
	for len(l.waiting) > 0 && l.underWay < l.limit {
		l.underWay++
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
}

// release ends a call, and says whether the server was too busy.
func (l *limiter) release(busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case busy:
		l.limit, l.calm = max(minUnderWay, min(l.limit, l.underWay)/2), 0
	case l.calm < l.limit:
		l.calm++
	default:
		l.limit, l.calm = min(l.limit+1, maxUnderWay), 0
	}
	l.underWay--
	l.next()
}
