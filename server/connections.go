package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"github.com/dendrascience/dendra-jobs/server/auth"
)

// shareOfAddress is which part of all connections one address may hold: a quarter.
const shareOfAddress = 4

// connections is a listener that bounds the connections of all, and those of each address.
type connections struct {
	net.Listener
	most     int // of an address
	patience time.Duration

	mu   sync.Mutex
	open map[string]int // by network
}

// limitConnections bounds the connections of a listener. Those without an authenticated call
// end after the patience.
func limitConnections(listener net.Listener, most int, patience time.Duration) *connections {
	return &connections{Listener: netutil.LimitListener(listener, most), most: max(1, most/shareOfAddress), patience: patience, open: map[string]int{}}
}

// Accept implements net.Listener. A connection that is one too many of its address is closed.
func (l *connections) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		network := auth.Network(c.RemoteAddr().String())
		if l.begin(network) {
			return newConnection(c, l.patience, func() { l.end(network) }), nil
		}
		_ = c.Close() // Nobody is told: there may be many of these.
	}
}

func (l *connections) begin(network string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[network] >= l.most {
		return false
	}
	l.open[network]++
	return true
}

func (l *connections) end(network string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[network]--; l.open[network] == 0 {
		delete(l.open, network)
	}
}

// connection ends in time unless an authenticated call comes. One that has a call under way
// at that time is looked at again later.
type connection struct {
	net.Conn
	patience time.Duration
	ended    func()
	calls    atomic.Int64
	known    atomic.Bool
	timer    *time.Timer
	once     sync.Once
}

func newConnection(c net.Conn, patience time.Duration, ended func()) *connection {
	own := &connection{Conn: c, patience: patience, ended: ended}
	own.timer = time.AfterFunc(time.Hour, own.expire)
	own.timer.Reset(patience) // Only now expire may read the field.
	return own
}

func (c *connection) expire() {
	switch {
	case c.known.Load():
	case c.calls.Load() > 0:
		c.timer.Reset(c.patience)
	default:
		_ = c.Close() // Its reader is told.
	}
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.once.Do(func() {
		c.timer.Stop()
		c.ended()
	})
	return c.Conn.Close()
}

type connectionKey struct{}

// withConnection has the calls of a connection know it.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// counted counts the calls that a connection has under way. The server's own connection is
// known.
func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
			c.calls.Add(1)
			defer c.calls.Add(-1)
		}
		if own := s.ownAddress.Load(); own != nil && *own == r.RemoteAddr {
			known(r.Context())
		}
		next.ServeHTTP(w, r)
	})
}

// known says that an authenticated call has come over the connection of a context.
func known(ctx context.Context) {
	if c, ok := ctx.Value(connectionKey{}).(*connection); ok {
		c.known.Store(true)
	}
}
