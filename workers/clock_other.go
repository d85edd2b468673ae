//go:build !linux

package workers

// newClock gives the clock of Go's timers, which may stand still while the
// machine is suspended.
func newClock() clock { return sinceStart() }
