// Command bench measures the embedded Temporal server, how long a small job takes
// and how many of them it does, how late recurring jobs start, how soon runs go on
// when a worker dies, what plan and apply cost, and how fast data loggers are read,
// messages are stored and archived, and points loaded. Run it with `make bench` on
// a machine that does nothing else.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `bench measures the embedded servers.

  bench latency [flags]   workflows and serial queues on Temporal, with the stock
                          settings and with ours, in turns; bench latency --help
  bench queue [flags]     a job queue 100,000 items deep, and its throughput against
                          bare loops; bench queue --help
  bench servers [flags]   one-shots, a queue and recurring jobs on any Temporal, and what a
                          run costs its servers; bench servers --help
  bench storm [flags]     two thousand recurring jobs every minute: how late they start;
                          bench storm --help
  bench failover [flags]  how long runs take to go on when a worker dies or shuts down;
                          bench failover --help
  bench plan [flags]      plan and apply of a thousand jobs: time, memory and calls to
                          Temporal, and how they grow; bench plan --help
  bench ldmp [flags]      records of data loggers from a LoggerNet server into the
                          raw stream; bench ldmp --help
  bench load [flags]      points from the stream into InfluxDB, against the same
                          posted from memory, and the memory that a stalled mirror
                          costs; bench load --help
  bench overview [flags]  the overview of a thousand jobs and the page's grid: size, calls of
                          Temporal, how soon changes show, first paint; bench overview --help
  bench images [flags]    variants of photos: processor time of image processes with each
                          engine, and of libvips; bench images --help
  bench archive [flags]   raw messages from the stream into the archive; bench archive --help
  bench publish [flags]   messages into the raw stream, with JetStream syncing its
                          files now and then or always; bench publish --help
`

func main() {
	if os.Getenv(workerVariable) != "" {
		benchWorker()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 || args[0] == "-h" || args[0] == "--help" || args[0] == "help" {
		_, err := io.WriteString(out, usage)
		return err
	}
	switch args[0] {
	case "latency":
		return latency(ctx, args[1:], out)
	case "queue":
		return queues(ctx, args[1:], out)
	case "servers":
		return servers(ctx, args[1:], out)
	case "storm":
		return storm(ctx, args[1:], out)
	case "failover":
		return failover(ctx, args[1:], out)
	case "plan":
		return plan(ctx, args[1:], out)
	case "ldmp":
		return ldmpBench(ctx, args[1:], out)
	case "load":
		return loadBench(ctx, args[1:], out)
	case "archive":
		return archiveBench(ctx, args[1:], out)
	case "images":
		return imagesBench(ctx, args[1:], out)
	case "overview":
		return overviewBench(ctx, args[1:], out)
	case "publish":
		return publishBench(ctx, args[1:], out)
	default:
		return fmt.Errorf("subcommand %q is not known; bench help lists them", args[0])
	}
}
