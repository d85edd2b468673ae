// Command dev runs Dendra Jobs on one machine: the embedded servers, the three
// workers, and the server of the status page, which keeps Temporal in line with the
// jobs file. It is what `make dev` runs. Its other commands put
// data into that system and look at it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// After the first signal the next one ends this process at once; the
	// kernel then ends the others.
	context.AfterFunc(ctx, stop)
	err := do(ctx, os.Args[1:])
	stop()
	if err != nil {
		if !errors.Is(err, errShown) {
			fmt.Fprintf(os.Stderr, "dev: %v\n", err)
		}
		os.Exit(1)
	}
}

func do(ctx context.Context, args []string) error {
	if len(args) > 0 {
		if look, ok := lookers[args[0]]; ok {
			return look(ctx, args[1:], os.Stdout)
		}
	}
	o, err := parseFlags(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	return run(ctx, o, newTerminal(os.Stdout))
}

// options is what the command line says.
type options struct {
	dir       string // data, logs and environment file of this setup; absolute
	bin       string // folder of the binaries; absolute
	jobs      string // jobs file, as given
	freePorts bool
	devstack  []string // further flags of the devstack binary
}

// defaultDir is where the system of make dev keeps its data.
const defaultDir = ".dev"

const commands = `  dev [flags] [-- flags of devstack]   run the system until Ctrl-C
  dev board [FOLDER]                   show again where everything is; of .dev by default
  dev put FILE BUCKET/KEY              store a file in the running system
  dev ls BUCKET[/PREFIX]               list its objects
  dev influx DATABASE QUERY            ask its InfluxDB`

func unknownCommand(name string) error {
	if _, ok := lookers[name]; ok {
		return fmt.Errorf("command %q takes no flags: it comes first", name)
	}
	return fmt.Errorf("unknown command %q; the commands are:\n\n%s", name, commands)
}

// parseFlags reads the command line. It shows the help that was asked for and
// then returns flag.ErrHelp.
func parseFlags(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("dev", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // what is wrong is in the error
	fs.StringVar(&o.dir, "dir", defaultDir, "`folder` of the data, of the logs and of the environment file")
	fs.StringVar(&o.bin, "bin", "bin", "`folder` of the binaries that make build makes")
	fs.StringVar(&o.jobs, "jobs", "jobs.toml", "jobs `file` to apply and to watch")
	fs.BoolVar(&o.freePorts, "free-ports", false, "listen on free ports, not on the usual ones")
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fs.SetOutput(os.Stdout)
		_, _ = fmt.Fprintln(fs.Output(), commands)
		fs.PrintDefaults()
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w; dev --help lists the flags", err)
	}
	o.devstack = fs.Args()
	if len(o.devstack) > 0 && !strings.HasPrefix(o.devstack[0], "-") {
		return o, unknownCommand(o.devstack[0])
	}
	for _, path := range []*string{&o.dir, &o.bin} {
		abs, err := filepath.Abs(*path)
		if err != nil {
			return o, err
		}
		*path = abs
	}
	return o, o.check()
}

// check finds what is missing before anything starts.
func (o options) check() error {
	for _, name := range []string{"devstack", "backend", "extract", "load", "starter"} {
		if _, err := os.Stat(filepath.Join(o.bin, name)); err != nil {
			return fmt.Errorf("%s is missing: run make build", filepath.Join(o.bin, name))
		}
	}
	if _, err := os.Stat(o.jobs); err != nil {
		return fmt.Errorf("jobs file %s is missing: give another with --jobs", o.jobs)
	}
	return nil
}
