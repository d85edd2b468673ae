// Package platform connects to the Platform API.
package platform

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1/platformv1connect"
)

// Classes of errors.
const (
	ClassUnreachable = "PlatformUnreachable" // no answer, or one of a server that is too busy
	ClassRefused     = "PlatformRefused"     // it refuses the token
	ClassAnswer      = "PlatformAnswer"      // any other error of the API
)

// Timeout is how long a call that is no stream may take.
const Timeout = 30 * time.Second

// Config sets up a [Client].
type Config struct {
	// HTTPClient makes the requests. Defaults to one that follows no redirects, and
	// that all clients share.
	HTTPClient *http.Client
	// Token is sent as a bearer token. Defaults to none.
	Token string
	// URL is that of the server: http://HOST:PORT. Required.
	URL string
}

var sharedHTTPClient = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 16,
	},
}

// Client is the Platform API. Its calls give errors as [Client.Explain] takes them.
type Client struct {
	Integrations platformv1connect.IntegrationServiceClient

	address string // scheme and host
}

// New makes a client. It does not connect yet.
func New(config Config) (*Client, error) {
	if err := checkURL(config.URL); err != nil {
		return nil, job.Final(job.ClassInvalidSpec, "%w", err)
	}
	if config.HTTPClient == nil {
		config.HTTPClient = sharedHTTPClient
	}
	base, err := url.Parse(config.URL)
	if err != nil {
		return nil, err
	}
	var interceptors []connect.ClientInterceptor
	if config.Token != "" {
		interceptors = append(interceptors, bearer(config.Token))
	}
	client := connect.NewClient(connecthttp.NewTransport(config.HTTPClient, config.URL), interceptors...)
	return &Client{
		Integrations: platformv1connect.NewIntegrationServiceClient(client),
		address:      base.Scheme + "://" + base.Host,
	}, nil
}

// bearer sends the token with each call.
func bearer(token string) connect.ClientInterceptor {
	return func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			if info, ok := connect.CallInfoForClientContext(ctx); ok {
				info.RequestHeader().Set("Authorization", "Bearer "+token)
			}
			return next(ctx, spec)
		}
	}
}

// Explain makes one sentence of the error of a call, with a class.
func (c *Client) Explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	code := connect.CodeOf(err)
	if errors.Is(err, context.DeadlineExceeded) {
		code = connect.CodeDeadlineExceeded
	}
	switch code {
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeResourceExhausted:
		return job.Retryable(ClassUnreachable, 0, "the Platform API at %s does not answer: %w", c.address, err)
	case connect.CodeUnauthenticated, connect.CodePermissionDenied:
		return job.Retryable(ClassRefused, 0, "the Platform API at %s refuses the token: %w", c.address, err)
	}
	return job.Retryable(ClassAnswer, 0, "the Platform API at %s: %w", c.address, err)
}
