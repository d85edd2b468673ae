package ldmp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// DefaultPort is where LoggerNet's server listens.
const DefaultPort = "1024"

// Config says how to connect.
type Config struct {
	// Address is host:port of the server; without a port, [DefaultPort] is taken.
	Address string
	// ConnectTimeout bounds connecting. Defaults to 30 seconds.
	ConnectTimeout time.Duration
	// FrameTimeout is how long the server may stop in the middle of a record, or
	// not take what it is sent. Defaults to 60 seconds. Between records it may be
	// silent for ever: that the host is still there is seen by TCP keep-alive
	// probes, after about a minute and a half.
	FrameTimeout time.Duration
}

func (c Config) withDefaults() Config {
	if _, _, err := net.SplitHostPort(c.Address); err != nil {
		c.Address = net.JoinHostPort(c.Address, DefaultPort)
	}
	if c.ConnectTimeout <= 0 {
		c.ConnectTimeout = 30 * time.Second
	}
	if c.FrameTimeout <= 0 {
		c.FrameTimeout = time.Minute
	}
	return c
}

// Conn is a connection to a server. One goroutine may call Next while another
// calls Ack; Close may be called by any.
type Conn struct {
	config Config
	tcp    net.Conn
	frames frames
	frame  []byte
	acks   []byte
}

// Open connects and sends the specification. The server's records are then read
// with [Conn.Next].
func Open(ctx context.Context, config Config, groups []Group) (*Conn, error) {
	config = config.withDefaults()
	spec, err := FormatSpec(groups)
	if err != nil {
		return nil, job.Fail(errclass.InvalidSpec, "ldmp %s: %w", config.Address, err)
	}
	dialer := net.Dialer{
		Timeout: config.ConnectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: 30 * time.Second, Interval: 15 * time.Second, Count: 4,
		},
	}
	tcp, err := dialer.DialContext(ctx, "tcp", config.Address)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, job.Fail(errclass.LdmpUnreachable, "ldmp %s cannot be reached: %w", config.Address, err)
	}
	c := &Conn{config: config, tcp: tcp}
	c.frames = frames{source: tcp, waiting: func(begun bool) {
		var deadline time.Time
		if begun {
			deadline = time.Now().Add(config.FrameTimeout)
		}
		// A connection that takes no deadline does not read either.
		_ = tcp.SetReadDeadline(deadline)
	}}
	if err := c.write(spec); err != nil {
		_ = tcp.Close()
		return nil, err
	}
	return c, nil
}

// Address is host:port of the server.
func (c *Conn) Address() string { return c.config.Address }

// Next waits for the next record. A [*MalformedError] is a frame that is no
// record; like one it has to be acknowledged, and the next call goes on after it.
// Any other error is the end of the connection.
func (c *Conn) Next() (Record, error) {
	frame, skipped, err := c.frames.next()
	if err != nil {
		return Record{}, c.failed("reading", err)
	}
	c.frame = frame
	if skipped > 0 {
		return Record{}, tooLong(frame, skipped)
	}
	return Parse(frame)
}

// Frame is a copy of what the last call of Next has read, without its NUL.
func (c *Conn) Frame() []byte { return bytes.Clone(c.frame) }

// Ack acknowledges the next n records, in the order that they came in.
func (c *Conn) Ack(n int) error {
	for len(c.acks) < n {
		c.acks = append(c.acks, '\r')
	}
	return c.write(c.acks[:n])
}

// CloseRead has Next return with an error, while records can still be acknowledged.
func (c *Conn) CloseRead() error {
	if tcp, ok := c.tcp.(*net.TCPConn); ok {
		return tcp.CloseRead()
	}
	return c.tcp.SetReadDeadline(time.Now())
}

// Close ends the connection; there is no goodbye. A call of Next that waits
// returns with an error.
func (c *Conn) Close() error { return c.tcp.Close() }

func (c *Conn) write(b []byte) error {
	if err := c.tcp.SetWriteDeadline(time.Now().Add(c.config.FrameTimeout)); err != nil {
		return c.failed("writing", err)
	}
	if _, err := c.tcp.Write(b); err != nil {
		return c.failed("writing", err)
	}
	return nil
}

func (c *Conn) failed(what string, err error) error {
	if job.ClassOf(err) != "" {
		return fmt.Errorf("ldmp %s: %w", c.config.Address, err)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("the server stopped for %s in the middle of it", c.config.FrameTimeout)
	}
	return job.Fail(errclass.LdmpDisconnected, "ldmp %s: the connection ended while %s: %w", c.config.Address, what, err)
}
