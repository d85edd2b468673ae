// Command starter declares, runs and manages the jobs of a Temporal namespace; see
// docs/operating.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/internal/tracing"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

func main() { os.Exit(run()) }

// run runs one command line, and gives its exit code.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second Ctrl-C ends the process at once.
	stopTraces, err := tracing.Start(ctx, "starter")
	if err != nil {
		fmt.Fprintf(os.Stderr, "starter: %v\n", err)
		return 1
	}
	defer stopTraces()
	span := func(ctx context.Context, command string) (context.Context, func(error)) {
		return tracing.Span(ctx, command)
	}
	return cli.Program{Trace: span, Types: activities.Types()}.Execute(ctx, os.Args[1:])
}
