// Package temporal embeds a Temporal server that keeps its data in two SQLite
// files.
package temporal

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync/atomic"
	"time"
	_ "time/tzdata" // schedules use time zones; the machine may have no zone files

	"go.temporal.io/sdk/worker"
	"go.temporal.io/server/client"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/headers"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"

	"github.com/dendrascience/dendra-jobs/devstack/internal/ports"
)

// Version is the release of the embedded server.
const Version = headers.ServerVersion

// Options of the server.
type Options struct {
	FrontendPort int
	// The ports that the server's own services call each other on.
	HistoryPort, MatchingPort, WorkerPort int

	Folder    string // absolute; holds the SQLite file and the release that wrote it
	NoSync    bool   // nothing waits for the disk: a power cut may damage the files
	Namespace string
	Tuning    Tuning
	History   int // events after which to suggest continue-as-new; 0 is the server's own
	Logger    *slog.Logger
	Failed    func(error) // called when the server ends by itself
}

// Server is a running Temporal server.
type Server struct {
	server  temporal.Server
	address string
	serving *atomic.Bool
}

// Bounds of a start, together less than the minute that bin/dev waits for a stack.
const (
	startTimeout    = 30 * time.Second // of the services
	registerTimeout = 20 * time.Second // of the namespace and its search attributes
)

// Start prepares the SQLite file, starts the server and registers the
// namespace and its search attributes. A server whose start failed is left as it
// is: the process ends around it, and to stop it could take for ever.
func Start(ctx context.Context, o Options) (*Server, error) { return start(ctx, o) }

// start is Start with further options of the server.
func start(ctx context.Context, o Options, further ...temporal.ServerOption) (*Server, error) {
	cfg := serverConfig(o)
	if err := prepareStore(ctx, o, cfg); err != nil {
		return nil, err
	}
	fatal, serving := newFatal(), new(atomic.Bool)
	// The workers of the server itself would else read the program, 200 MB, to know it by its hash.
	worker.SetBinaryChecksum("devstack")
	srv, err := temporal.NewServer(append([]temporal.ServerOption{
		temporal.WithConfig(cfg),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(staticHosts(o)),
		temporal.WithLogger(&logger{to: o.Logger, fatal: fatal, serving: serving}),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithDynamicConfigClient(dynamicconfig.StaticClient(dynamicConfig(o))),
		temporal.WithClientFactoryProvider(patientProvider{client.NewFactoryProvider()}),
	}, further...)...)
	if err != nil {
		return nil, err
	}
	started := make(chan error, 1)
	go func() { started <- srv.Start() }()
	select {
	case err := <-started:
		if err != nil {
			return nil, err
		}
	case err := <-fatal.occurred:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(startTimeout):
		return nil, fmt.Errorf("its services did not start within %s", startTimeout)
	}
	go func() {
		// Never returns when all goes well; the process ends around it.
		o.Failed(<-fatal.occurred)
	}()
	s := &Server{server: srv, address: address(o.FrontendPort), serving: serving}
	if err := register(ctx, s.address, o.Namespace); err != nil {
		return nil, fmt.Errorf("namespace %s: %w", o.Namespace, err)
	}
	serving.Store(true)
	return s, nil
}

// Address of the frontend, host:port.
func (s *Server) Address() string { return s.address }

// Stop ends the server. What it acknowledged is in its file.
func (s *Server) Stop() error {
	s.serving.Store(false)
	return s.server.Stop()
}

func address(port int) string { return net.JoinHostPort(ports.Host, strconv.Itoa(port)) }

func staticHosts(o Options) map[primitives.ServiceName]static.Hosts {
	host := func(port int) static.Hosts {
		return static.Hosts{All: []string{address(port)}, Self: address(port)}
	}
	return map[primitives.ServiceName]static.Hosts{
		primitives.FrontendService: host(o.FrontendPort),
		primitives.HistoryService:  host(o.HistoryPort),
		primitives.MatchingService: host(o.MatchingPort),
		primitives.WorkerService:   host(o.WorkerPort),
	}
}

func service(port int) config.Service {
	return config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: ports.Host}}
}
