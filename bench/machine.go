package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// loadAverage is the load of the machine over the last minute, as Linux tells it;
// "unknown" elsewhere. It includes the bench itself.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(text), " ")
	return load
}

// processorTime is the time that a process has had on the processors, as Linux
// counts it in /proc/PID/stat; 0 when the process is gone.
func processorTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name, in parentheses, may hold spaces. After it the times are the 12th
	// and 13th fields, in hundredths of a second.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	var user, system int64
	if len(fields) < 13 {
		return 0
	}
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
