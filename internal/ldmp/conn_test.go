package ldmp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/ldmp/ldmptest"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// speak serves one connection with a function and gives its address.
func speak(t *testing.T, talk func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		talk(c)
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String()
}

func open(t *testing.T, address string) *ldmp.Conn {
	t.Helper()
	return openWith(t, ldmp.Config{Address: address})
}

// openImpatient is open with a FrameTimeout that is soon over.
func openImpatient(t *testing.T, address string) *ldmp.Conn {
	t.Helper()
	return openWith(t, ldmp.Config{Address: address, FrameTimeout: 100 * time.Millisecond})
}

func openWith(t *testing.T, config ldmp.Config) *ldmp.Conn {
	t.Helper()
	c, err := ldmp.Open(t.Context(), config,
		[]ldmp.Group{{Station: "stn_0", Table: "OneMin"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func classOf(t *testing.T, err error) string {
	t.Helper()
	failure := jobtest.FailureOf(t, err)
	require.False(t, failure.Kind.Final())
	return failure.Class
}

// TestFramesInPieces sends records in pieces of random size, with empty and
// malformed frames between them, and gets them all.
func TestFramesInPieces(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	readings, err := ldmptest.New(ldmptest.Options{Seed: seed}).Readings("angelo", "OneMin", ldmptest.Since, ldmptest.Since.Add(time.Hour))
	require.NoError(t, err)
	var stream bytes.Buffer
	var expected []any
	malformed := ldmptest.Malformed()
	for _, r := range readings {
		stream.Write(append(ldmptest.Encode(r.Record()), 0))
		expected = append(expected, r.Record())
		for name, frame := range malformed { // in random order
			if random.IntN(20) == 0 {
				stream.Write(append(append([]byte{0}, frame...), 0))
				expected = append(expected, name)
			}
		}
	}
	acks := make(chan []byte, 1)
	address := speak(t, func(c net.Conn) {
		in := make([]byte, 4096)
		n, _ := c.Read(in)
		said := bytes.Clone(in[:n])
		for text := stream.Bytes(); len(text) > 0; {
			n := min(1+random.IntN(3000), len(text))
			_, _ = c.Write(text[:n])
			text = text[n:]
		}
		all, _ := io.ReadAll(c)
		acks <- append(said, all...)
	})
	c := open(t, address)
	for _, want := range expected {
		record, err := c.Next()
		if name, bad := want.(string); bad {
			var m *ldmp.MalformedError
			require.ErrorAs(t, err, &m, name)
			frame := malformed[name]
			require.Equal(t, frame[:min(len(frame), ldmp.MaxFrame)], m.Raw, name)
			require.Equal(t, m.Raw, c.Frame(), name)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, record)
	}
	require.NoError(t, c.Ack(3))
	require.NoError(t, c.Ack(2))
	require.NoError(t, c.Close())
	require.True(t, strings.HasSuffix(string(<-acks), ";\r\r\r\r\r\r"))
}

func TestServerThatStopsInARecord(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	defer close(gone)
	c := openImpatient(t, speak(t, func(c net.Conn) {
		_, _ = c.Write([]byte("<record "))
		<-gone
	}))
	_, err := c.Next()
	require.Equal(t, errclass.LdmpDisconnected, classOf(t, err))
	require.ErrorContains(t, err, "stopped for 100ms")
}

func TestServerThatGoes(t *testing.T) {
	t.Parallel()
	address := speak(t, func(net.Conn) {})
	_, err := open(t, address).Next()
	require.Equal(t, errclass.LdmpDisconnected, classOf(t, err))
	require.ErrorContains(t, err, address)
}

func TestRecordWithoutEndIsRefused(t *testing.T) {
	t.Parallel()
	sent := make(chan int, 1)
	c := open(t, speak(t, func(c net.Conn) {
		block, total := bytes.Repeat([]byte("endless "), 1<<13), 0
		for {
			n, err := c.Write(block)
			total += n
			if err != nil {
				sent <- total
				return
			}
		}
	}))
	_, err := c.Next()
	require.Equal(t, errclass.LdmpEndless, classOf(t, err))
	require.ErrorContains(t, err, `begins with "endless endless`)
	require.NoError(t, c.Close())
	require.Less(t, <-sent, 256<<20)
}

func TestClosingEndsTheWait(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	defer close(gone)
	c := openImpatient(t, speak(t, func(net.Conn) { <-gone }))
	context.AfterFunc(t.Context(), func() { _ = c.Close() })
	time.AfterFunc(150*time.Millisecond, func() { _ = c.Close() }) // longer than FrameTimeout: silence is no failure
	_, err := c.Next()
	require.True(t, errors.Is(err, net.ErrClosed), err)
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	_, err = ldmp.Open(t.Context(), ldmp.Config{Address: address}, []ldmp.Group{{Station: "s", Table: "t"}})
	require.Equal(t, errclass.LdmpUnreachable, classOf(t, err))
	require.ErrorContains(t, err, address)

	_, err = ldmp.Open(t.Context(), ldmp.Config{Address: address}, nil)
	failure := jobtest.FailureOf(t, err)
	require.True(t, failure.Kind.Final())
}
