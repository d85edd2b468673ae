package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/away"
	"github.com/dendrascience/dendra-jobs/internal/metrics"
	"github.com/dendrascience/dendra-jobs/job"
)

// Health is the answer of the health endpoint.
type Health struct {
	State    string         `json:"state"` // connecting, serving or draining
	Worker   job.WorkerType `json:"worker"`
	Identity string         `json:"identity"`
	JobTypes []string       `json:"job_types"`
	Running  int64          `json:"running"` // handlers at work
	// StuckHandlers are those of them that ignored the end of their contexts. Their runs
	// were given up; their slots are in use until they end, or the process does.
	StuckHandlers int64 `json:"stuck_handlers,omitempty"`
	// LastPoll is when the process last asked Temporal for work, or was answered.
	LastPoll time.Time `json:"last_poll"`
	// RestartNeeded says that the process has stopped asking for work, that stuck
	// handlers have all its slots, or that a connection is closed for good.
	RestartNeeded bool `json:"restart_needed,omitempty"`
	// Reason says which connection is closed, and why.
	Reason string `json:"reason,omitempty"`
	// Away are the servers that the process needs and that do not answer.
	Away []away.Server `json:"away,omitempty"`
}

// serveHealth answers /metrics with the metrics of the process, /livez with 200 unless the process should be restarted
// since it cannot work any more, and /readyz with 200 while it serves and
// 503 while it connects or drains, or a server that it needs is away.
func (h *host) serveHealth(ctx context.Context) (stop func(), err error) {
	if h.HealthAddress == "" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", h.HealthAddress)
	if err != nil {
		return nil, fmt.Errorf("health endpoint: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		code := http.StatusOK
		if h.restartNeeded() {
			code = http.StatusServiceUnavailable
		}
		h.answerHealth(w, code)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		code := http.StatusServiceUnavailable
		if *h.state.Load() == stateServing && !h.restartNeeded() && len(h.servers.Away()) == 0 {
			code = http.StatusOK
		}
		h.answerHealth(w, code)
	})
	mux.Handle("GET /metrics", metrics.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			h.logger.Error("the health endpoint ended", "error", err)
		}
	}()
	h.logger.Info("health endpoint", "address", "http://"+listener.Addr().String()+"/readyz")
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			h.logger.Warn("the health endpoint did not close in time", "error", err)
		}
	}, nil
}

func (h *host) answerHealth(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	health := Health{
		State:         string(*h.state.Load()),
		Worker:        h.Worker,
		Identity:      h.identity,
		JobTypes:      h.names(),
		Running:       h.running.Load(),
		StuckHandlers: h.stuckHandlers.Load(),
		RestartNeeded: h.restartNeeded(),
		Away:          h.servers.Away(),
	}
	health.LastPoll, _ = h.polls.alive()
	if err := h.broken(); err != nil {
		health.Reason = err.Error()
	}
	if err := json.NewEncoder(w).Encode(health); err != nil {
		h.logger.Debug("the health answer was not read", "error", err)
	}
}

// restartNeeded reports whether a process that serves does not ask for work, has no slot left
// for it, or lacks what its handlers need for good.
func (h *host) restartNeeded() bool {
	_, alive := h.polls.alive()
	alive = alive && h.stuckHandlers.Load() < int64(h.MaxConcurrentRuns) && h.broken() == nil
	return !alive && *h.state.Load() == stateServing
}

func (h *host) broken() error {
	if h.Alive == nil {
		return nil
	}
	return h.Alive()
}
