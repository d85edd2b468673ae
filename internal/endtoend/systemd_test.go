package endtoend_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/systemd/systemdtest"
)

// TestProgramsTellSystemd starts the programs as units of the type notify, with a watchdog.
func TestProgramsTellSystemd(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t)
	for _, program := range []stacktest.Program{
		{Name: "backend"}, {Name: "extract"}, {Name: "load"},
		{Name: "starter", Args: []string{"serve", "--listen", "127.0.0.1:0"}},
	} {
		t.Run(program.Name, func(t *testing.T) {
			t.Parallel()
			manager := systemdtest.Listen(t)
			program.Env = manager.Env()
			process := stacktest.StartProgram(t, st, program)
			require.Equal(t, "READY=1", manager.Next())
			for range 3 {
				require.Equal(t, "WATCHDOG=1", manager.Next())
			}
			process.Signal(syscall.SIGTERM)
			manager.Await("STOPPING=1")
			require.Zero(t, process.Wait())
		})
	}
}
