package cli

import (
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/starter/servers"
)

// Environment variables of a remote server.
const (
	// EnvServer is the URL of a server of the Job API.
	EnvServer = "DENDRA_SERVER"
	// EnvToken is the bearer token for it.
	EnvToken = "DENDRA_TOKEN" //nolint:gosec // The name of a variable, not a token.
)

// registerServer makes the flags of a remote server.
func registerServer(s *servers.Remote, flags *pflag.FlagSet) {
	flags.Var(textValue{&s.URL, "URL"}, "server", fmt.Sprintf("URL of \"starter serve\": commands call it, and not Temporal (default: $%s)", EnvServer))
	flags.Var(textValue{&s.TokenFile, "FILE"}, "token-file", fmt.Sprintf("file of the bearer token for --server (default: the token in $%s)", EnvToken))
	flags.Var(textValue{&s.CA, "FILE"}, "server-ca", "certificates of the authorities that --server is checked by (default: those of the system)")
	flags.Var(textValue{&s.Cert, "FILE"}, "client-cert", "client certificate for --server")
	flags.Var(textValue{&s.Key, "FILE"}, "client-key", "key of --client-cert")
}

// connect makes the clients of the Job API: of --server, else of a server in this process,
// which connects to the servers that the flags and the environment name when a call needs them.
func (i *invocation) connect() (err error) {
	if i.serverURL() == "" {
		i.connectHere()
		return nil
	}
	i.api, err = i.remote()
	return err
}

// connectHere makes clients of a server in this process.
func (i *invocation) connectHere() { i.api = i.backend().InProcess(i.patient, asUser) }

// logger has what an internal error does not tell.
func (i *invocation) logger() *slog.Logger {
	if i.fullScreen {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(i.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// serverURL is the URL of the remote server, "" for none.
func (i *invocation) serverURL() string {
	if i.remoteServer.URL != "" {
		return i.remoteServer.URL
	}
	return i.Getenv(EnvServer)
}

// remote gives clients of the server that --server names.
func (i *invocation) remote() (*api.Clients, error) {
	server := i.remoteServer
	server.URL, server.Token = i.serverURL(), i.Getenv(EnvToken)
	dialed, err := server.Dial(i.patient)
	if err != nil {
		return nil, err
	}
	i.closers = append(i.closers, dialed.Close)
	if dialed.TokenInClear {
		i.note("starter: everybody on the way to %s can read the token: use https.", i.shownServer())
	}
	return dialed.Clients, nil
}
