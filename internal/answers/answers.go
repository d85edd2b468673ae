// Package answers bounds what HTTP clients take from a server that is broken or hostile: how many
// bytes an answer has, and how long it says nothing. No client follows a redirect, which would take
// credentials elsewhere.
package answers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Limits are those of an answer.
type Limits struct {
	// Bytes is the most that the body of an answer may have, unpacked. Defaults to no limit.
	Bytes int64
	// Silence is the longest time between two reads of a body that bring something. Defaults to
	// no limit.
	Silence time.Duration
}

// ErrTooLarge says that a body has more bytes than its limit.
var ErrTooLarge = errors.New("the answer is too large")

// ErrSilent says that a server has stopped in the middle of an answer.
var ErrSilent = errors.New("the server has stopped in the middle of its answer")

type limitKey struct{}

// Allow gives the requests of a context another limit of bytes.
func Allow(ctx context.Context, bytes int64) context.Context {
	return context.WithValue(ctx, limitKey{}, bytes)
}

// Client is like base, with limits and without redirects. Without a base it has a pool of its own,
// with up to 16 idle connections to a server.
func Client(base *http.Client, limits Limits) *http.Client {
	bounded := &http.Client{}
	if base != nil {
		*bounded = *base
	}
	bounded.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if base == nil {
		bounded.Transport = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			ForceAttemptHTTP2:   true,
			TLSHandshakeTimeout: 10 * time.Second,
			IdleConnTimeout:     90 * time.Second,
			MaxIdleConnsPerHost: 16,
		}
	}
	bounded.Transport = Transport(bounded.Transport, limits)
	return bounded
}

// Transport is base with limits. A base of nil is that of package http.
func Transport(base http.RoundTripper, limits Limits) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return transport{base, limits}
}

type transport struct {
	base   http.RoundTripper
	limits Limits
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	limits := t.limits
	if bytes, ok := request.Context().Value(limitKey{}).(int64); ok {
		limits.Bytes = bytes
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	response, err := t.base.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	b := &body{ReadCloser: response.Body, ctx: ctx, cancel: cancel, limits: limits, left: limits.Bytes}
	if limits.Silence > 0 {
		b.silence = time.AfterFunc(limits.Silence, func() { cancel(ErrSilent) })
	}
	response.Body = b
	return response, nil
}

// body is the body of an answer.
type body struct {
	io.ReadCloser
	ctx     context.Context //nolint:containedctx // That of the request, which ends with the body.
	cancel  context.CancelCauseFunc
	limits  Limits
	left    int64
	silence *time.Timer // nil without a limit
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.limits.Bytes > 0 && int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one more, to see that there is more
	}
	if b.silence != nil {
		b.silence.Reset(b.limits.Silence)
		defer b.silence.Stop() // What the caller does between two reads is not the server's time.
	}
	n, err := b.ReadCloser.Read(p)
	if b.limits.Bytes > 0 {
		if b.left -= int64(n); b.left < 0 {
			b.left = 0
			return n - 1, fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, b.limits.Bytes)
		}
	}
	if err != nil && errors.Is(context.Cause(b.ctx), ErrSilent) {
		err = fmt.Errorf("%w: it has sent nothing for %s", ErrSilent, b.limits.Silence)
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	if b.silence != nil {
		b.silence.Stop()
	}
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

// WithoutURL is an error of an HTTP client without its URL, which may have a secret in it.
func WithoutURL(err error) error {
	if inner, ok := errors.AsType[*url.Error](err); ok {
		return inner.Err
	}
	return err
}
