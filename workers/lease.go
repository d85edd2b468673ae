package workers

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errLeaseLost is the cause of the end of a handler's context when the run may
// have been given to another worker.
var errLeaseLost = errors.New("temporal has acknowledged no heartbeat for the heartbeat timeout: the run may be another worker's now")

// maxLeaseMargin bounds by how much a lease ends before the heartbeat timeout: a
// tenth of it is left for what a handler does between its last look at its
// context and the effect.
const maxLeaseMargin = time.Second

// lease is the context of a handler. It holds as long as Temporal cannot have
// given the run to another worker: for the heartbeat timeout, less a margin, from
// the sending of the last heartbeat that Temporal has acknowledged. Temporal
// counts from when it took it, which is later. Before the first one it counts
// from when the process asked for the task.
//
// Err and Done find out that a lease has run out when they are asked, not when a
// timer has had its turn, so that a handler that looks before it writes writes
// nothing after a pause of the whole process. Contexts derived from it do not ask:
// they end when the timer fires or a heartbeat is refused, up to maxHeartbeatInterval
// after a suspension.
type lease struct {
	context.Context //nolint:containedctx // It is one.

	cancel context.CancelCauseFunc
	length time.Duration
	now    clock

	mu      sync.Mutex
	renewed time.Duration // by the clock
	watch   *time.Timer
}

// newLease gives a lease that was renewed at a time by the clock.
func newLease(parent context.Context, heartbeatTimeout, renewed time.Duration, now clock) *lease {
	ctx, cancel := context.WithCancelCause(parent)
	l := &lease{
		Context: ctx, cancel: cancel, now: now, renewed: renewed,
		length: leaseLength(heartbeatTimeout),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch = time.AfterFunc(l.left(), l.look)
	return l
}

// leaseLength is how long a lease holds from the sending of a heartbeat.
func leaseLength(heartbeatTimeout time.Duration) time.Duration {
	return heartbeatTimeout - min(heartbeatTimeout/10, maxLeaseMargin)
}

// left is how long the lease holds from now on.
func (l *lease) left() time.Duration { return l.renewed + l.length - l.now() }

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

// check ends the lease if it has run out.
func (l *lease) check() {
	l.mu.Lock()
	left := l.left()
	l.mu.Unlock()
	if left < 0 {
		l.cancel(errLeaseLost)
	}
}

// look is for those who wait for the end and do not ask.
func (l *lease) look() {
	l.check()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Context.Err() == nil {
		l.watch.Reset(max(l.left(), time.Millisecond))
	}
}

// renew prolongs the lease: Temporal has acknowledged a heartbeat that was sent at
// a time by the clock. It brings back no lease that was seen to have run out.
func (l *lease) renew(sent time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = max(l.renewed, sent)
}

// ranOut reports whether the lease was seen to have run out before it was revoked.
func (l *lease) ranOut() bool { return errors.Is(context.Cause(l.Context), errLeaseLost) }

// end revokes the lease.
func (l *lease) end() {
	l.cancel(context.Canceled)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch.Stop()
}
