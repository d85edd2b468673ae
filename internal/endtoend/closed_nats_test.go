package endtoend_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/systemd/systemdtest"
	"github.com/dendrascience/dendra-jobs/workers"
)

// closingNATS is the URL of a server that takes a connection and then ends it by an
// error after which the client does not connect again.
func closingNATS(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(client, `INFO {"server_id":"x","version":"2.15.2","max_payload":1048576,"headers":true}`+"\r\n")
			for said := bufio.NewScanner(client); said.Scan(); {
				if said.Text() == "PING" {
					_, _ = io.WriteString(client, "PONG\r\n-ERR 'No More Of This'\r\n")
				}
			}
			_ = client.Close()
		}
	}()
	return "nats://" + listener.Addr().String()
}

var healthURL = regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)

// TestClosedConnectionFailsLivez: a worker whose connection to NATS is closed for good
// is to be restarted, and systemd hears no more of it.
func TestClosedConnectionFailsLivez(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "temporal,s3")
	for _, program := range []string{"extract", "load"} {
		url := closingNATS(t)
		w := stacktest.StartProgram(t, st, stacktest.Program{
			Name: program, Args: []string{"--health-address", "127.0.0.1:0"}, Env: append(systemdtest.Listen(t).Env(), "DENDRA_NATS_URL="+url),
		})
		w.WaitOutput("msg=serving")
		at := healthURL.FindString(w.Output())
		var health workers.Health
		for _, path := range []string{"livez", "readyz"} {
			stacktest.WaitFor(t, path+" to fail", func() (bool, error) {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+path, nil)
				require.NoError(t, err)
				response, err := http.DefaultClient.Do(request)
				require.NoError(t, err)
				defer func() { require.NoError(t, response.Body.Close()) }()
				health = workers.Health{}
				return response.StatusCode == http.StatusServiceUnavailable, json.NewDecoder(response.Body).Decode(&health)
			})
			require.True(t, health.RestartNeeded)
			w.WaitOutput("systemd is to restart this process")
			require.Contains(t, health.Reason, url+": the connection was closed: nats: No More Of This")
		}
	}
}
