// Package platform is the reference Platform API: a stand-in for Dendra's own, for
// development and tests. It serves the contract in proto/dendra/platform/v1, a
// Release 2 metadata API beside it, and a way to write resources, which a real
// Platform API has elsewhere.
package platform

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"connectrpc.com/validate"

	"github.com/dendrascience/dendra-jobs/devstack/internal/platform/store"
	"github.com/dendrascience/dendra-jobs/devstack/internal/ports"
	"github.com/dendrascience/dendra-jobs/devstack/internal/release2"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1/platformv1connect"
)

// Release2Path is where the Release 2 metadata API is, below the server's URL.
const Release2Path = "/release2"

// Options of the server.
type Options struct {
	Folder string // absolute folder of the databases
	Host   string // address to listen on. Defaults to [ports.Host].
	Port   int
	Failed func(error) // called when the server ends by itself

	// Checkpoint is how often an idle stream of changes has a checkpoint. Defaults to
	// ten seconds.
	Checkpoint time.Duration
	// GracePeriod is how long an organization can be undeleted when its deletion does
	// not say. Defaults to 30 days.
	GracePeriod time.Duration
	// Token is the bearer token of the service account of the jobs. Defaults to [Token].
	Token string
	// Keep is how many changes the log keeps. Defaults to [store.DefaultKeep].
	Keep int64
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Checkpoint == 0 {
		o.Checkpoint = 10 * time.Second
	}
	if o.GracePeriod == 0 {
		o.GracePeriod = 30 * 24 * time.Hour
	}
	if o.Token == "" {
		o.Token = Token
	}
	return o
}

// Server is a running reference Platform API.
type Server struct {
	http     *http.Server
	url      string
	store    *store.Store
	release2 *release2.API
	stopping chan struct{}
}

// Start opens the databases and starts the server.
func Start(ctx context.Context, o Options) (*Server, error) {
	o = o.withDefaults()
	s := &Server{stopping: make(chan struct{})}
	var err error
	if s.store, err = store.Open(ctx, store.Options{File: filepath.Join(o.Folder, "platform.db"), Keep: o.Keep, Now: o.Now}); err != nil {
		return nil, err
	}
	if s.release2, err = release2.Open(ctx, filepath.Join(o.Folder, "release2.db")); err != nil {
		return nil, errors.Join(err, s.store.Close())
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp4", net.JoinHostPort(cmp.Or(o.Host, ports.Host), strconv.Itoa(o.Port)))
	if err != nil {
		return nil, errors.Join(err, s.store.Close(), s.release2.Close())
	}
	s.http = &http.Server{Handler: s.handler(o), ReadHeaderTimeout: 10 * time.Second}
	s.url = "http://" + listener.Addr().String()
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			o.Failed(err)
		}
	}()
	return s, nil
}

// URL of the Platform API.
func (s *Server) URL() string { return s.url }

// Release2URL is the URL of the Release 2 metadata API.
func (s *Server) Release2URL() string { return s.url + Release2Path }

// Stop ends the streams, and then the server after the requests under way, which get a
// second.
func (s *Server) Stop() error {
	close(s.stopping)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	return errors.Join(err, s.store.Close(), s.release2.Close())
}

func (s *Server) handler(o Options) http.Handler {
	server := connect.NewServer(validate.NewServerInterceptor())
	platformv1connect.RegisterChangeServiceHandler(server, &changeService{store: s.store, checkpoint: o.Checkpoint, stopping: s.stopping})
	platformv1connect.RegisterIntegrationServiceHandler(server, &integrationService{store: s.store})
	platformv1connect.RegisterMetadataServiceHandler(server, &metadataService{store: s.store})
	platformv1connect.RegisterOrganizationServiceHandler(server, &organizationService{store: s.store, gracePeriod: o.GracePeriod})
	platformv1connect.RegisterTableServiceHandler(server, &tableService{store: s.store})
	mux := http.NewServeMux()
	connecthttp.Mount(mux, server)
	(&devService{store: s.store}).mount(mux, platformtest.Path)
	mux.Handle(Release2Path+"/", http.StripPrefix(Release2Path, s.release2.Handler(actorOf)))
	return authenticated(o.Token, mux)
}
