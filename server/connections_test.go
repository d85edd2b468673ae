package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/server"
)

// alone is a world whose Temporal nobody can reach: what is told before a call of the API
// needs it.
func alone(t *testing.T) *world {
	t.Helper()
	lazy, err := sdk.NewLazyClient(sdk.Options{HostPort: "127.0.0.1:1", Namespace: "alone", Logger: log.NewStructuredLogger(quiet)})
	require.NoError(t, err)
	t.Cleanup(lazy.Close)
	return &world{client: client.New(lazy, "alone")}
}

// TestBadCredentialsAreTold says at /readyz that the file of credentials cannot be used, which
// leaves what it had before in force.
func TestBadCredentialsAreTold(t *testing.T) {
	t.Parallel()
	s := alone(t).guarded(t, nil)
	ready := func() answer { return s.do(t, http.DefaultClient, s.request(t, http.MethodGet, "/readyz", nil)) }
	require.NotContains(t, ready().body, "credentials")
	s.write(t, "tokens = 1 and more")
	require.Equal(t, http.StatusOK, ready().status)
	require.Contains(t, ready().body, "the file of credentials cannot be used")
	require.NoError(t, os.Remove(s.credentials))
	require.Contains(t, ready().body, "the file of credentials cannot be used")
	s.write(t, s.lines()...)
	require.NotContains(t, ready().body, "credentials")
}

// dial opens a connection that says nothing.
func dial(t *testing.T, s *site) net.Conn {
	t.Helper()
	var dialer net.Dialer
	c, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// isOpen reports whether the server has left a connection open for as long as a call takes.
func isOpen(t *testing.T, c net.Conn) bool {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// ask sends a request over a connection, and reads the answer.
func ask(t *testing.T, c net.Conn, path, token string) (status int, err error) {
	t.Helper()
	text := "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n"
	if token != "" {
		text += "Authorization: Bearer " + token + "\r\n"
	}
	if _, err := io.WriteString(c, text+"\r\n"); err != nil {
		return 0, err
	}
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, response.Body.Close())
	return response.StatusCode, err
}

// TestConnectionsOfAnAddress leaves room for others, whoever holds all that an address may.
func TestConnectionsOfAnAddress(t *testing.T) {
	t.Parallel()
	s := alone(t).guarded(t, func(c *server.Config) { c.MaxConnections = 8 })
	held := []net.Conn{dial(t, s), dial(t, s)}
	for _, c := range held {
		status, err := ask(t, c, "/livez", "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
	}
	_, err := ask(t, dial(t, s), "/livez", "")
	require.Error(t, err, "a third one of this address is closed")
	status, err := ask(t, held[0], "/livez", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, held[1].Close())
	stacktest.WaitFor(t, "room for another connection", func() (bool, error) {
		status, err := ask(t, dial(t, s), "/livez", "")
		return err == nil && status == http.StatusOK, nil
	})
}

// TestUnknownConnections ends those that bring no authenticated call, over HTTP/1 and HTTP/2.
func TestUnknownConnections(t *testing.T) {
	t.Parallel()
	s := alone(t).guarded(t, func(c *server.Config) { c.UnknownTimeout = 500 * time.Millisecond })
	// On a busy machine a first call can be too late.
	answered := func(token string, want int) (c net.Conn) {
		stacktest.WaitFor(t, "an answer to a first call", func() (bool, error) {
			c = dial(t, s)
			status, err := ask(t, c, "/", token)
			if err == nil && status != want {
				err = fmt.Errorf("status %d", status)
			}
			return err == nil, err
		})
		return c
	}
	known, asking := answered(s.tokens["vera"], http.StatusOK), answered("", http.StatusUnauthorized)
	preface := dial(t, s)
	_, err := io.WriteString(preface, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	require.NoError(t, err)
	for _, c := range []net.Conn{asking, preface, dial(t, s)} {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := io.Copy(io.Discard, c)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the server ends it")
	}
	require.True(t, isOpen(t, known), "a caller who is known stays")
	status, err := ask(t, known, "/", s.tokens["vera"])
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	require.True(t, s.Alive(), "the server's own connection")
}
