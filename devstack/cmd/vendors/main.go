// Command vendors runs what makes up data for development: a reference Platform API with an
// organization, HOBOlink, and LoggerNet. Others reach them by the name that is given.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/dendrascience/dendra-jobs/devstack/internal/hobolink"
	"github.com/dendrascience/dendra-jobs/devstack/internal/loggernet"
	reference "github.com/dendrascience/dendra-jobs/devstack/internal/platform"
	"github.com/dendrascience/dendra-jobs/devstack/internal/seed"
	"github.com/dendrascience/dendra-jobs/internal/platform"
)

// The usual ports, as the seed has them.
const (
	portHOBOlink = 8090
	portLDMP     = 1024
	portPlatform = 8091
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintf(os.Stderr, "vendors: %v\n", err)
		os.Exit(1)
	}
}

// options is what the command line says.
type options struct{ listen, as, data, health string }

func parseFlags(args []string, help io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("vendors", flag.ContinueOnError)
	fs.SetOutput(help)
	fs.StringVar(&o.listen, "listen", "127.0.0.1", "`address` to listen on")
	fs.StringVar(&o.as, "as", "127.0.0.1", "`host` that others reach it by")
	fs.StringVar(&o.data, "data", "", "absolute `folder` of the Platform API's data; required")
	fs.StringVar(&o.health, "health-address", "127.0.0.1:8092", "serve /readyz on this `host:port`")
	err := fs.Parse(args)
	switch {
	case err != nil:
		return o, err
	case fs.NArg() > 0:
		return o, fmt.Errorf("argument %q is not known: vendors takes flags only", fs.Arg(0))
	case o.data == "":
		return o, errors.New("give --data FOLDER")
	}
	return o, nil
}

// run runs the servers until ctx ends, or one of them does.
func run(ctx context.Context, args []string, help io.Writer) (err error) {
	o, err := parseFlags(args, help)
	if err != nil {
		return err
	}
	token := os.Getenv(platform.EnvToken)
	if token == "" {
		token = reference.Token
	}
	failed := make(chan error, 1)
	dies := func(err error) {
		select {
		case failed <- err:
		default: // another one died first
		}
	}
	api, err := reference.Start(ctx, reference.Options{Folder: o.data, Host: o.listen, Port: portPlatform, Token: token, Failed: dies})
	if err != nil {
		return fmt.Errorf("Platform API: %w", err) //nolint:staticcheck // A name.
	}
	defer func() { err = errors.Join(err, api.Stop()) }()
	hobo, err := hobolink.Start(ctx, hobolink.Options{Host: o.listen, Port: portHOBOlink, Failed: dies})
	if err != nil {
		return fmt.Errorf("HOBOlink: %w", err)
	}
	defer func() { err = errors.Join(err, hobo.Stop()) }()
	ldmp, err := loggernet.Start(ctx, loggernet.Options{Host: o.listen, Port: portLDMP, Failed: dies})
	if err != nil {
		return fmt.Errorf("LoggerNet: %w", err) //nolint:staticcheck // A name.
	}
	defer func() { err = errors.Join(err, ldmp.Stop()) }()

	located := func(text string) string { return strings.ReplaceAll(text, "127.0.0.1:", o.as+":") }
	if err := seed.Fill(ctx, platform.Config{URL: fmt.Sprintf("http://127.0.0.1:%d", portPlatform), Token: token}, located); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.health)
	if err != nil {
		return err
	}
	ready := http.NewServeMux()
	ready.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	health := &http.Server{Handler: ready, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := health.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			dies(err)
		}
	}()
	defer func() { err = errors.Join(err, health.Close()) }()
	_, _ = fmt.Fprintf(help, "vendors: Platform API, HOBOlink and LoggerNet on ports %d, %d and %d of %s\n", portPlatform, portHOBOlink, portLDMP, o.listen)
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}
