package pipeline_test

import (
	"bufio"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// serverOfVersion is the URL of a server that says it has another version, and is
// otherwise the one at the given URL.
func serverOfVersion(t *testing.T, version, server string) string {
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
			go passOn(client, version, at.Host)
		}
	}()
	return "nats://" + listener.Addr().String()
}

var versionOfServer = regexp.MustCompile(`"version":"[^"]*"`)

// passOn changes the version in what the server says of itself, and nothing else.
func passOn(client net.Conn, version, address string) {
	defer func() { _ = client.Close() }()
	server, err := (&net.Dialer{}).Dial("tcp4", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	for said := bufio.NewReader(server); ; {
		line, err := said.ReadString('\n')
		if err != nil {
			return
		}
		if strings.HasPrefix(line, "INFO {") {
			line = versionOfServer.ReplaceAllString(line, `"version":"`+version+`"`)
		}
		if _, err := io.WriteString(client, line); err != nil {
			return
		}
	}
}

// TestServerThatIsTooOld: a server that cannot reset a consumer is refused by a
// sentence before anything is taken from it, and by whoever only looks as well.
func TestServerThatIsTooOld(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "nats")
	for _, version := range []string{"2.9.25", "2.10.29", "2.13.0-RC.1"} {
		old := serverOfVersion(t, version, st.NATS)
		client, err := pipeline.Connect(t.Context(), old)
		require.NoError(t, err)
		t.Cleanup(client.Close)
		_, consumerErr := client.Consumer(t.Context(), pipeline.StreamPrepared, pipeline.ConsumerOptions{
			Name: "load-live-old", Subject: pipeline.PrepSubject("live", "old"),
		})
		_, loadsErr := client.Loads(t.Context())
		for _, err := range []error{client.Ready(t.Context()), consumerErr, loadsErr} {
			require.Equal(t, pipeline.ClassServerTooOld, classOf(t, err))
			require.EqualError(t, err, "nats "+old+" has version "+version+", which cannot reset a consumer: it has to be 2.14 or newer")
		}
	}
	for _, version := range []string{"2.14.0", "2.15.2", "3.0.0-dev", "edge"} {
		connect(t, serverOfVersion(t, version, st.NATS))
	}
}
