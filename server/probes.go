package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	sdk "go.temporal.io/sdk/client"
)

// watchServers asks the servers that the API needs whether they answer, until the server stops.
func (s *Server) watchServers() {
	s.servers.Add("Temporal", func(ctx context.Context) error {
		_, err := s.config.API.Client.Temporal().CheckHealth(ctx, &sdk.CheckHealthRequest{})
		return err
	})
	if nats := s.config.API.Pipeline; nats != nil {
		s.servers.Add("NATS", nats.Reach)
	}
	s.servers.Run(s.stopping)
}

// live answers while the process serves requests.
func live(w http.ResponseWriter, _ *http.Request) {
	writeProbe(w, http.StatusOK, "ok")
}

// ready fails while this replica should get no calls: it stops, or its audit log takes no
// lines. It is ready while other servers are away, or the file of credentials has a slip, and
// says so: all replicas would fail at once, and the page has to say what is wrong.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	switch {
	case s.stopping.Err() != nil:
		writeProbe(w, http.StatusServiceUnavailable, "stopping")
	case s.config.Audit.Ready() != nil:
		writeProbe(w, http.StatusServiceUnavailable, "the audit log cannot be written")
	default:
		text := "ok"
		if !s.authenticator.Usable() {
			text += "\nthe file of credentials cannot be used as it is: see the log"
		}
		for _, server := range s.servers.Away() {
			text += fmt.Sprintf("\n%s has not answered since %s: %s", server.Name, server.Since.Format(time.RFC3339), server.Error)
		}
		writeProbe(w, http.StatusOK, text)
	}
}

func writeProbe(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // Whoever has left needs no answer.
}
