// Package systemdtest listens to what processes tell systemd.
package systemdtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Manager is the socket of a service manager.
type Manager struct {
	t    testing.TB
	path string
	told chan string
}

// Listen listens until the test ends.
func Listen(t testing.TB) *Manager {
	t.Helper()
	// The path of a socket is short: t.TempDir has the name of the test.
	folder, err := os.MkdirTemp("", "unit")
	require.NoError(t, err)
	// More than a test lasts: where nobody reads, a process waits when it tells.
	m := &Manager{t: t, path: filepath.Join(folder, "notify"), told: make(chan string, 10_000)}
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = socket.Close()
		_ = os.RemoveAll(folder)
	})
	go func() {
		for message := make([]byte, 4096); ; {
			n, err := socket.Read(message)
			if err != nil {
				return // The test has ended.
			}
			m.told <- string(message[:n])
		}
	}()
	return m
}

// watchdog is WatchdogSec of a unit in a test.
const watchdog = 200 * time.Millisecond

// Env is what systemd adds to the environment of a unit with Type=notify and WatchdogSec.
func (m *Manager) Env() []string {
	return []string{"NOTIFY_SOCKET=" + m.path, fmt.Sprintf("WATCHDOG_USEC=%d", watchdog.Microseconds())}
}

// Next is what is told next.
func (m *Manager) Next() string {
	m.t.Helper()
	select {
	case message := <-m.told:
		return message
	case <-time.After(3 * time.Minute):
		require.FailNow(m.t, "nothing was told for three minutes")
		return ""
	}
}

// Await reads until a message comes.
func (m *Manager) Await(message string) {
	m.t.Helper()
	for m.Next() != message {
	}
}
