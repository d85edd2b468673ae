// Package webui embeds Temporal's Web UI.
package webui

import (
	"errors"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/temporalio/ui-server/v2/server/api"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/csrf"
	"github.com/temporalio/ui-server/v2/server/headers"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/ui"

	"github.com/dendrascience/dendra-jobs/devstack/internal/guard"
	"github.com/dendrascience/dendra-jobs/devstack/internal/ports"
)

// Options of the Web UI.
type Options struct {
	Port      int
	Temporal  string      // host:port of the frontend
	Namespace string      // the one shown first
	Failed    func(error) // called when the server ends by itself
}

// Server is a running Web UI.
type Server struct {
	http *http.Server
	url  string
}

// Start starts the Web UI.
func Start(o Options) (*Server, error) {
	pages, err := pages(o)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(ports.Host, strconv.Itoa(o.Port)))
	if err != nil {
		return nil, err
	}
	s := &Server{
		url:  "http://" + listener.Addr().String(),
		http: &http.Server{Handler: guard.Handler(pages, guard.AllowReads), ReadHeaderTimeout: time.Minute},
	}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			o.Failed(err)
		}
	}()
	return s, nil
}

// pages are what the library serves. Its own server has no place for a guard: it answers to
// every name of its address.
func pages(o Options) (http.Handler, error) {
	provider, err := config.NewConfigProviderWithRefresh(&config.Config{
		TemporalGRPCAddress: o.Temporal,
		DefaultNamespace:    o.Namespace,
		EnableUI:            true,
		DisableNewsFetch:    true, // the stack makes no connection to the outside
		CORS:                config.CORS{CookieInsecure: true},
	})
	if err != nil {
		return nil, err
	}
	assets, err := ui.Assets()
	if err != nil {
		return nil, err
	}
	if assets, err = fs.Sub(assets, "local"); err != nil {
		return nil, err
	}
	e := echo.New()
	e.Use(middleware.Recover(), middleware.Gzip(), middleware.Secure(), csrf.EnsureTokenCookie(false), middleware.CSRFWithConfig(csrf.MiddlewareConfig(provider, false)))
	route.SetAuthRoutes(e, provider)
	route.SetRenderRoute(e, "")
	return e, errors.Join(
		route.SetAPIRoutes(e, provider, []api.Middleware{headers.WithForwardHeaders([]string{"Caller-Type"})}),
		route.SetUIRoutes(e, "", assets),
	)
}

// URL of the start page.
func (s *Server) URL() string { return s.url }

// Stop ends the Web UI at once; it holds nothing.
func (s *Server) Stop() error { return s.http.Close() }
