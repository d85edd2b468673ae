package workers

import (
	"time"

	"golang.org/x/sys/unix"
)

// newClock gives CLOCK_BOOTTIME. The clock that Go's timers and time.Since go by,
// CLOCK_MONOTONIC, stands still while the machine is suspended.
func newClock() clock {
	if _, err := sinceBoot(); err != nil {
		return sinceStart()
	}
	return func() time.Duration {
		now, _ := sinceBoot() // What it could do once, it can do again.
		return now
	}
}

func sinceBoot() (time.Duration, error) {
	var now unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return time.Duration(now.Nano()), err
}
