package client

import (
	"context"
	"slices"
	"sync"
)

// Bounds on the calls of a client that are under way at once. With two, one that hangs
// keeps no other waiting.
const (
	mostTurns  = 64
	leastTurns = 2
)

// turns bounds the calls under way by how the server bears them: when it is busy, to half of
// what it had to do, and after as many answers in a row as there may be calls, to one more.
// Who waits longest is next.
type turns struct {
	mu              sync.Mutex
	limit, underWay int
	calm            int // answers in a row
	waiting         []chan struct{}
}

func newTurns() *turns { return &turns{limit: mostTurns} }

// take waits for a turn. It ends with the context.
func (t *turns) take(ctx context.Context) error {
	mine := make(chan struct{})
	t.mu.Lock()
	t.waiting = append(t.waiting, mine)
	t.next()
	t.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, mine); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	} else { // It came at the same moment.
		t.underWay--
		t.next()
	}
	return ctx.Err()
}

// next gives turns to those who wait. It is called with the lock.
func (t *turns) next() {
	for len(t.waiting) > 0 && t.underWay < t.limit {
		t.underWay++
		close(t.waiting[0])
		t.waiting = t.waiting[1:]
	}
}

// end gives a turn back, and says whether the server was too busy.
func (t *turns) end(busy bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case busy:
		t.limit, t.calm = max(leastTurns, min(t.limit, t.underWay)/2), 0
	case t.calm < t.limit:
		t.calm++
	default:
		t.limit, t.calm = min(t.limit+1, mostTurns), 0
	}
	t.underWay--
	t.next()
}
