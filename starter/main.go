// Command starter declares, runs and manages the jobs of a Temporal namespace; see
// docs/operating.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second Ctrl-C ends the process at once.
	os.Exit(cli.Program{Types: activities.Types()}.Execute(ctx, os.Args[1:]))
}
