package stacktest_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// A stack that hangs halfway through its start keeps no other from starting, on
// free ports or on given ones.
func TestStacksStartAtOnce(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the embedded stack; skipped with -short")
	}
	first := startHalf(t, "--free-ports")
	for tries, startedAgain := 0, false; !startedAgain; tries++ {
		require.Less(t, tries, 5, "each of the stacks found its ports taken")
		second := stacktest.StartOwn(t)
		flags, err := second.PortFlags()
		require.NoError(t, err)
		require.Equal(t, 0, second.Stop())
		third := stacktest.StartProcess(t, nil, "devstack", append([]string{"--ephemeral"}, flags...)...)
		stacktest.WaitFor(t, "a stack on ports that were used before", func() (bool, error) {
			startedAgain = strings.Contains(third.Output(), `"ready_ms"`)
			// Other programs choose ports at the same time, and not all of them claim theirs.
			return startedAgain || third.Ended(), nil
		})
		if !startedAgain {
			require.Regexp(t, "is taken on|address already in use", third.Output())
		}
	}

	first.Signal(syscall.SIGCONT)
	first.WaitOutput(`"ready_ms"`)
}

// A port that another stack has chosen is taken before its server listens.
func TestPortOfAStackThatStarts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the embedded stack; skipped with -short")
	}
	port := stacktest.FreePort(t)
	first := startHalf(t, "--free-ports", "--ui-port", port)
	second := stacktest.StartProcess(t, nil, "devstack", "--ephemeral", "--free-ports", "--ui-port", port)
	require.Equal(t, 1, second.Wait())
	require.Contains(t, second.Output(), "port "+port+" of Temporal's Web UI is taken on 127.0.0.1")

	first.Signal(syscall.SIGCONT)
	first.WaitOutput(`"ready_ms"`)
}

// startHalf starts a stack and stops it (SIGSTOP) when its data servers answer and
// the last of its servers, the Web UI, does not yet.
func startHalf(t *testing.T, flags ...string) *stacktest.Process {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	p := stacktest.StartProcess(t, nil, "devstack", append([]string{"--data", data}, flags...)...)
	t.Cleanup(func() { p.Signal(syscall.SIGCONT) })
	stacktest.WaitFor(t, "Temporal to start", func() (bool, error) {
		_, err := os.Stat(filepath.Join(data, "temporal"))
		return err == nil, err
	})
	p.Signal(syscall.SIGSTOP)
	require.False(t, strings.Contains(p.Output(), "ready_ms"), "the stack is ready already")
	return p
}
