package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/devstack/internal/nats"
	"github.com/dendrascience/dendra-jobs/devstack/internal/platform"
	"github.com/dendrascience/dendra-jobs/devstack/internal/temporal"
)

// options is what the command line says.
type options struct {
	data           string
	ephemeral      bool
	temporalNoSync bool
	only           map[string]bool // names of the servers to run
	namespace      string
	tuning         temporal.Tuning
	history        int
	natsSync       nats.Sync
	routes         nats.Routes
	natsLogin      *url.Userinfo
	natsConfig     string
	token          string // of the reference Platform API
	logLevel       slog.Level

	temporalPort, uiPort, natsPort, influxPort, s3Port, hobolinkPort, ldmpPort, platformPort int
}

// Names of the servers in --only; the flag of a server's port begins with its name.
const (
	serverTemporal = "temporal"
	serverWebUI    = "ui"
	serverNATS     = "nats"
	serverInflux   = "influx"
	serverS3       = "s3"
	serverHOBOlink = "hobolink"
	serverLDMP     = "ldmp"
	serverPlatform = "platform"
)

var serverNames = []string{
	serverTemporal, serverWebUI, serverNATS, serverInflux, serverS3, serverHOBOlink, serverLDMP, serverPlatform,
}

const usage = `devstack runs the servers that Dendra Jobs works with, in one process, on 127.0.0.1 only:
Temporal with its Web UI, NATS JetStream, InfluxDB 1.8, an S3 gateway, development servers of HOBOlink
and LoggerNet, and a reference Platform API.
When all of them answer it prints one line of JSON with their addresses. SIGINT or SIGTERM ends it.

  devstack --data DIR | --ephemeral [flags]

`

func parseFlags(args []string, errOut io.Writer) (options, error) {
	var (
		o                      options
		tuning, level          string
		only, natsSync, routes string
		natsLogin              string
		freePorts              bool
	)
	fs := flag.NewFlagSet("devstack", flag.ContinueOnError)
	fs.SetOutput(errOut)
	fs.Usage = func() {
		_, _ = io.WriteString(errOut, usage)
		fs.PrintDefaults()
	}
	fs.StringVar(&o.data, "data", "", "`folder` of everything the servers keep; made when missing")
	fs.BoolVar(&o.ephemeral, "ephemeral", false, "keep the data in a temporary folder that is removed at the end")
	fs.StringVar(&only, "only", "", "`servers` to run, with commas between them: "+strings.Join(serverNames, ", ")+" (default all)")
	fs.IntVar(&o.temporalPort, "temporal-port", 7233, "`port` of Temporal; 0 picks a free one")
	fs.IntVar(&o.uiPort, "ui-port", 8233, "`port` of Temporal's Web UI; 0 picks a free one")
	fs.IntVar(&o.natsPort, "nats-port", 4222, "`port` of NATS; 0 picks a free one")
	fs.IntVar(&o.influxPort, "influx-port", 8086, "`port` of InfluxDB; 0 picks a free one")
	fs.IntVar(&o.s3Port, "s3-port", 9000, "`port` of the S3 gateway; 0 picks a free one")
	fs.IntVar(&o.hobolinkPort, "hobolink-port", 8090, "`port` of the HOBOlink development server; 0 picks a free one")
	fs.IntVar(&o.ldmpPort, "ldmp-port", 1024, "`port` of the LoggerNet development server; 0 picks a free one")
	fs.IntVar(&o.platformPort, "platform-port", 8091, "`port` of the reference Platform API; 0 picks a free one")
	fs.BoolVar(&freePorts, "free-ports", false, "pick a free port wherever none is given")
	fs.StringVar(&o.namespace, "namespace", "default", "Temporal `namespace`")
	fs.StringVar(&tuning, "temporal-tuning", string(temporal.TuningLatency), "`settings` of Temporal: latency, or stock as its own development server has them")
	fs.BoolVar(&o.temporalNoSync, "temporal-no-sync", false, "Temporal does not wait for the disk: a power cut may damage its files")
	fs.IntVar(&o.history, "history-events", 0, "history `events` after which Temporal suggests that a workflow continues as new; 0 is the server's own 4096")
	fs.StringVar(&natsSync, "nats-sync-interval", "2m", "how often JetStream syncs its files to disk: a `duration`, or always to sync before each acknowledgement")
	fs.StringVar(&routes, "nats-routes", "", "make NATS a node of a cluster whose nodes find each other at these `ports`, with commas between them, its own first; makes no streams")
	fs.StringVar(&natsLogin, "nats-login", "", "`user:password` that NATS asks its clients for")
	fs.StringVar(&o.natsConfig, "nats-config", "", "`file` of settings for NATS, in its own form, such as log-ins and TLS; makes no streams")
	fs.StringVar(&o.token, "platform-token", "", "bearer `token` that the reference Platform API and its Release 2 metadata API ask for (default "+platform.Token+")")
	fs.StringVar(&level, "log-level", "warn", "`level` of the log on standard error: debug, info, warn or error")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("argument %q is not known: devstack takes flags only", fs.Arg(0))
	}
	if o.ephemeral == (o.data != "") {
		return o, errors.New("give --data DIR to keep the data or --ephemeral to drop it, one of the two")
	}
	if o.namespace == "" {
		return o, errors.New("--namespace is empty")
	}
	if o.history < 0 {
		return o, fmt.Errorf("--history-events %d is negative", o.history)
	}
	const highestPort = 65535
	for name, port := range o.ports() {
		if *port < 0 || *port > highestPort {
			return o, fmt.Errorf("--%s-port %d is not a port: it is from 0, for a free one, to %d", name, *port, highestPort)
		}
	}
	if freePorts {
		o.freePorts(fs)
	}
	if err := o.choose(only); err != nil {
		return o, err
	}
	var err error
	if o.token == "" {
		o.token = platform.Token
	}
	if o.natsSync, err = nats.ParseSync(natsSync); err != nil {
		return o, fmt.Errorf("--nats-sync-interval: %w", err)
	}
	if o.routes, err = nats.ParseRoutes(routes); err != nil {
		return o, fmt.Errorf("--nats-routes: %w", err)
	}
	if user, password, found := strings.Cut(natsLogin, ":"); found {
		o.natsLogin = url.UserPassword(user, password)
	} else if natsLogin != "" {
		return o, errors.New("--nats-login is not of the form user:password")
	}
	return o, o.parseNames(tuning, level)
}

