package workers_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy is the network between a process and a server that can be cut. What is sent
// while it is cut arrives when it is restored, as far as both sides still want it.
type proxy struct {
	// Address is where the process finds the server.
	Address string

	server   string
	listener net.Listener
	mu       sync.Mutex
	passing  chan struct{} // closed while everything passes
	refusing bool
	ends     map[net.Conn]bool
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{
		Address: listener.Addr().String(), server: server, listener: listener,
		passing: make(chan struct{}), ends: map[net.Conn]bool{},
	}
	close(p.passing)
	go p.accept()
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		p.Restore()
		p.hangUp()
	})
	return p
}

// Cut lets nothing pass. Neither side notices.
func (p *proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passing = make(chan struct{})
}

// Break ends all connections and refuses new ones.
func (p *proxy) Break() {
	p.mu.Lock()
	p.refusing = true
	p.mu.Unlock()
	p.hangUp()
}

// Restore lets everything pass again.
func (p *proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = false
	select {
	case <-p.passing:
	default:
		close(p.passing)
	}
}

func (p *proxy) accept() {
	for {
		process, err := p.listener.Accept()
		if err != nil {
			return // The test has ended.
		}
		go p.connect(process)
	}
}

func (p *proxy) connect(process net.Conn) {
	p.pass()
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.server)
	if err != nil || !p.hold(process, server) {
		_ = process.Close()
		return
	}
	go p.forward(process, server)
	go p.forward(server, process)
}

// hold keeps both ends of a connection, unless it is refused.
func (p *proxy) hold(ends ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, end := range ends {
		if p.refusing {
			_ = end.Close()
			continue
		}
		p.ends[end] = true
	}
	return !p.refusing
}

func (p *proxy) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for end := range p.ends {
		_ = end.Close()
	}
	clear(p.ends)
}

// pass waits until everything passes.
func (p *proxy) pass() {
	p.mu.Lock()
	passing := p.passing
	p.mu.Unlock()
	<-passing
}

func (p *proxy) forward(to, from net.Conn) {
	_, _ = io.Copy(held{to, p}, from)
	_ = to.Close()
	_ = from.Close()
}

// held is the far end of a connection, as far as the proxy reaches it.
type held struct {
	io.Writer
	proxy *proxy
}

// Write implements io.Writer.
func (h held) Write(data []byte) (int, error) {
	h.proxy.pass()
	return h.Writer.Write(data)
}
