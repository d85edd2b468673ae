package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/payloadcodec"
	"github.com/dendrascience/dendra-jobs/server/audit"
	"github.com/dendrascience/dendra-jobs/server/auth"
)

// Config says what a server serves, to whom, and within which limits.
type Config struct {
	// API is what the Job API works with. Required. Its interceptors come after those of
	// this package.
	API api.Config
	// AllowOrigins are the origins of other web pages that may call the API from a browser,
	// such as https://dashboard.example.org.
	AllowOrigins []string
	// Audit takes a line for each call that changes something. Required.
	Audit *audit.Log
	// Auth says how callers are known. Without any way everybody is an admin, and Listen
	// has to be a loopback address.
	Auth auth.Config
	// Background is work that goes on while the server does, by clients that call it as
	// an admin. Its context ends when the server stops. An error ends the server.
	Background []func(ctx context.Context, clients *api.Clients) error
	// Listen is the address to serve on. Defaults to 127.0.0.1:8080.
	Listen string
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// MaxCalls bounds the calls, streams included, that one caller has under way. Defaults
	// to 2,000.
	MaxCalls int
	// MaxConnections bounds the connections of all callers. An address may have a quarter of
	// them. Defaults to 4,096.
	MaxConnections int
	// Page makes what is served at / from clients that call the server in this process.
	// Calls are those of the caller in their context: that of the request. Defaults to a
	// line of text.
	Page func(clients *api.Clients) http.Handler
	// PayloadKeys serve /encode and /decode, the remote codec of Temporal's Web UI. Without keys
	// neither is served.
	PayloadKeys payloadcodec.Keys
	// StopTimeout is how long calls may take to end after the server was told to stop.
	// Streams end at once. Defaults to ten seconds.
	StopTimeout time.Duration
	// TLS are files of certificates. Nil means plain HTTP.
	TLS *TLS
	// UnknownTimeout is how long a connection may go on without an authenticated call. Defaults
	// to ten seconds.
	UnknownTimeout time.Duration
}

// Limits of requests.
const (
	MaxHeader     = 64 << 10
	maxBody       = 64 << 20 // The API has narrower ones for its messages.
	maxCodecBody  = 8 << 20  // Temporal's payloads have up to 2 MiB, base64 a third more.
	HeaderTimeout = 10 * time.Second
	BodyTimeout   = time.Minute
	IdleTimeout   = 2 * time.Minute
	// UnknownTimeout is the default of Config.UnknownTimeout.
	UnknownTimeout = 10 * time.Second
	// MaxLargeCalls bounds the calls with many jobs that a caller has under way, and
	// TurnTimeout how long another one waits.
	MaxLargeCalls = 2
	TurnTimeout   = 20 * time.Second
)

func (c Config) withDefaults() Config {
	if c.Listen == "" {
		c.Listen = "127.0.0.1:8080"
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.API.Logger == nil {
		c.API.Logger = c.Logger
	}
	if c.Auth.Logger == nil {
		c.Auth.Logger = c.Logger
	}
	if c.MaxCalls == 0 {
		c.MaxCalls = 2000
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = 4096
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = 10 * time.Second
	}
	if c.UnknownTimeout == 0 {
		c.UnknownTimeout = UnknownTimeout
	}
	if c.Page == nil {
		c.Page = func(*api.Clients) http.Handler { return http.HandlerFunc(plainPage) }
	}
	return c
}

// validate lists all problems.
func (c *Config) validate() error {
	var problems []error
	for _, origin := range c.AllowOrigins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Scheme+"://"+u.Host != origin || strings.Contains(origin, "*") {
			problems = append(problems, fmt.Errorf("origin %q is not of the form https://HOST", origin))
		}
	}
	if c.Auth.OIDC != nil {
		problems = append(problems, c.Auth.OIDC.Validate())
	}
	if c.TLS != nil && c.TLS.ClientCA != "" && c.Auth.File == nil {
		problems = append(problems, errors.New("client certificates need a file of credentials that gives them roles"))
	}
	if c.MaxCalls < 0 || c.MaxConnections < 0 || c.StopTimeout < 0 || c.UnknownTimeout < 0 {
		problems = append(problems, errors.New("a limit is negative"))
	}
	return errors.Join(problems...)
}

// checkOpen refuses to let everybody in from another host.
func checkOpen(authenticator *auth.Authenticator, address net.Addr) error {
	tcp, ok := address.(*net.TCPAddr)
	if !authenticator.Open() || ok && tcp.IP.IsLoopback() {
		return nil
	}
	return fmt.Errorf("without authentication the server listens on loopback addresses only, and %s is none: "+
		"add a file of credentials or an OIDC issuer", address)
}

// plainPage is what there is without a page.
func plainPage(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("This is the Job API of Dendra Jobs.\n")) // Whoever has left needs no answer.
}
