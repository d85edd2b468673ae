package stacktest

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
)

var rssAnon = regexp.MustCompile(`(?m)^RssAnon:\s+(\d+) kB$`)

// Memory is what a process holds beside its binary, in bytes: 0 of one that has ended. It skips
// the test where there is no /proc of Linux.
func Memory(t testing.TB, pid int) int {
	t.Helper()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("needs /proc of Linux")
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	found := rssAnon.FindSubmatch(status)
	if found == nil {
		return 0
	}
	kB, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kB << 10
}
