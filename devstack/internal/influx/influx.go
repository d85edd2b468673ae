// Package influx embeds an InfluxDB 1.8 server.
package influx

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/influxdata/influxdb/cmd/influxd/run"
	"github.com/influxdata/influxdb/services/httpd"
	"github.com/influxdata/influxdb/services/meta"
	"github.com/influxdata/influxdb/services/storage"
	"go.uber.org/zap/zapcore"

	"github.com/dendrascience/dendra-jobs/devstack/internal/guard"
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
	db      *run.Server
	http    *http.Server
	address string
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
	listener, err := net.Listen("tcp", net.JoinHostPort(ports.Host, strconv.Itoa(o.Port)))
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s := &Server{db: db, address: listener.Addr().String()}
	s.http = &http.Server{Handler: guard.Handler(api(db, c.HTTPD, o.Version), guard.RefuseReads), ReadHeaderTimeout: time.Minute}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			o.Failed(err)
		}
	}()
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
	return errors.Join(s.http.Close(), s.db.Close())
}

// api is the HTTP API, as the server itself would make it. Its own service has no place for a
// guard: it answers to every origin.
func api(db *run.Server, c httpd.Config, version string) http.Handler {
	h := httpd.NewHandler(c)
	h.MetaClient, h.QueryExecutor, h.PointsWriter, h.Monitor = db.MetaClient, db.QueryExecutor, db.PointsWriter, db.Monitor
	h.QueryAuthorizer, h.WriteAuthorizer = meta.NewQueryAuthorizer(db.MetaClient), meta.NewWriteAuthorizer(db.MetaClient)
	h.Store = storage.NewStore(db.TSDBStore, db.MetaClient)
	h.Version, h.BuildType = version, "OSS"
	h.Logger = db.Logger
	return h
}

func config(o Options) *run.Config {
	c := run.NewConfig()
	c.Meta.Dir = filepath.Join(o.Folder, "meta")
	c.Data.Dir = filepath.Join(o.Folder, "data")
	c.Data.WALDir = filepath.Join(o.Folder, "wal")
	c.HTTPD.Enabled = false    // see api
	c.HTTPD.LogEnabled = false // an entry per request otherwise
	c.HTTPD.PprofEnabled = false
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
