package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
	"github.com/dendrascience/dendra-jobs/server/watchdog"
)

// receiver takes calls of heartbeats, and webhooks.
type receiver struct {
	mu       sync.Mutex
	calls    int
	last     time.Time
	messages []watchdog.Message
	bad      []error
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if request.Method == http.MethodGet {
		r.calls, r.last = r.calls+1, time.Now()
		return
	}
	var m watchdog.Message
	if err := json.NewDecoder(request.Body).Decode(&m); err != nil {
		r.bad = append(r.bad, err)
	}
	r.messages = append(r.messages, m)
}

// heard gives how many calls there were, and for how long there has been none.
func (r *receiver) heard() (calls int, silence time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls, time.Since(r.last)
}

// told reports whether a message of a phase has an alert.
func (r *receiver) told(phase alerts.Phase, alert string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.messages, func(m watchdog.Message) bool {
		return m.Phase == phase && slices.ContainsFunc(m.Alerts, func(n watchdog.Notice) bool { return n.Alert == alert })
	})
}

func writeWatchdog(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "watchdog.toml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestHeartbeatOfAKilledServer: who gets the calls finds out that a server is gone, whose host
// could tell nobody.
func TestHeartbeatOfAKilledServer(t *testing.T) {
	t.Parallel()
	st, beats := stacktest.StartNamespace(t), &receiver{}
	file := writeWatchdog(t, fmt.Sprintf("[heartbeat]\nurl = %q\nevery = \"PT1S\"\n", stacktest.Serve(t, beats)+"/ping"))
	r := &replica{stack: st, address: "127.0.0.1:" + stacktest.FreePort(t), args: []string{"--watchdog", file}}
	comes := func() {
		t.Helper()
		begin, _ := beats.heard()
		stacktest.WaitFor(t, "the heartbeat", func() (bool, error) {
			calls, _ := beats.heard()
			return calls > begin+2, nil
		})
	}
	r.start(t)
	comes()
	r.process.Kill()
	stacktest.WaitFor(t, "the heartbeat to stop", func() (bool, error) {
		_, silence := beats.heard()
		return silence > 15*time.Second, nil
	})
	r.start(t)
	comes()
}

// TestReplicasWithOtherSettings: of two servers with different files one is told as an alert,
// until it is gone.
func TestReplicasWithOtherSettings(t *testing.T) {
	t.Parallel()
	st, hook := stacktest.StartOwn(t), &receiver{}
	const rules = "group_wait = \"PT0S\"\n[rules.settings-differ]\nhold = \"PT0S\"\nclear = \"PT10S\"\n"
	webhook := fmt.Sprintf("[receivers.hook]\ntype = \"webhook\"\nurl = %q\nsecret = \"secret://hook\"\n", stacktest.Serve(t, hook))
	begin := func(text string) *stacktest.Process {
		return stacktest.StartProgram(t, st, stacktest.Program{
			Name: "starter", Args: []string{"serve", "--listen", "127.0.0.1:0", "--watchdog", writeWatchdog(t, text)},
			Env: []string{"DENDRA_SECRET_HOOK=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
		})
	}
	replicas := func() int {
		state, err := alerts.NewBucket(st.Pipeline(t)).Read(t.Context())
		require.NoError(t, err)
		return len(state.Replicas)
	}
	first := begin(rules + webhook)
	stacktest.WaitFor(t, "the record of the first", func() (bool, error) { return replicas() == 1, nil })
	second := begin(rules + webhook + "severities = [\"critical\"]\n")
	host, err := os.Hostname()
	require.NoError(t, err)
	odd := fmt.Sprintf("settings-differ/%s/%d", host, second.PID())
	stacktest.WaitFor(t, "the alert", func() (bool, error) { return hook.told(alerts.Firing, odd), nil })
	for _, p := range []*stacktest.Process{first, second} {
		p.WaitOutput("replicas tell alerts by different settings")
	}
	second.Kill()
	stacktest.WaitFor(t, "the end of the alert", func() (bool, error) { return hook.told(alerts.Cleared, odd), nil })
	require.Equal(t, 1, strings.Count(first.Output(), "replicas tell alerts by different settings"))
	require.Empty(t, hook.bad)
	first.Signal(os.Interrupt)
	require.Zero(t, first.Wait())
	require.Equal(t, 1, replicas(), "one that stops removes its record")
}
