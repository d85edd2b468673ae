package stacktest

import (
	"fmt"
	"os"
	"strings"
)

// Memory is what a process holds beside its binary and other files, in bytes: 0 of one that has
// ended, and where there is no /proc of Linux.
func Memory(pid int) int { return statusKiB(pid, "RssAnon") << 10 }

// statusKiB is a number of kibibytes in the status of a process; 0 if it is not there.
func statusKiB(pid int, name string) (n int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // None if it has ended.
	for line := range strings.Lines(string(status)) {
		_, _ = fmt.Sscanf(line, name+": %d kB", &n)
	}
	return n
}
