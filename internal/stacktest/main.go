package stacktest

import (
	"fmt"
	"os"
	"testing"
)

// Main is for a TestMain that starts servers, as examples need them: these have no
// testing.T. What fails ends the process. There is no cleanup but the end of the process.
func Main() testing.TB { return mainTB{} }

type mainTB struct{ testing.TB }

func (mainTB) Helper()        {}
func (mainTB) Cleanup(func()) {}

// TempDir is not removed: it is that of the system.
func (mainTB) TempDir() string { return os.TempDir() }

func (mainTB) Fatal(args ...any) {
	fmt.Fprintln(os.Stderr, args...)
	os.Exit(1)
}

func (t mainTB) Fatalf(format string, args ...any) { t.Fatal(fmt.Sprintf(format, args...)) }
