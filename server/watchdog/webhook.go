package watchdog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Webhook is a receiver that posts messages as JSON, signed as the Standard Webhooks say: by
// HMAC-SHA256 over the id of the message, the time and the body. The id is the same each
// time that a message is sent.
type Webhook struct {
	url    *url.URL
	signer *webhooks.Webhook
	client *http.Client
	retry  Retry
}

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

// NewWebhook makes a receiver for a URL. The secret begins with whsec_, and base64 follows.
func NewWebhook(address, secret string, retry Retry) (*Webhook, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the address is not a URL that begins with http:// or https://")
	}
	signer, err := webhooks.NewWebhook(secret)
	if err != nil {
		return nil, errors.New("the secret of a webhook is whsec_ and base64 of at least 16 bytes")
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Webhook{u, signer, client, retry.withDefaults()}, nil
}

// Send implements [Receiver]. Timeouts and statuses of 5xx, 408 and 429 are tried again.
func (w *Webhook) Send(ctx context.Context, m Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("message %s: %w", m.ID, err)
	}
	return w.retry.do(ctx, func(ctx context.Context) error { return w.post(ctx, m.ID, body) })
}

func (w *Webhook) post(ctx context.Context, id string, body []byte) error {
	now := time.Now()
	signature, err := w.signer.Sign(id, now, body)
	if err != nil {
		return finalError{fmt.Errorf("sign: %w", err)}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url.String(), bytes.NewReader(body))
	if err != nil {
		return finalError{errors.New("the address is not a URL")}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(webhooks.HeaderWebhookID, id)
	request.Header.Set(webhooks.HeaderWebhookSignature, signature)
	request.Header.Set(webhooks.HeaderWebhookTimestamp, fmt.Sprint(now.Unix()))
	response, err := w.client.Do(request)
	if err != nil {
		// The error of the client holds the URL, and that may hold a password.
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return fmt.Errorf("POST to %s: %w", w.url.Host, err)
	}
	defer func() { _ = response.Body.Close() }()                      // It was read.
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // For the connection to be used again.
	return w.check(response.StatusCode)
}

func (w *Webhook) check(status int) error {
	if status >= 200 && status < 300 {
		return nil
	}
	err := fmt.Errorf("POST to %s: HTTP status %d", w.url.Host, status)
	if status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooManyRequests {
		return err
	}
	return finalError{err}
}