// freePorts sets every port to 0 that the command line does not give.
func (o *options) freePorts(fs *flag.FlagSet) {
	given := make(map[string]bool)
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, port := range o.ports() {
		if !given[name+"-port"] {
			*port = 0
		}
	}
}

func (o *options) ports() map[string]*int {
	return map[string]*int{
		serverTemporal: &o.temporalPort, serverWebUI: &o.uiPort, serverNATS: &o.natsPort, serverInflux: &o.influxPort,
		serverS3: &o.s3Port, serverHOBOlink: &o.hobolinkPort, serverLDMP: &o.ldmpPort, serverPlatform: &o.platformPort,
	}
}

// choose takes the servers that are named, or all. The ports of the others are
// not asked for: who runs those may have them.
func (o *options) choose(only string) error {
	names := serverNames
	if only != "" {
		names = strings.Split(only, ",")
	}
	o.only = make(map[string]bool, len(names))
	for _, name := range names {
		if !slices.Contains(serverNames, name) {
			return fmt.Errorf("--only: server %q is not known: they are %s", name, strings.Join(serverNames, ", "))
		}
		o.only[name] = true
	}
	if o.only[serverWebUI] && !o.only[serverTemporal] {
		return fmt.Errorf("--only: %s needs %s", serverWebUI, serverTemporal)
	}
	for name, port := range o.ports() {
		if !o.only[name] {
			*port = 0
		}
	}
	return nil
}

func (o *options) parseNames(tuning, level string) (err error) {
	if o.tuning, err = temporal.ParseTuning(tuning); err != nil {
		return fmt.Errorf("--temporal-tuning: %w", err)
	}
	if err = o.logLevel.UnmarshalText([]byte(level)); err != nil {
		return fmt.Errorf("--log-level %q is not known: it is debug, info, warn or error", level)
	}
	return nil
}
