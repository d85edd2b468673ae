// Package hobolink runs the HOBOlink development server: made-up weather data
// over the API of the vendor.
package hobolink

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/dendrascience/dendra-jobs/devstack/internal/ports"
	"github.com/dendrascience/dendra-jobs/internal/hobolink/hobolinktest"
)

// Token is the bearer token that the development server asks for.
const Token = hobolinktest.DefaultToken

// Options of the server.
type Options struct {
	Host   string // address to listen on. Defaults to [ports.Host].
	Port   int
	Failed func(error) // called when the server ends by itself
}

// Server is a running HOBOlink development server.
type Server struct {
	http *http.Server
	url  string
}

// Start starts the server.
func Start(ctx context.Context, o Options) (*Server, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp4", net.JoinHostPort(cmp.Or(o.Host, ports.Host), strconv.Itoa(o.Port)))
	if err != nil {
		return nil, err
	}
	s := &Server{
		http: &http.Server{Handler: hobolinktest.NewHandler(hobolinktest.Options{Token: Token}), ReadHeaderTimeout: 10 * time.Second},
		url:  "http://" + listener.Addr().String(),
	}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			o.Failed(err)
		}
	}()
	return s, nil
}

// URL of the API.
func (s *Server) URL() string { return s.url }

// Stop ends the server after the requests under way, which get a second.
func (s *Server) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		return s.http.Close()
	}
	return nil
}
