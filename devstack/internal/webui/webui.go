// Package webui embeds Temporal's Web UI.
package webui

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/temporalio/ui-server/v2/server"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/server_options"

	"github.com/dendrascience/dendra-jobs/devstack/internal/ports"
)

// Options of the Web UI.
type Options struct {
	Port      int
	Temporal  string // host:port of the frontend
	Namespace string // the one shown first
}

// Server is a running Web UI.
type Server struct {
	ui  *server.Server
	url string
}

// Start starts the Web UI and waits until it answers. A listener that cannot
// be opened ends the process from within the library, after a message on
// standard error.
func Start(ctx context.Context, o Options) (*Server, error) {
	s := &Server{
		url: "http://" + net.JoinHostPort(ports.Host, strconv.Itoa(o.Port)),
		ui: server.NewServer(server_options.WithConfigProvider(&config.Config{
			Host:                ports.Host,
			Port:                o.Port,
			TemporalGRPCAddress: o.Temporal,
			DefaultNamespace:    o.Namespace,
			EnableUI:            true,
			HideLogs:            true,
			DisableNewsFetch:    true, // the stack makes no connection to the outside
			CORS:                config.CORS{CookieInsecure: true},
		})),
	}
	go func() { _ = s.ui.Start() }()
	if err := s.waitHealthy(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// URL of the start page.
func (s *Server) URL() string { return s.url }

// Stop ends the Web UI at once; it holds nothing.
func (s *Server) Stop() error {
	s.ui.Stop()
	return nil
}

func (s *Server) waitHealthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/healthz", nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("status %s", res.Status)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("does not answer on %s: %w", s.url, err)
		case <-tick.C:
		}
	}
}
