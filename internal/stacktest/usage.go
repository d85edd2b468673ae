package stacktest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// usageVariable names a folder. The packages of a test run leave there how busy their
// stacks were, each in a file of one line: the package, how long its stack has run, its
// processor time, and the most memory that it had. Only Linux tells.
const usageVariable = "DENDRA_TEST_USAGE"

// clockTick is the unit of processor times in /proc: USER_HZ, which is 100 on all
// architectures of Linux that Go knows.
const clockTick = 10 * time.Millisecond

// recordUsage writes the line of the package anew. It is called after each test, as
// nobody is told of the last one.
func (s *Stack) recordUsage(t testing.TB) {
	folder := os.Getenv(usageVariable)
	if folder == "" {
		return
	}
	line, err := s.usage()
	if os.IsNotExist(err) {
		return // The stack has ended, or the system has no /proc.
	}
	if err == nil {
		line = fmt.Sprintf("%-28s %s\n", packageName(t), line)
		err = os.WriteFile(filepath.Join(folder, strings.ReplaceAll(packageName(t), "/", "_")), []byte(line), 0o600)
	}
	if err != nil {
		t.Logf("how busy the stack was is not known: %v", err)
	}
}

func (s *Stack) usage() (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID))
	if err != nil {
		return "", err
	}
	var user, system int64
	// The second field, the name of the program in brackets, may hold spaces.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return "", err
	}
	ran, busy := time.Since(s.launched), time.Duration(user+system)*clockTick
	return fmt.Sprintf("%4.0f s, busy %5.1f s (%3.0f %% of a core), %4d MiB", ran.Seconds(), busy.Seconds(), 100*busy.Seconds()/ran.Seconds(), statusKiB(s.PID, "VmHWM")>>10), nil
}

// packageName is the folder of the package below the root of the repository.
func packageName(t testing.TB) string {
	folder, err := packageFolder()
	if err == nil {
		folder, err = filepath.Rel(Root(t), folder)
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(folder)
}
