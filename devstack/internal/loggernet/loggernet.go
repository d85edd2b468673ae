// Package loggernet runs the LoggerNet development server: made-up data loggers
// over the Logger Data Monitoring Protocol.
package loggernet

import (
	"cmp"
	"context"
	"net"
	"strconv"

	"github.com/dendrascience/dendra-jobs/devstack/internal/ports"
	"github.com/dendrascience/dendra-jobs/internal/ldmp/ldmptest"
)

// Options of the server.
type Options struct {
	Host   string // address to listen on. Defaults to [ports.Host].
	Port   int
	Failed func(error) // called when the server ends by itself
}

// Server is a running LoggerNet development server.
type Server struct {
	ldmp    *ldmptest.Server
	address string
}

// Start starts the server with its default stations.
func Start(ctx context.Context, o Options) (*Server, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp4", net.JoinHostPort(cmp.Or(o.Host, ports.Host), strconv.Itoa(o.Port)))
	if err != nil {
		return nil, err
	}
	s := &Server{ldmp: ldmptest.New(ldmptest.Options{}), address: listener.Addr().String()}
	s.ldmp.Start(listener, o.Failed)
	return s, nil
}

// Address is host:port of the server.
func (s *Server) Address() string { return s.address }

// Stop ends the server and its connections.
func (s *Server) Stop() error {
	s.ldmp.Stop()
	return nil
}
