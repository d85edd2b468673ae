package servers

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/localnet"
)

// Remote is a server of the Job API, and what its callers show it.
type Remote struct {
	URL string // required
	// TokenFile has the bearer token. Without it that is Token; none if both are empty.
	TokenFile, Token string
	// CA has certificates of the authorities that the server is checked by. Default: those
	// of the system.
	CA string
	// Cert and Key are the files of a client certificate.
	Cert, Key string
}

// Dialed is a server that was dialed.
type Dialed struct {
	*api.Clients
	// TokenInClear says that everybody on the way can read the token.
	TokenInClear bool
	// Close closes connections that are not in use.
	Close func()
}

// Dial gives clients of the server. Nothing is sent before the first call.
func (r Remote) Dial(interceptors ...connect.ClientInterceptor) (*Dialed, error) {
	base, err := url.Parse(r.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("server %q is not a URL such as https://jobs.example.org", r.URL)
	}
	token, err := r.token()
	if err != nil {
		return nil, err
	}
	transport, err := r.transport()
	if err != nil {
		return nil, err
	}
	doer := &http.Client{Transport: authorized{transport, token}, CheckRedirect: refuseRedirect}
	return &Dialed{
		Clients:      api.NewClients(connecthttp.NewTransport(doer, strings.TrimSuffix(base.String(), "/")), interceptors...),
		TokenInClear: token != "" && base.Scheme == "http" && !localnet.Loopback(base.Hostname()),
		Close:        transport.CloseIdleConnections,
	}, nil
}

func (r Remote) token() (string, error) {
	if r.TokenFile == "" {
		return r.Token, nil
	}
	text, err := os.ReadFile(r.TokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func (r Remote) transport() (*http.Transport, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if r.CA != "" {
		pem, err := os.ReadFile(r.CA)
		if err != nil {
			return nil, fmt.Errorf("--server-ca: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--server-ca: %s has no certificate in PEM", r.CA)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	if r.Cert != "" || r.Key != "" {
		pair, err := tls.LoadX509KeyPair(r.Cert, r.Key)
		if err != nil {
			return nil, fmt.Errorf("--client-cert and --client-key: %w", err)
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return transport, nil
}

// RedirectError says that a server sends its callers elsewhere, where they do not go: that
// host would have the token.
type RedirectError struct{ to *url.URL }

// Error implements error.
func (e *RedirectError) Error() string {
	return fmt.Sprintf("it redirects to %s://%s: give that to --server if it may have your token", e.to.Scheme, e.to.Host)
}

// refuseRedirect keeps the token from whatever host a server names.
func refuseRedirect(r *http.Request, _ []*http.Request) error { return &RedirectError{r.URL} }

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
