package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/user"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// connect makes a client that is closed when the command ends.
func (i *invocation) connect(ctx context.Context) (*client.Client, error) {
	i.quiet()
	options, err := temporalclient.Options(i.settings)
	if err != nil {
		return nil, err
	}
	done := i.waiting("Temporal at " + options.HostPort)
	temporal, err := temporalclient.Dial(ctx, i.settings)
	done()
	if err != nil {
		return nil, err
	}
	i.closers = append(i.closers, temporal.Close)
	return client.New(temporal, options.Namespace), nil
}

// quiet sets what all clients have: the SDK's own log would mix with the progress that
// people read.
func (i *invocation) quiet() {
	i.settings.Logger = slog.New(slog.DiscardHandler)
	i.settings.Identity = identity()
}

// identity names this process in histories and the Web UI.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("starter@%s/%d", host, os.Getpid())
}

// defaultReason is the reason of a command without --reason.
func defaultReason() string {
	if name := userName(); name != "" {
		return "requested by " + name
	}
	return "requested on the command line"
}

// userName is who calls the command, "" if that is not known.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}
