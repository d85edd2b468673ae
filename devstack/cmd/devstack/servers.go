package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/dendrascience/dendra-jobs/devstack/internal/datafolder"
	"github.com/dendrascience/dendra-jobs/devstack/internal/hobolink"
	"github.com/dendrascience/dendra-jobs/devstack/internal/influx"
	"github.com/dendrascience/dendra-jobs/devstack/internal/loggernet"
	"github.com/dendrascience/dendra-jobs/devstack/internal/nats"
	"github.com/dendrascience/dendra-jobs/devstack/internal/platform"
	"github.com/dendrascience/dendra-jobs/devstack/internal/ports"
	"github.com/dendrascience/dendra-jobs/devstack/internal/s3"
	"github.com/dendrascience/dendra-jobs/devstack/internal/stops"
	"github.com/dendrascience/dendra-jobs/devstack/internal/temporal"
	"github.com/dendrascience/dendra-jobs/devstack/internal/webui"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// What the stack holds from its first start on.
var (
	databases = []string{"common1"}
	buckets   = []string{"uploads", "media", "archive", "exports"}
)

// The places of the ports in a reservation.
const (
	portTemporal = iota
	portWebUI
	portNATS
	portInflux
	portS3
	portHOBOlink
	portLDMP
	portPlatform
	portHistory
	portMatching
	portWorker
)

// servers starts and stops the servers in their order.
type servers struct {
	options
	folder  *datafolder.Folder
	failed  chan error
	running stops.Servers // but one whose start failed
}

func newServers(o options, folder *datafolder.Folder) *servers {
	return &servers{options: o, folder: folder, failed: make(chan error, 1)}
}

// start starts the servers and returns where they are.
func (s *servers) start(ctx context.Context) (stack.Info, error) {
	reserved, err := ports.Reserve([]ports.Want{
		portTemporal: {Server: "Temporal", Flag: "--temporal-port", Port: s.temporalPort},
		portWebUI:    {Server: "Temporal's Web UI", Flag: "--ui-port", Port: s.uiPort},
		portNATS:     {Server: "NATS", Flag: "--nats-port", Port: s.natsPort},
		portInflux:   {Server: "InfluxDB", Flag: "--influx-port", Port: s.influxPort},
		portS3:       {Server: "the S3 gateway", Flag: "--s3-port", Port: s.s3Port},
		portHOBOlink: {Server: "the HOBOlink development server", Flag: "--hobolink-port", Port: s.hobolinkPort},
		portLDMP:     {Server: "the LoggerNet development server", Flag: "--ldmp-port", Port: s.ldmpPort},
		portPlatform: {Server: "the reference Platform API", Flag: "--platform-port", Port: s.platformPort},
		portHistory:  {Server: "Temporal's history service"},
		portMatching: {Server: "Temporal's matching service"},
		portWorker:   {Server: "Temporal's worker service"},
	})
	if err != nil {
		return stack.Info{}, err
	}
	defer reserved.Done()

	info := stack.Info{
		PID:       os.Getpid(),
		Data:      s.folder.Path,
		Namespace: s.namespace,
		Tuning:    string(s.tuning),
		Versions:  versions(),
	}
	// The data servers first, in milliseconds each; Temporal takes the most and
	// the Web UI needs it.
	for _, step := range []struct {
		server string
		name   string
		start  func() (stop func() error, err error)
	}{
		{serverNATS, "NATS", func() (func() error, error) { return s.startNATS(ctx, reserved, &info) }},
		{serverInflux, "InfluxDB", func() (func() error, error) { return s.startInflux(reserved, &info) }},
		{serverS3, "S3 gateway", func() (func() error, error) { return s.startS3(ctx, reserved, &info) }},
		{serverHOBOlink, "HOBOlink development server", func() (func() error, error) { return s.startHOBOlink(ctx, reserved, &info) }},
		{serverLDMP, "LoggerNet development server", func() (func() error, error) { return s.startLoggerNet(ctx, reserved, &info) }},
		{serverPlatform, "reference Platform API", func() (func() error, error) { return s.startPlatform(ctx, reserved, &info) }},
		{serverTemporal, "Temporal", func() (func() error, error) { return s.startTemporal(ctx, reserved, &info) }},
		{serverWebUI, "Web UI", func() (func() error, error) { return s.startWebUI(reserved, &info) }},
	} {
		if !s.only[step.server] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return info, err
		}
		stop, err := step.start()
		if stop != nil {
			s.running.Add(step.name, stop)
		}
		if err != nil {
			return info, fmt.Errorf("%s did not start: %w", step.name, err)
		}
	}
	return info, nil
}

// dies returns what a server calls when it ends by itself.
func (s *servers) dies(name string) func(error) {
	return func(err error) {
		select {
		case s.failed <- fmt.Errorf("%s died: %w", name, err):
		default: // another one died first
		}
	}
}

