package main

import (
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// A system on free ports has them again the next time, unless another program has one.
func TestFreePortsOfTheLastTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	anyPort := []string{"--free-ports"}
	require.Equal(t, anyPort, freePortFlags(dir), "the first time")

	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	address := taken.Addr().String()
	require.NoError(t, keepPorts(dir, stack.Info{Influx: "http://" + address}, nil))
	require.Equal(t, anyPort, freePortFlags(dir))
	require.NoError(t, taken.Close())
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	require.Equal(t, []string{"--influx-port", port}, freePortFlags(dir))

	require.NoError(t, os.WriteFile(portsFile(dir), []byte("{"), 0o600))
	require.Equal(t, anyPort, freePortFlags(dir), "a file that is cut off")
}

// So has its status page.
func TestFreePortsOfTheProcessesOfTheLastTime(t *testing.T) {
	t.Parallel()
	o := options{dir: t.TempDir(), bin: "bin", freePorts: true}
	start := func() []process {
		found, done, err := newProcesses(o)
		require.NoError(t, err)
		done()
		return found
	}
	first := start()
	require.NoError(t, keepPorts(o.dir, stack.Info{}, first))
	require.Equal(t, first, start())

	page := first[len(first)-1]
	require.Equal(t, serveName, page.name)
	taken, err := net.Listen("tcp4", page.address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	require.NotEqual(t, page.address, start()[len(first)-1].address)
}
