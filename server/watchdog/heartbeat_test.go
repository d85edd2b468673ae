package watchdog_test

import (
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/server/watchdog"
)

// ward counts the calls of a heartbeat by their paths.
type ward struct {
	mu    sync.Mutex
	calls map[string]int
}

func (w *ward) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[r.URL.Path]++
}

func (w *ward) count(path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[path]
}

// TestHeartbeat calls a URL while all is well, and another one while it is not.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	h := &ward{calls: map[string]int{}}
	at, err := url.Parse(stacktest.Serve(t, h))
	require.NoError(t, err)
	var mu sync.Mutex
	now := watchdog.Now{}
	set := func(change func(*watchdog.Now)) {
		mu.Lock()
		defer mu.Unlock()
		now = watchdog.Now{Known: true, Complete: true, ReadTime: time.Now().Add(time.Hour)}
		change(&now)
	}
	start(t, nil, &inbox{}, func(c *watchdog.Config) {
		c.Every, c.Heartbeat = 10*time.Millisecond, &watchdog.Heartbeat{URL: at.JoinPath("well"), FailURL: at.JoinPath("fail"), Every: 100 * time.Millisecond}
		c.Alerts = func() watchdog.Now {
			mu.Lock()
			defer mu.Unlock()
			return now
		}
	})
	more := func(path string) {
		t.Helper()
		begin := h.count(path)
		stacktest.WaitFor(t, "more calls of "+path, func() (bool, error) { return h.count(path) > begin+1, nil })
	}
	more("/fail") // Nothing was read yet.
	require.Zero(t, h.count("/well"))
	for name, bad := range map[string]func(*watchdog.Now){
		"something was not read": func(n *watchdog.Now) { n.Complete = false },
		"nothing is read lately": func(n *watchdog.Now) { n.ReadTime = time.Now().Add(-time.Minute) },
		"a server is down": func(n *watchdog.Now) {
			n.Alerts = []*jobsv1.Alert{{Name: "server-down/nats", Rule: jobsv1.AlertRule_ALERT_RULE_SERVER_DOWN, Object: "nats"}}
		},
	} {
		set(func(*watchdog.Now) {})
		more("/well")
		set(bad)
		more("/fail")
		begin := h.count("/well")
		more("/fail")
		require.Equal(t, begin, h.count("/well"), name)
	}
	set(func(n *watchdog.Now) { // Other alerts do not stop it.
		n.Alerts = []*jobsv1.Alert{{Name: "job-failing/a.b", Rule: failing, Object: "a.b"}}
	})
	more("/well")
}
