package workers_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// cable is a network between a process and a server that can be cut. What is sent
// while it is cut arrives when it is mended, as far as both sides still want it.
type cable struct {
	// Address is where the process finds the server.
	Address string

	server   string
	listener net.Listener
	mu       sync.Mutex
	passing  chan struct{} // closed while the cable is whole
	refusing bool
	ends     map[net.Conn]bool
}

func newCable(t *testing.T, server string) *cable {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cable{
		Address: listener.Addr().String(), server: server, listener: listener,
		passing: make(chan struct{}), ends: map[net.Conn]bool{},
	}
	close(c.passing)
	go c.accept()
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		c.Mend()
		c.hangUp()
	})
	return c
}

// Cut lets nothing pass. Neither side is told.
func (c *cable) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passing = make(chan struct{})
}

// Break ends all connections and refuses new ones.
func (c *cable) Break() {
	c.mu.Lock()
	c.refusing = true
	c.mu.Unlock()
	c.hangUp()
}

// Mend makes the cable whole again.
func (c *cable) Mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusing = false
	select {
	case <-c.passing:
	default:
		close(c.passing)
	}
}

func (c *cable) accept() {
	for {
		process, err := c.listener.Accept()
		if err != nil {
			return // The test has ended.
		}
		go c.connect(process)
	}
}

func (c *cable) connect(process net.Conn) {
	c.pass()
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", c.server)
	if err != nil || !c.hold(process, server) {
		_ = process.Close()
		return
	}
	go c.forward(process, server)
	go c.forward(server, process)
}

// hold keeps both ends of a connection, unless it is refused.
func (c *cable) hold(ends ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, end := range ends {
		if c.refusing {
			_ = end.Close()
			continue
		}
		c.ends[end] = true
	}
	return !c.refusing
}

func (c *cable) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for end := range c.ends {
		_ = end.Close()
	}
	clear(c.ends)
}

// pass waits until the cable is whole.
func (c *cable) pass() {
	c.mu.Lock()
	passing := c.passing
	c.mu.Unlock()
	<-passing
}

func (c *cable) forward(to, from net.Conn) {
	_, _ = io.Copy(held{to, c}, from)
	_ = to.Close()
	_ = from.Close()
}

// held is the far end of a connection, as far as the cable reaches it.
type held struct {
	io.Writer
	cable *cable
}

// Write implements io.Writer.
func (h held) Write(data []byte) (int, error) {
	h.cable.pass()
	return h.Writer.Write(data)
}
