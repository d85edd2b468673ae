package ldmptest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	maxSpec = 1 << 20
	// look is how often a connection looks whether a record has become due.
	look = 50 * time.Millisecond
)

// outstanding is a record that waits for its acknowledgement.
type outstanding struct {
	series *series
	index  int64
}

// connection is a client.
type connection struct {
	server  *Server
	net     net.Conn
	cursors []*cursor
	turn    int
	waiting []outstanding
}

// serve speaks with a client until it goes. The error says how the client broke
// the protocol.
func (s *Server) serve(c net.Conn) error {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	line, err := readSpec(in)
	if err != nil {
		return nil //nolint:nilerr // went before it asked for anything
	}
	groups, err := parseSpec(line)
	if err != nil {
		return fmt.Errorf("ldmptest: specification: %w", err)
	}
	client := &connection{server: s, net: c}
	now := s.options.Now()
	for _, g := range groups {
		_ = s.with(g.station, g.table, func(t *series) { // one that there is not stays silent
			cursor := &cursor{series: t, order: g.order}
			cursor.begin(g.start, now)
			client.cursors = append(client.cursors, cursor)
		})
	}
	acks := make(chan byte)
	gone := make(chan struct{})
	defer close(gone)
	go func() {
		defer close(acks)
		for {
			b, err := in.ReadByte()
			if err != nil {
				return
			}
			select {
			case acks <- b:
			case <-gone:
				return
			}
		}
	}()
	return client.talk(acks)
}

func readSpec(in *bufio.Reader) (string, error) {
	var line []byte
	for len(line) < maxSpec {
		b, err := in.ReadByte()
		if err != nil {
			return "", err
		}
		if b == '\r' {
			return string(line), nil
		}
		line = append(line, b)
	}
	return "", io.ErrShortBuffer
}

// talk sends records and takes acknowledgements.
func (c *connection) talk(acks <-chan byte) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		frame, changed := c.next()
		if frame != nil {
			if _, err := c.net.Write(append(frame, 0)); err != nil {
				return nil //nolint:nilerr // the client is gone
			}
			continue
		}
		select {
		case b, open := <-acks:
			if !open {
				return nil
			}
			if err := c.acknowledged(b); err != nil {
				return err
			}
		case <-changed:
		case <-tick.C:
		}
	}
}

// next gives the next frame, if the client may have one and there is one.
func (c *connection) next() (frame []byte, changed <-chan struct{}) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(c.waiting) >= s.options.Window {
		return nil, s.changed
	}
	now := s.options.Now()
	for range c.cursors {
		cursor := c.cursors[c.turn]
		c.turn = (c.turn + 1) % len(c.cursors)
		index, ok := cursor.take(now)
		if !ok {
			continue
		}
		t := cursor.series
		t.sent++
		if s.options.Ledger {
			t.sentRecords[index]++
		}
		c.waiting = append(c.waiting, outstanding{t, index})
		return append([]byte(nil), t.frame(s.options.Seed, index)...), nil
	}
	return nil, s.changed
}

func (c *connection) acknowledged(b byte) error {
	if b != '\r' {
		return fmt.Errorf("ldmptest: %q is no acknowledgement", b)
	}
	if len(c.waiting) == 0 {
		return errors.New("ldmptest: an acknowledgement of nothing")
	}
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	first := c.waiting[0]
	c.waiting = c.waiting[1:]
	first.series.acknowledged++
	if s.options.Ledger {
		first.series.ackedRecords[first.index]++
	}
	return nil
}
