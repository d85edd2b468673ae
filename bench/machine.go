package main

import (
	"os"
	"strings"
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
