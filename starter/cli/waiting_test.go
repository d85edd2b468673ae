package cli_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

// TestCommandsSayWhatTheyWaitFor: servers accept connections, and do not answer.
func TestCommandsSayWhatTheyWaitFor(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	silent := stacktest.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	t.Cleanup(func() { close(over) })
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	nats, temporal := "nats://"+listener.Addr().String(), listener.Addr().String()
	for want, args := range map[string][]string{
		"the answer to PauseJob":      {"jobs", "pause", "echo.a", "--server", silent},
		"the answer to ListLoads":     {"loads", "--nats", nats},
		"the servers":                 {"doctor", "--only", "nats", "--nats", nats},
		"the servers\n":               {"setup", "--only", "nats", "--nats", nats},
		"the answer to ListBookmarks": {"bookmarks", "list", "--nats", nats},
		"Temporal at " + temporal:     {"jobs", "list", "--address", temporal},
		"the answer to GetTeardown":   {"teardown", "describe", "ucnrs", "--server", silent},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var stderr stacktest.Output
			p := cli.Program{
				Getenv:   func(string) string { return "" },
				Patience: time.Millisecond, Stderr: &stderr, Stdin: strings.NewReader(""), Stdout: io.Discard,
			}
			ended := make(chan int, 1)
			go func() { ended <- p.Execute(ctx, args) }()
			stacktest.WaitFor(t, "a sign of "+want, func() (bool, error) {
				return strings.Contains(stderr.String(), "waiting for "+want), nil
			})
			cancel()
			require.NotZero(t, <-ended)
			// Once, whatever the command waited for before.
			require.Equal(t, 1, strings.Count(stderr.String(), "waiting for "+want), stderr.String())
		})
	}
}
