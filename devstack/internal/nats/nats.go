// Package nats embeds a NATS server with JetStream.
package nats

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/dendrascience/dendra-jobs/devstack/internal/ports"
)

// Options of the server.
type Options struct {
	Port   int
	Folder string // absolute; JetStream keeps its files here
	Sync   Sync
	Routes Routes
	Login  *url.Userinfo // what clients have to give; nil if nothing
	Config string        // path of a file in the server's own form, for all that is not set here; "" if none
	Logger *slog.Logger
	Failed func(error) // called when the server ends by itself
}

// Sync says when JetStream syncs its files to disk. What was acknowledged before
// survives a power cut; a process that is killed loses nothing in any case.
type Sync struct {
	Interval time.Duration // 0 is the server's own, two minutes
	Always   bool          // before each acknowledgement
}

// ParseSync reads what sync_interval of the server's configuration takes: a duration
// or always.
func ParseSync(text string) (Sync, error) {
	if text == "always" {
		return Sync{Always: true}, nil
	}
	interval, err := time.ParseDuration(text)
	if err != nil || interval <= 0 {
		return Sync{}, fmt.Errorf("%q is neither a duration such as 10s nor always", text)
	}
	return Sync{Interval: interval}, nil
}

// Routes are the ports at which the nodes of a cluster find each other, that of this
// node first; none for a server by itself.
type Routes []int

// ParseRoutes reads ports with commas between them.
func ParseRoutes(text string) (Routes, error) {
	if text == "" {
		return nil, nil
	}
	var routes Routes
	for port := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("%q is no port", port)
		}
		routes = append(routes, int(n))
	}
	return routes, nil
}

// apply makes the server a node of the cluster.
func (r Routes) apply(o *server.Options) {
	if len(r) == 0 {
		return
	}
	o.ServerName += "-" + strconv.Itoa(r[0])
	o.Cluster = server.ClusterOpts{Name: "devstack", Host: ports.Host, Port: r[0]}
	for _, port := range r {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", Host: net.JoinHostPort(ports.Host, strconv.Itoa(port))})
	}
}

// Server is a running NATS server.
type Server struct {
	ns       *server.Server
	login    *url.Userinfo
	stopping chan struct{}
}

// Start starts the server and waits until it takes connections.
func Start(o Options) (*Server, error) {
	options := &server.Options{}
	if o.Config != "" {
		var err error
		if options, err = server.ProcessConfigFile(o.Config); err != nil {
			return nil, err
		}
	}
	options.ServerName, options.Host, options.Port = "devstack", ports.Host, o.Port
	options.JetStream, options.StoreDir, options.NoSigs = true, o.Folder, true
	// Streams reserve what they may grow to. By default they have three quarters of what is free
	// on the disk now, which would not be enough on a small one.
	options.JetStreamMaxStore = 1 << 40
	options.SyncInterval, options.SyncAlways = o.Sync.Interval, o.Sync.Always
	o.Routes.apply(options)
	if o.Login != nil {
		options.Username = o.Login.Username()
		options.Password, _ = o.Login.Password()
	}
	ns, err := server.NewServer(options)
	if err != nil {
		return nil, err
	}
	ns.SetLoggerV2(logger{o.Logger}, false, false, false)
	ns.Start()
	if !ns.ReadyForConnections(10 * time.Second) {
		return nil, errors.New("not ready after 10 s")
	}
	if !ns.JetStreamEnabled() {
		return nil, fmt.Errorf("JetStream did not start on %s", o.Folder)
	}
	s := &Server{ns: ns, login: o.Login, stopping: make(chan struct{})}
	go func() {
		ns.WaitForShutdown()
		select {
		case <-s.stopping:
		default:
			o.Failed(errors.New("the server shut down"))
		}
	}()
	return s, nil
}

// URL is what clients connect to, with what they have to give.
func (s *Server) URL() string {
	address := url.URL{Scheme: "nats", User: s.login, Host: s.ns.Addr().String()}
	return address.String()
}

// Stop flushes JetStream's files and ends the server.
func (s *Server) Stop() error {
	close(s.stopping)
	s.ns.Shutdown()
	s.ns.WaitForShutdown()
	return nil
}
