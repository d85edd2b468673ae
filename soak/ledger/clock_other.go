//go:build !linux

package ledger

import "time"

// Now is the time of day, which is the one clock that all processes have here.
func Now() time.Duration { return time.Duration(time.Now().UnixNano()) }
