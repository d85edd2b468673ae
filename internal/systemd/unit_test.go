package systemd_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/systemd"
	"github.com/dendrascience/dendra-jobs/internal/systemd/systemdtest"
)

// TestOnlyWhatIsAliveSaysSo has a process be alive at its first look and from its fourth on.
func TestOnlyWhatIsAliveSaysSo(t *testing.T) { //nolint:paralleltest // The environment is that of the process.
	manager := systemdtest.Listen(t)
	for _, variable := range manager.Env() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	var looks atomic.Int64
	var log bytes.Buffer
	unit := systemd.Serving(func() bool {
		look := looks.Add(1)
		return look == 1 || look > 3
	}, slog.New(slog.NewTextHandler(&log, nil)))
	require.Equal(t, "READY=1", manager.Next())
	require.Equal(t, "WATCHDOG=1", manager.Next())
	require.Equal(t, "WATCHDOG=1", manager.Next())
	require.GreaterOrEqual(t, looks.Load(), int64(4), "it said nothing at its second and third look")
	unit.Close()
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), log.String())
	unit.Stopping()
	manager.Await("STOPPING=1")
}

// TestNobodyListens: a process that systemd did not start says nothing, and one whose socket
// is gone goes on.
func TestNobodyListens(t *testing.T) { //nolint:paralleltest // The environment is that of the process.
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	alone := systemd.Serving(func() bool { return true }, logger)
	alone.Stopping()
	alone.Close()
	require.Empty(t, log.String())

	t.Setenv("NOTIFY_SOCKET", t.TempDir()+"/gone")
	t.Setenv("WATCHDOG_USEC", "soon")
	gone := systemd.Serving(func() bool { return true }, logger)
	gone.Close()
	require.Contains(t, log.String(), `msg="systemd was not told" what="READY=1"`)
	require.Contains(t, log.String(), "systemd is not told that this process is alive")
}
