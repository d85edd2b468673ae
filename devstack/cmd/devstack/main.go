// Command devstack runs the servers that Dendra Jobs works with in one
// process: Temporal and its Web UI, NATS JetStream, InfluxDB 1.8, an S3 gateway,
// development servers of HOBOlink and LoggerNet, and a reference Platform API, all of
// them on 127.0.0.1.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/dendrascience/dendra-jobs/devstack/internal/datafolder"
	"github.com/dendrascience/dendra-jobs/devstack/internal/stops"
)

// memoryLimit is the memory, in bytes, above which the garbage collector works
// harder, unless GOMEMLIMIT is set. SQLite's caches are beside it.
const memoryLimit = 384 << 20

func main() {
	began := time.Now()
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	// Standard output carries the ready line and nothing else; some of the
	// servers print there.
	ready := os.Stdout
	os.Stdout = os.Stderr

	o, err := parseFlags(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fail(err)
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: o.logLevel})))
	if !run(o, ready, began) {
		os.Exit(1)
	}
}

func fail(err error) {
	say(err)
	os.Exit(1)
}

func say(err error) { fmt.Fprintf(os.Stderr, "devstack: %v\n", err) }

// run runs the servers until they are told to stop, and reports whether all went
// well. What went wrong is on standard error at once: the stops that follow take
// a while when the servers hang.
func run(o options, ready *os.File, began time.Time) (well bool) {
	// Who reads the log may die first: that must not keep an ephemeral folder from
	// being removed.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stopSignals := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stopSignals()

	open := func() (*datafolder.Folder, error) { return datafolder.Open(o.data) }
	if o.ephemeral {
		open = datafolder.OpenEphemeral
	}
	folder, err := open()
	if err != nil {
		say(err)
		return false
	}
	s := newServers(o, folder)
	return stops.InTurn(say, func() error { return serve(ctx, s, ready, began) }, s.running.Stop, folder.Close)
}

// serve starts the servers, says where they are, and waits for the end of ctx or
// of one of them.
func serve(ctx context.Context, s *servers, ready *os.File, began time.Time) error {
	info, err := s.start(ctx)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // told to stop while starting
	}
	if err != nil {
		return err
	}
	info.ReadyMS = time.Since(began).Milliseconds()
	if err := json.NewEncoder(ready).Encode(info); err != nil {
		return fmt.Errorf("ready line: %w", err)
	}
	select {
	case <-ctx.Done():
		// From here on a second Ctrl-C ends the process at once. A second SIGTERM does
		// not: the kernel may send one for each thread of a parent that ends.
		signal.Reset(syscall.SIGINT)
		return nil
	case err := <-s.failed:
		return err
	}
}
