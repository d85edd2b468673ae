package stack

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Children lists the processes whose parent has a process id, by /proc: none where there is none.
func Children(parent int) (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // It has ended.
		}
		// PID (NAME) STATE PARENT …; a name may have spaces and parentheses (proc(5)).
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
