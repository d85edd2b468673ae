package workers

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errLeaseLost is the cause of the end of a handler's context when the run may
// have been given to another worker.
var errLeaseLost = errors.New("the process was silent for longer than the heartbeat timeout: the run may be another worker's now")

// lease is the context of a handler. It ends by itself when it has not been
// renewed for the heartbeat timeout: the process was stopped or starved, and
// Temporal has taken the run for lost. Err finds that out when it is asked, not
// when a timer has had its turn, so that a handler that looks before it writes
// writes nothing after a pause of the whole process.
type lease struct {
	context.Context //nolint:containedctx // It is one.

	cancel context.CancelCauseFunc
	limit  time.Duration

	mu      sync.Mutex
	renewed time.Time
}

func newLease(parent context.Context, limit time.Duration) *lease {
	ctx, cancel := context.WithCancelCause(parent)
	return &lease{Context: ctx, cancel: cancel, limit: limit, renewed: time.Now()}
}

// Err implements context.Context.
func (l *lease) Err() error {
	l.check()
	return l.Context.Err()
}

// Done implements context.Context.
func (l *lease) Done() <-chan struct{} {
	l.check()
	return l.Context.Done()
}

// check ends the lease if it has run out. It reports whether it holds.
func (l *lease) check() bool {
	l.mu.Lock()
	held := time.Since(l.renewed) <= l.limit
	l.mu.Unlock()
	if !held {
		l.cancel(errLeaseLost)
	}
	return held
}

// renew prolongs a lease that has not run out.
func (l *lease) renew() bool {
	if !l.check() {
		return false
	}
	l.mu.Lock()
	l.renewed = time.Now()
	l.mu.Unlock()
	return true
}
