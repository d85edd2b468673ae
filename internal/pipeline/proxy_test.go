package pipeline_test

import (
	"bufio"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy is what happens to the lines between a client and a server. A function that is
// nil changes nothing.
type proxy struct {
	fromServer, fromClient func(line string) string
}

// startProxy is the URL of a proxy for the server at the given URL.
func startProxy(t *testing.T, server string, p proxy) string {
	t.Helper()
	at, err := url.Parse(server)
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(client, at.Host)
		}
	}()
	return "nats://" + listener.Addr().String()
}

func (p proxy) serve(client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	server, err := (&net.Dialer{}).Dial("tcp4", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		passOn(server, client, p.fromClient)
		_ = server.Close()
	}()
	passOn(client, server, p.fromServer)
}

// passOn copies line by line until either side is gone.
func passOn(to io.Writer, from io.Reader, change func(string) string) {
	for said := bufio.NewReader(from); ; {
		line, err := said.ReadString('\n')
		if err != nil {
			return
		}
		if change != nil {
			line = change(line)
		}
		if _, err := io.WriteString(to, line); err != nil {
			return
		}
	}
}

// without drops the messages of a subject, which have no headers and one line each.
func without(subject string) func(string) string {
	drop := false
	return func(line string) string {
		if drop || strings.HasPrefix(line, "MSG "+subject+" ") {
			drop = !drop
			return ""
		}
		return line
	}
}