func (s *servers) startNATS(ctx context.Context, reserved *ports.Reservation, info *stack.Info) (func() error, error) {
	folder, err := s.folder.Sub("nats")
	if err != nil {
		return nil, err
	}
	srv, err := nats.Start(nats.Options{
		Port: reserved.Port(portNATS), Folder: folder, Sync: s.natsSync, Logger: logger("nats"), Failed: s.dies("NATS"),
		Routes: s.routes, Login: s.natsLogin, Config: s.natsConfig,
	})
	if err != nil {
		return nil, err
	}
	info.NATS = srv.URL()
	if len(s.routes) > 0 || s.natsConfig != "" {
		return srv.Stop, nil // a node by itself has no quorum to make them, and a file may ask for log-ins
	}
	return srv.Stop, nats.EnsureStreams(ctx, srv.URL())
}

func (s *servers) startInflux(reserved *ports.Reservation, info *stack.Info) (func() error, error) {
	folder, err := s.folder.Sub("influx")
	if err != nil {
		return nil, err
	}
	srv, err := influx.Start(influx.Options{
		Port: reserved.Port(portInflux), Folder: folder, Version: info.Versions["influxdb"],
		Databases: databases, LogLevel: s.logLevel, Failed: s.dies("InfluxDB"),
	})
	if err != nil {
		return nil, err
	}
	info.Influx, info.Databases = srv.URL(), databases
	return srv.Stop, nil
}

func (s *servers) startS3(ctx context.Context, reserved *ports.Reservation, info *stack.Info) (func() error, error) {
	objects, err := s.folder.Sub("s3", "buckets")
	if err != nil {
		return nil, err
	}
	srv, err := s3.Start(ctx, s3.Options{
		Port:    reserved.Port(portS3),
		Objects: objects,
		Sidecar: filepath.Join(s.folder.Path, "s3", "metadata"),
		Buckets: buckets,
		Failed:  s.dies("the S3 gateway"),
	})
	if err != nil {
		return nil, err
	}
	info.S3 = stack.S3{Endpoint: srv.URL(), AccessKey: s3.AccessKey, SecretKey: s3.SecretKey, Region: s3.Region}
	info.Buckets = buckets
	return srv.Stop, nil
}

func (s *servers) startHOBOlink(ctx context.Context, reserved *ports.Reservation, info *stack.Info) (func() error, error) {
	srv, err := hobolink.Start(ctx, hobolink.Options{
		Port: reserved.Port(portHOBOlink), Failed: s.dies("the HOBOlink development server"),
	})
	if err != nil {
		return nil, err
	}
	info.HOBOlink = stack.API{URL: srv.URL(), Token: hobolink.Token}
	return srv.Stop, nil
}

func (s *servers) startLoggerNet(ctx context.Context, reserved *ports.Reservation, info *stack.Info) (func() error, error) {
	srv, err := loggernet.Start(ctx, loggernet.Options{
		Port: reserved.Port(portLDMP), Failed: s.dies("the LoggerNet development server"),
	})
	if err != nil {
		return nil, err
	}
	info.LDMP = srv.Address()
	return srv.Stop, nil
}

func (s *servers) startPlatform(ctx context.Context, reserved *ports.Reservation, info *stack.Info) (func() error, error) {
	folder, err := s.folder.Sub("platform")
	if err != nil {
		return nil, err
	}
	srv, err := platform.Start(ctx, platform.Options{
		Port: reserved.Port(portPlatform), Folder: folder, Token: s.token, Failed: s.dies("the reference Platform API"),
	})
	if err != nil {
		return nil, err
	}
	info.Platform = stack.API{URL: srv.URL(), Token: s.token}
	info.Release2 = stack.API{URL: srv.Release2URL(), Token: s.token}
	return srv.Stop, nil
}

func (s *servers) startTemporal(ctx context.Context, reserved *ports.Reservation, info *stack.Info) (func() error, error) {
	folder, err := s.folder.Sub("temporal")
	if err != nil {
		return nil, err
	}
	srv, err := temporal.Start(ctx, temporal.Options{
		FrontendPort: reserved.Port(portTemporal),
		History:      s.history,
		HistoryPort:  reserved.Port(portHistory),
		MatchingPort: reserved.Port(portMatching),
		WorkerPort:   reserved.Port(portWorker),
		Folder:       folder,
		NoSync:       s.temporalNoSync,
		Namespace:    s.namespace,
		Tuning:       s.tuning,
		Logger:       logger("temporal"),
		Failed:       s.dies("Temporal"),
	})
	if err != nil {
		return nil, err
	}
	info.Temporal = srv.Address()
	return srv.Stop, nil
}

func (s *servers) startWebUI(reserved *ports.Reservation, info *stack.Info) (func() error, error) {
	srv, err := webui.Start(webui.Options{
		Port: reserved.Port(portWebUI), Temporal: info.Temporal, Namespace: s.namespace, Failed: s.dies("Temporal's Web UI"),
	})
	if err != nil {
		return nil, err
	}
	info.WebUI = srv.URL()
	return srv.Stop, nil
}

func logger(name string) *slog.Logger { return slog.Default().With("server", name) }
