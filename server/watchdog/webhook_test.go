package watchdog_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
	"github.com/dendrascience/dendra-jobs/server/watchdog"
)

const webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// hook is a receiver of webhooks that answers with statuses, the last of them again and again.
type hook struct {
	*httptest.Server
	mu       sync.Mutex
	statuses []int
	ids      []string
	bodies   []watchdog.Message
	bad      []error
}

func newHook(t *testing.T, statuses ...int) *hook {
	t.Helper()
	h := &hook{statuses: statuses}
	verifier, err := webhooks.NewWebhook(webhookSecret)
	require.NoError(t, err)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		var m watchdog.Message
		for _, err := range []error{err, verifier.Verify(body, r.Header), json.Unmarshal(body, &m)} {
			if err != nil {
				h.bad = append(h.bad, err)
			}
		}
		h.ids, h.bodies = append(h.ids, r.Header.Get("webhook-id")), append(h.bodies, m)
		status := h.statuses[0]
		if len(h.statuses) > 1 {
			h.statuses = h.statuses[1:]
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(h.Close)
	return h
}

var fast = watchdog.Retry{Tries: 3, Wait: time.Millisecond, Timeout: 10 * time.Second}

func aMessage() watchdog.Message {
	n := watchdog.Notice{
		ID: "msg1", Phase: alerts.Firing, Alert: "job-failing/probe.a", Rule: "job-failing", Object: "probe.a", Severity: "warning",
		Owner: "organization:demo", Text: "Job probe.a is failing.", FireTime: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	return watchdog.Message{Notice: n, Alerts: []watchdog.Notice{n}}
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		statuses []int
		calls    int
		problem  string
	}{
		"taken":                       {[]int{204}, 1, ""},
		"taken after failures":        {[]int{500, 429, 200}, 3, ""},
		"given up":                    {[]int{503}, 3, "given up after 3 tries: POST to 127.0.0.1"},
		"refused":                     {[]int{400}, 1, "HTTP status 400"},
		"a redirection is no success": {[]int{302}, 1, "HTTP status 302"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHook(t, test.statuses...)
			receiver, err := watchdog.NewWebhook(h.URL, webhookSecret, fast)
			require.NoError(t, err)
			err = receiver.Send(t.Context(), aMessage())
			if test.problem == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.problem)
			}
			require.Empty(t, h.bad, "the signature is right")
			require.Len(t, h.ids, test.calls)
			for i := range h.ids {
				require.Equal(t, "msg1", h.ids[i])
				require.Equal(t, aMessage(), h.bodies[i])
			}
		})
	}
}

func TestWebhookOfASlowServerTimesOut(t *testing.T) {
	t.Parallel()
	blocked := make(chan struct{})
	server := stacktest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-blocked:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(blocked) })
	receiver, err := watchdog.NewWebhook(server, webhookSecret, watchdog.Retry{Tries: 2, Wait: time.Millisecond, Timeout: 20 * time.Millisecond})
	require.NoError(t, err)
	require.ErrorContains(t, receiver.Send(t.Context(), aMessage()), "given up after 2 tries")
}

func TestBadWebhooks(t *testing.T) {
	t.Parallel()
	_, err := watchdog.NewWebhook("ftp://example.org", webhookSecret, fast)
	require.ErrorContains(t, err, "not a URL")
	_, err = watchdog.NewWebhook("http://example.org", "whsec_not base64!", fast)
	require.ErrorContains(t, err, "whsec_")
	require.NotContains(t, err.Error(), "not base64")
}
