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
	require.NoError(t, keepPorts(dir, stack.Info{Influx: "http://" + address}))
	require.Equal(t, anyPort, freePortFlags(dir))
	require.NoError(t, taken.Close())
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	require.Equal(t, []string{"--influx-port", port}, freePortFlags(dir))

	require.NoError(t, os.WriteFile(portsFile(dir), []byte("{"), 0o600))
	require.Equal(t, anyPort, freePortFlags(dir), "a file that is cut off")
}
