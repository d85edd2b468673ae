package watchdog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// NewWebhook makes a receiver for a URL. The secret begins with whsec_, and base64 follows.
func NewWebhook(address, secret string, retry Retry) (*Webhook, error) {
	u, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	signer, err := webhooks.NewWebhook(secret)
	if err != nil {
		return nil, errors.New("the secret of a webhook is whsec_ and base64 of at least 16 bytes")
	}
	return &Webhook{u, signer, newClient(), retry.withDefaults()}, nil
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
		return finalError{errNoURL}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(webhooks.HeaderWebhookID, id)
	request.Header.Set(webhooks.HeaderWebhookSignature, signature)
	request.Header.Set(webhooks.HeaderWebhookTimestamp, fmt.Sprint(now.Unix()))
	return call(w.client, request)
}
