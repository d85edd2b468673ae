package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"

	"connectrpc.com/connect/v2/connecthttp"
	"github.com/spf13/pflag"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/localnet"
)

// Environment variables of a remote server.
const (
	// EnvServer is the URL of a server of the Job API.
	EnvServer = "DENDRA_SERVER"
	// EnvToken is the bearer token for it.
	EnvToken = "DENDRA_TOKEN" //nolint:gosec // The name of a variable, not a token.
)

// remoteServer is what the flags of a remote server set.
type remoteServer struct {
	url, tokenFile, ca, cert, key string
}

func (s *remoteServer) register(flags *pflag.FlagSet) {
	flags.Var(textValue{&s.url, "URL"}, "server", fmt.Sprintf("URL of \"starter serve\": commands call it, and not Temporal (default: $%s)", EnvServer))
	flags.Var(textValue{&s.tokenFile, "FILE"}, "token-file", fmt.Sprintf("file of the bearer token for --server (default: the token in $%s)", EnvToken))
	flags.Var(textValue{&s.ca, "FILE"}, "server-ca", "certificates of the authorities that --server is checked by (default: those of the system)")
	flags.Var(textValue{&s.cert, "FILE"}, "client-cert", "client certificate for --server")
	flags.Var(textValue{&s.key, "FILE"}, "client-key", "key of --client-cert")
}

// api gives clients of the Job API: of --server, else of a server in this process, which
// connects to the servers that the flags and the environment name when a call needs them. A
// command has one set of clients.
func (i *invocation) api(context.Context) (*api.Clients, error) {
	if i.clients != nil {
		return i.clients, nil
	}
	if i.serverURL() == "" {
		i.clients = i.backend().InProcess(i.patient, asUser)
		return i.clients, nil
	}
	clients, err := i.remote()
	i.clients = clients
	return clients, err
}

// logger has what an internal error does not tell.
func (i *invocation) logger() *slog.Logger {
	if i.fullScreen {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(i.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// serverURL is the URL of the remote server, "" for none.
func (i *invocation) serverURL() string {
	if i.remoteServer.url != "" {
		return i.remoteServer.url
	}
	return i.Getenv(EnvServer)
}

// remote gives clients of the server that --server names.
func (i *invocation) remote() (*api.Clients, error) {
	base, err := url.Parse(i.serverURL())
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("server %q is not a URL such as https://jobs.example.org", i.serverURL())
	}
	token, err := i.token()
	if err != nil {
		return nil, err
	}
	transport, err := i.remoteServer.transport()
	if err != nil {
		return nil, err
	}
	i.closers = append(i.closers, transport.CloseIdleConnections)
	if token != "" && base.Scheme == "http" && !localnet.Loopback(base.Hostname()) {
		i.note("starter: everybody on the way to %s can read the token: use https.", i.shownServer())
	}
	doer := &http.Client{Transport: authorized{transport, token}, CheckRedirect: refuseRedirect}
	return api.NewClients(connecthttp.NewTransport(doer, strings.TrimSuffix(base.String(), "/")), i.patient), nil
}

// token is the bearer token for --server, "" for none.
func (i *invocation) token() (string, error) {
	if i.remoteServer.tokenFile == "" {
		return i.Getenv(EnvToken), nil
	}
	text, err := os.ReadFile(i.remoteServer.tokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func (s *remoteServer) transport() (*http.Transport, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if s.ca != "" {
		pem, err := os.ReadFile(s.ca)
		if err != nil {
			return nil, fmt.Errorf("--server-ca: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--server-ca: %s has no certificate in PEM", s.ca)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	if s.cert != "" || s.key != "" {
		pair, err := tls.LoadX509KeyPair(s.cert, s.key)
		if err != nil {
			return nil, fmt.Errorf("--client-cert and --client-key: %w", err)
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return transport, nil
}

// redirectError says that a server sends its callers elsewhere.
type redirectError struct{ to *url.URL }

// Error implements error.
func (e *redirectError) Error() string {
	return fmt.Sprintf("it redirects to %s://%s: give that to --server if it may have your token", e.to.Scheme, e.to.Host)
}

// refuseRedirect keeps the token from whatever host a server names.
func refuseRedirect(r *http.Request, _ []*http.Request) error { return &redirectError{r.URL} }

// authorized adds the bearer token to requests.
type authorized struct {
	next  http.RoundTripper
	token string
}

// RoundTrip implements http.RoundTripper.
func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	return a.next.RoundTrip(r)
}
