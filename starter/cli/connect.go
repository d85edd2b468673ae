package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/user"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/server"
)

// backend connects to the servers that the flags and the environment name. What it opens is
// closed when the command ends.
func (i *invocation) backend() *server.Backend {
	i.quiet()
	b := &server.Backend{
		Dialing: func(address string) func() { return i.waiting("Temporal at " + address) },
		Getenv:  i.Getenv, Logger: i.logger(), NATS: i.site.NATS, Temporal: i.site.Temporal, Types: i.Types,
	}
	i.closers = append(i.closers, b.Close)
	return b
}

// quiet sets what all clients have: the SDK's own log would mix with the progress that
// people read.
func (i *invocation) quiet() {
	i.site.Temporal.Logger = slog.New(slog.DiscardHandler)
	i.site.Temporal.Identity = identity()
}

// identity names this process in histories and the Web UI.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("starter@%s/%d", host, os.Getpid())
}

// asUser is an interceptor that says who makes the calls of this process.
func asUser(next connect.ClientFunc) connect.ClientFunc {
	return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
		return next(api.WithCaller(ctx, userName()), spec)
	}
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
