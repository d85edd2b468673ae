package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// health says what the process says of itself, and fails unless that is 200.
func TestHealth(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = fmt.Fprintln(w, "nats does not answer")
	}))
	t.Cleanup(server.Close)
	r := console{}.run(t.Context(), "health", server.URL+"/readyz")
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, "nats does not answer\n", r.stdout)

	r = console{}.run(t.Context(), "health", server.URL+"/livez")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, server.URL+"/livez: 503 Service Unavailable: nats does not answer")

	server.Close()
	require.Equal(t, 1, console{}.run(t.Context(), "health", server.URL).code)
	require.Equal(t, 2, console{}.run(t.Context(), "health").code)
}
