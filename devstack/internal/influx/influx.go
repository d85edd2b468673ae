// Package influx embeds an InfluxDB 1.8 server.
package influx

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/influxdata/influxdb/cmd/influxd/run"
	"github.com/influxdata/influxdb/services/httpd"
	"go.uber.org/zap/zapcore"

	"github.com/dendrascience/dendra-jobs/devstack/internal/ports"
)

// Options of the server.
type Options struct {
	Port      int
	Folder    string // absolute
	Version   string // release that the server reports
	Databases []string
	LogLevel  slog.Level
	Failed    func(error) // called when the server ends by itself
}

// Server is a running InfluxDB server.
type Server struct {
	db       *run.Server
	address  string
	stopping chan struct{}
}

// Start opens the store, starts the HTTP API and makes the databases that are
// missing.
func Start(o Options) (*Server, error) {
	c := config(o)
	db, err := run.NewServer(c, &run.BuildInfo{Version: o.Version, Branch: "release", Commit: "devstack"})
	if err != nil {
		return nil, err
	}
	if db.Logger, err = c.Logging.New(os.Stderr); err != nil {
		return nil, err
	}
	if err := db.Open(); err != nil {
		return nil, err
	}
	s := &Server{db: db, stopping: make(chan struct{})}
	for _, svc := range db.Services {
		if h, ok := svc.(*httpd.Service); ok {
			s.address = h.Addr().String()
			go s.watch(h.Err(), o.Failed)
		}
	}
	if s.address == "" {
		return nil, errors.New("the HTTP API did not start")
	}
	for _, name := range o.Databases {
		if _, err := db.MetaClient.CreateDatabase(name); err != nil {
			return nil, fmt.Errorf("database %s: %w", name, err)
		}
	}
	return s, nil
}

// URL of the HTTP API.
func (s *Server) URL() string { return "http://" + s.address }

// Stop ends the server; what it acknowledged is in its write-ahead log.
func (s *Server) Stop() error {
	close(s.stopping)
	return s.db.Close()
}

func (s *Server) watch(failures <-chan error, failed func(error)) {
	select {
	case <-s.stopping:
	case err := <-failures:
		select {
		case <-s.stopping:
		default:
			failed(err)
		}
	}
}

func config(o Options) *run.Config {
	c := run.NewConfig()
	c.Meta.Dir = filepath.Join(o.Folder, "meta")
	c.Data.Dir = filepath.Join(o.Folder, "data")
	c.Data.WALDir = filepath.Join(o.Folder, "wal")
	c.HTTPD.BindAddress = net.JoinHostPort(ports.Host, strconv.Itoa(o.Port))
	c.HTTPD.LogEnabled = false // an entry per request otherwise
	// The port of backup and restore; its default, 8088, would let only one
	// stack run on a machine.
	c.BindAddress = net.JoinHostPort(ports.Host, "0")
	c.ReportingDisabled = true
	c.Monitor.StoreEnabled = false // no _internal database
	c.Data.QueryLogEnabled = o.LogLevel <= slog.LevelDebug
	c.Logging.SuppressLogo = true
	c.Logging.Level = zapLevel(o.LogLevel)
	return c
}

func zapLevel(l slog.Level) zapcore.Level {
	switch {
	case l < slog.LevelInfo:
		return zapcore.DebugLevel
	case l < slog.LevelWarn:
		return zapcore.InfoLevel
	case l < slog.LevelError:
		return zapcore.WarnLevel
	default:
		return zapcore.ErrorLevel
	}
}
