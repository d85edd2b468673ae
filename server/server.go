package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/away"
	"github.com/dendrascience/dendra-jobs/internal/systemd"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/server/auth"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// Server serves the Job API and the status page over HTTP.
type Server struct {
	config        Config
	api           *api.Server
	clients       *api.Clients
	authenticator *auth.Authenticator
	errors        *connecthttp.ErrorWriter
	calls         *inFlight
	large         *callerLimits
	servers       away.Watch
	listener      net.Listener
	http          *http.Server
	// ownAddress is where the server's own connection comes from, see self.
	ownAddress atomic.Pointer[string]

	// stopping ends when the server was told to stop, and streams end with it.
	stopping context.Context //nolint:containedctx // It is that of the server.
	stop     context.CancelCauseFunc
}

// New makes a server, and takes its address. Run serves.
func New(config Config) (*Server, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	s := &Server{config: config, errors: connecthttp.NewErrorWriter(), calls: newInFlight(config.MaxCalls), large: newCallerLimits(MaxLargeCalls), authenticator: auth.New(config.Auth)}
	s.stopping, s.stop = context.WithCancelCause(context.Background())

	clients := func() *api.Clients { return s.clients }
	config.API.Interceptors = append([]connect.ServerInterceptor{s.endStreams, config.Audit.Interceptor(clients), auth.CheckRoles},
		slices.Clone(config.API.Interceptors)...)
	s.api = api.New(config.API)
	s.clients = s.api.InProcess()

	s.http = &http.Server{
		Handler: s.handler(), ConnContext: withConnection, ReadHeaderTimeout: HeaderTimeout, IdleTimeout: IdleTimeout, MaxHeaderBytes: MaxHeader,
		Protocols: protocols(), ErrorLog: slog.NewLogLogger(config.Logger.Handler(), slog.LevelDebug),
		// A peer that is gone is found out, and so is one that reads nothing.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second, WriteByteTimeout: 30 * time.Second},
	}
	if config.TLS != nil {
		certificates, err := newCertificates(*config.TLS, config.Logger)
		if err != nil {
			return nil, err
		}
		s.http.TLSConfig = certificates.config()
	}
	return s, s.listen()
}

func (s *Server) listen() error {
	var lc net.ListenConfig
	listener, err := lc.Listen(context.Background(), "tcp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("the server cannot listen: %w", err)
	}
	if err := checkOpen(s.authenticator, listener.Addr()); err != nil {
		return errors.Join(err, listener.Close())
	}
	s.listener = limitConnections(listener, s.config.MaxConnections, s.config.UnknownTimeout)
	return nil
}

func protocols() *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(true)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// URL is where the server serves.
func (s *Server) URL() string {
	if s.config.TLS != nil {
		return "https://" + s.listener.Addr().String()
	}
	return "http://" + s.listener.Addr().String()
}

// Clients call the server in this process. They need a caller in the context: see
// [auth.WithCaller].
func (s *Server) Clients() *api.Clients { return s.clients }

// background is who makes the calls of the server's own work.
var background = auth.Caller{Name: "starter serve", Role: verbs.RoleAdmin, KnownBy: auth.ByLocal}

// Run serves until ctx ends, and then stops: streams end at once, other calls get
// StopTimeout. It gives an error if the server, or work in the background, ends by itself,
// and if calls had to be cut off.
func (s *Server) Run(ctx context.Context) error {
	defer s.api.Close()
	defer s.config.Audit.Flush()
	group, working := errgroup.WithContext(ctx)
	for _, work := range s.config.Background {
		group.Go(func() error {
			if err := work(auth.WithCaller(working, background), s.clients); working.Err() == nil {
				return err
			}
			return nil // It was told to end.
		})
	}
	go s.watchServers()
	group.Go(func() error {
		err := s.serve()
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return fmt.Errorf("the server has ended: %w", err)
	})
	self := s.self()
	defer self.CloseIdleConnections()
	unit := systemd.Serving(func() bool { return s.alive(self) }, s.config.Logger)
	defer unit.Close()
	group.Go(func() error {
		<-working.Done()
		unit.Stopping()
		return s.shutdown()
	})
	return group.Wait()
}

func (s *Server) serve() error {
	if s.config.TLS != nil {
		return s.http.ServeTLS(s.listener, "", "")
	}
	return s.http.Serve(s.listener)
}

// errStopping is what clients are told whose streams end.
var errStopping = api.NewError(connect.CodeUnavailable, jobsv1.ErrorReason_ERROR_REASON_BACKEND_UNAVAILABLE, "this server stops: call again")

func (s *Server) shutdown() error {
	s.stop(errStopping)
	ctx, cancel := context.WithTimeout(context.Background(), s.config.StopTimeout)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("calls that had not ended within %s were cut off", s.config.StopTimeout), s.http.Close())
	}
	return nil
}

// endStreams tells callers why a stream has ended that this server has ended: the cause of
// its context.
func (s *Server) endStreams(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		if spec.StreamType != connect.StreamTypeUnary {
			stream = requestNoted{stream, ctx}
		}
		err := next(ctx, spec, stream)
		if ended, ok := errors.AsType[*connect.Error](context.Cause(ctx)); ok && err != nil {
			return ended
		}
		return err
	}
}

// requestNoted is a stream whose request has come once it was received.
type requestNoted struct {
	connect.ServerStream
	ctx context.Context //nolint:containedctx // That of the call, which a stream belongs to.
}

// Receive implements connect.ServerStream.
func (s requestNoted) Receive(message any) error {
	err := s.ServerStream.Receive(message)
	requestRead(s.ctx)
	return err
}
