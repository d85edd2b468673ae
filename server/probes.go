package server

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	sdk "go.temporal.io/sdk/client"
)

const (
	// temporalTimeout is how long Temporal may take to answer.
	temporalTimeout = 3 * time.Second
	// temporalFresh is how long an answer serves those who ask.
	temporalFresh = 2 * time.Second
)

// temporalState remembers whether Temporal answers.
type temporalState struct {
	mu   sync.Mutex
	at   time.Time
	down bool
}

// temporalDown reports whether Temporal does not answer.
func (s *Server) temporalDown(ctx context.Context) bool {
	s.temporal.mu.Lock()
	defer s.temporal.mu.Unlock()
	if time.Since(s.temporal.at) < temporalFresh {
		return s.temporal.down
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), temporalTimeout)
	defer cancel()
	_, err := s.config.API.Client.Temporal().CheckHealth(ctx, &sdk.CheckHealthRequest{})
	s.temporal.at, s.temporal.down = time.Now(), err != nil
	return s.temporal.down
}

// live answers while the process serves requests.
func live(w http.ResponseWriter, _ *http.Request) {
	writeProbe(w, http.StatusOK, "ok")
}

// ready fails while this replica should get no calls: it stops, or its audit log takes no
// lines. It is ready while Temporal is away: all replicas would fail at once, and the page
// has to say what is wrong.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.stopping.Err() != nil:
		writeProbe(w, http.StatusServiceUnavailable, "stopping")
	case s.config.Audit.Ready() != nil:
		writeProbe(w, http.StatusServiceUnavailable, "the audit log cannot be written")
	case s.temporalDown(r.Context()):
		writeProbe(w, http.StatusOK, "ok, but Temporal does not answer")
	default:
		writeProbe(w, http.StatusOK, "ok")
	}
}

func writeProbe(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // Whoever has left needs no answer.
}
