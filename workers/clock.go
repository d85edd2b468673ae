package workers

import "time"

// clock is how much time has passed on this machine since some moment: only
// differences mean anything. It never jumps, whatever becomes of the time of day,
// and where the system has such a clock it also counts while the machine is
// suspended.
type clock func() time.Duration

// sinceStart is the clock of systems that have none that counts suspension.
func sinceStart() clock {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
