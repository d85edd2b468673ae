// Package nats embeds a NATS server with JetStream.
package nats

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/dendrascience/dendra-jobs/devstack/internal/ports"
)

// Options of the server.
type Options struct {
	Port   int
	Folder string // absolute; JetStream keeps its files here
	Sync   Sync
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

// Server is a running NATS server.
type Server struct {
	ns       *server.Server
	stopping chan struct{}
}

// Start starts the server and waits until it takes connections.
func Start(o Options) (*Server, error) {
	ns, err := server.NewServer(&server.Options{
		ServerName: "devstack",
		Host:       ports.Host,
		Port:       o.Port,
		JetStream:  true,
		StoreDir:   o.Folder,
		NoSigs:     true,

		SyncInterval: o.Sync.Interval,
		SyncAlways:   o.Sync.Always,
	})
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
	s := &Server{ns: ns, stopping: make(chan struct{})}
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

// URL is what clients connect to.
func (s *Server) URL() string { return s.ns.ClientURL() }

// Stop flushes JetStream's files and ends the server.
func (s *Server) Stop() error {
	close(s.stopping)
	s.ns.Shutdown()
	s.ns.WaitForShutdown()
	return nil
}
