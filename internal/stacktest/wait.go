package stacktest

import (
	"testing"
	"time"
)

const (
	waitTimeout = 3 * time.Minute // for a busy machine
	waitFirst   = 20 * time.Millisecond
	waitMost    = 250 * time.Millisecond
	waitSlow    = 2 * time.Second
)

// WaitFor asks cond until it is true and fails the test when that takes longer
// than three minutes, naming what was waited for and the last error. An error means
// "not yet". It asks after 20 ms at first, and every 250 ms in the end: most conditions are
// calls of a server that other tests need too. A condition that takes long, since it runs a
// program or the machine is busy, is asked for at most a third of the time.
func WaitFor(t testing.TB, what string, cond func() (bool, error)) {
	t.Helper()
	WaitWithin(t, waitTimeout, what, cond)
}

// WaitWithin is WaitFor with a deadline of its own, for what takes long.
func WaitWithin(t testing.TB, limit time.Duration, what string, cond func() (bool, error)) {
	t.Helper()
	var last error
	holds := func() (ok bool) {
		ok, last = cond()
		return ok && last == nil
	}
	if Await(limit, holds) {
		return
	}
	if last != nil {
		t.Fatalf("waited %s for %s; last error: %v", limit, what, last)
	}
	t.Fatalf("waited %s for %s in vain", limit, what)
}

// Await asks until cond is true, as often as WaitFor, and reports whether it became so within
// the limit.
func Await(limit time.Duration, cond func() bool) bool {
	deadline := time.Now().Add(limit)
	for pause := waitFirst; ; pause = min(pause*5/4, waitMost) {
		asked := time.Now()
		if cond() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		<-time.After(max(pause, min(2*time.Since(asked), waitSlow)))
	}
}
