package watchdog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/answers"
)

// Retry says how often and when something is tried again.
type Retry struct {
	// Tries bounds the tries. Defaults to 6.
	Tries int
	// Wait is the one before the second try. It doubles, up to 30 seconds. Defaults to a second.
	Wait time.Duration
	// Timeout bounds a try. Defaults to ten seconds.
	Timeout time.Duration
}

// maxRetryWait bounds the wait before a try.
const maxRetryWait = 30 * time.Second

func (r Retry) withDefaults() Retry {
	if r.Tries == 0 {
		r.Tries = 6
	}
	if r.Wait == 0 {
		r.Wait = time.Second
	}
	if r.Timeout == 0 {
		r.Timeout = 10 * time.Second
	}
	return r
}

// finalError is an error after which nothing is tried again.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// do tries until try succeeds, or fails for good.
func (r Retry) do(ctx context.Context, try func(context.Context) error) error {
	wait := r.Wait
	for n := 1; ; n++ {
		once, cancel := context.WithTimeout(ctx, r.Timeout)
		err := try(once)
		cancel()
		var final finalError
		switch {
		case err == nil || errors.As(err, &final):
			return err
		case n >= r.Tries:
			return fmt.Errorf("given up after %d tries: %w", n, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = min(2*wait, maxRetryWait)
	}
}

var errNoURL = errors.New("the address is not a URL that begins with http:// or https://")

// parseAddress reads the URL of a server that is to be called. The error does not have it.
func parseAddress(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errNoURL
	}
	return u, nil
}

// newClient makes a client for which a redirection is no success.
func newClient() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// call calls a server. Statuses of 4xx are final, but for 408 and 429. The error has the host
// of the URL alone: the rest may be a secret.
func call(client *http.Client, request *http.Request) error {
	where := request.Method + " to " + request.URL.Host
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", where, answers.WithoutURL(err))
	}
	defer func() { _ = response.Body.Close() }()                      // It was read.
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // For the connection to be used again.
	status := response.StatusCode
	if status >= 200 && status < 300 {
		return nil
	}
	err = fmt.Errorf("%s: HTTP status %d", where, status)
	if status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooManyRequests {
		return err
	}
	return finalError{err}
}
