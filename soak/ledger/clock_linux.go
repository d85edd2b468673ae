package ledger

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now is the time since the machine was booted. It is one clock for all processes,
// which no change of the time of day moves.
func Now() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(now.Nano())
}
