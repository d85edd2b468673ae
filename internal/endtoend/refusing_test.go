package endtoend_test

import (
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// port is one that nobody listens on and nobody else gets, until it is opened: a
// server that is down.
type port struct {
	*testing.T
	fd     int
	number int
}

// refusing takes a port of the loopback interface.
func refusing(t *testing.T) *port {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	p := &port{T: t, fd: fd}
	t.Cleanup(func() {
		if p.fd >= 0 {
			require.NoError(t, syscall.Close(p.fd))
		}
	})
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	bound, ok := name.(*syscall.SockaddrInet4)
	require.True(t, ok)
	p.number = bound.Port
	return p
}

func (p *port) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

// open lets the port lead to an HTTP server: the one that was down is back.
func (p *port) open(target string) {
	p.Helper()
	require.NoError(p, syscall.Listen(p.fd, 128))
	file := os.NewFile(uintptr(p.fd), "port")
	p.fd = -1
	listener, err := net.FileListener(file)
	require.NoError(p, err)
	require.NoError(p, file.Close())
	server := &http.Server{Handler: stacktest.ReverseProxy(p, target), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	p.Cleanup(func() {
		require.NoError(p, server.Close())
		require.ErrorIs(p, <-served, http.ErrServerClosed)
	})
}
