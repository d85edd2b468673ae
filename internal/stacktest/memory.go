package stacktest

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
)

var rssAnon = regexp.MustCompile(`(?m)^RssAnon:\s+(\d+) kB$`)

// Memory is what a process holds beside its binary, in bytes. It skips the test where there
// is no /proc of Linux.
func Memory(t testing.TB, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if os.IsNotExist(err) {
		t.Skip("needs /proc of Linux")
	}
	if err != nil {
		t.Fatal(err)
	}
	found := rssAnon.FindSubmatch(status)
	if found == nil {
		t.Fatalf("process %d has no RssAnon", pid)
	}
	kB, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kB << 10
}
