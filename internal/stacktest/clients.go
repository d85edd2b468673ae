package stacktest

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// Dial returns a Temporal client that is closed at the end of the test.
func (s *Stack) Dial(t testing.TB) client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	c, err := temporalclient.Connect(ctx, client.Options{
		HostPort:  s.Temporal,
		Namespace: s.Namespace,
		Logger:    log.NewStructuredLogger(discard),
	})
	if err != nil {
		t.Fatalf("Temporal on %s: %v", s.Temporal, err)
	}
	t.Cleanup(c.Close)
	return c
}

// Pipeline returns a client of NATS that is closed at the end of the test.
func (s *Stack) Pipeline(t testing.TB) *pipeline.Client {
	t.Helper()
	c, err := pipeline.Connect(t.Context(), s.NATS)
	if err != nil {
		t.Fatalf("NATS on %s: %v", s.NATS, err)
	}
	t.Cleanup(c.Close)
	return c
}

// Settings say how to reach Temporal.
func (s *Stack) Settings() temporalclient.Settings {
	return temporalclient.Settings{Address: s.Temporal, Namespace: s.Namespace}
}

// Variables are the environment of a program that uses the stack, by name.
func (s *Stack) Variables() map[string]string {
	variables := map[string]string{}
	for _, line := range s.Env() {
		name, value, _ := strings.Cut(line, "=")
		variables[name] = value
	}
	return variables
}

// Getenv is an os.Getenv of the [Stack.Variables].
func (s *Stack) Getenv(name string) string { return s.Variables()[name] }

// Serve serves HTTP on loopback until the end of the test, and returns the URL. Requests
// under way are broken off then.
func Serve(t testing.TB, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// ServeWithoutEnd is [Serve] of a server whose answers have headers, and blanks without end.
func ServeWithoutEnd(t testing.TB, headers http.Header) string {
	t.Helper()
	blanks := bytes.Repeat([]byte(" "), 1<<20)
	return Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), headers)
		for {
			if _, err := w.Write(blanks); err != nil {
				return
			}
		}
	}))
}
