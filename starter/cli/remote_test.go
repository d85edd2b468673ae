package cli_test

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/orchestrate"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile/reconciletest"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

// TestAlertsOfAProcessThatHasJustBegun: alerts list has the alerts of all sources at its first look.
func TestAlertsOfAProcessThatHasJustBegun(t *testing.T) {
	t.Parallel()
	st, p := stacktest.StartNamespace(t), reconciletest.New(t)
	startWorker(t, st)
	c := console{address: st.Temporal, namespace: st.Namespace, env: map[string]string{platform.EnvURL: p.URL, platform.EnvToken: p.Token}}
	p.Enable("alone")
	on, err := platform.New(platform.Config{URL: p.URL, Token: p.Token})
	require.NoError(t, err)
	require.NoError(t, on.WriteConditions(t.Context(), "alone", platform.ConditionChange{Observed: 1, Set: []platform.Condition{
		{Type: orchestrate.ConditionDegraded, Holds: true, Reason: "VendorUnreachable"},
	}}))
	_, err = alerts.NewBucket(st.Pipeline(t)).Put(t.Context(), alerts.Record{
		Name: "server-down/platform", Rule: "server-down", Object: "platform", Phase: alerts.Firing, Since: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC),
	}, 0)
	require.NoError(t, err)
	c.ok(t, "queues", "set", "alert", "--on-failure", "halt")
	c.ok(t, "queues", "enqueue", "alert", "--type", "TakeSteps", "--key", "alert", "--spec", `{"steps": 1, "fail": true}`, "--max-retry-count", "0")
	stacktest.WaitFor(t, "the halted queue in lists", func() (bool, error) {
		return strings.Contains(c.run(t.Context(), "queues", "list").stdout, "halted"), nil
	})
	list := c.ok(t, "alerts", "list", "--nats", st.NATS, "-o", "json")
	for _, text := range []string{`"integration-failing/alone"`, `"queue-halted/alert"`} {
		require.Contains(t, list, text)
	}
	away := c
	away.env = map[string]string{platform.EnvURL: "http://127.0.0.1:1", platform.EnvToken: p.Token}
	list = away.ok(t, "alerts", "list", "--nats", st.NATS, "-o", "json")
	for _, text := range []string{`"server-down/platform"`, `"2026-02-03T04:05:06Z"`} {
		require.Contains(t, list, text)
	}
	c.ok(t, "alerts", "silence", "queue-halted/aler*", "--for", "PT1H", "--nats", st.NATS)
	require.Regexp(t, `\(silenced by \S+ for 59m\) Queue alert waits`, c.ok(t, "top", "--nats", st.NATS))
}

// TestAServerThatIsAway is told by all commands in one sentence.
func TestAServerThatIsAway(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	server.Close()
	file := writeFile(t, "jobs.toml", declared)
	for _, args := range [][]string{
		{"queues", "list"}, {"plan", "-f", file}, {"apply", "-f", file, "--yes"}, {"drift"}, {"loads"}, {"quarantine", "list"},
		{"bookmarks", "list"}, {"bookmarks", "set", "a.b", "c", "2026-03-04T00:00:00Z", "--yes"},
		{"archive", "audit"}, {"archive", "list"}, {"archive", "cat", "x"},
	} {
		r := console{}.run(t.Context(), append(args, "--server", server.URL)...)
		require.Equal(t, 1, r.code, args)
		require.Regexp(t, `^starter: the server http://127\.0\.0\.1:\d+ cannot be reached \(.*\)\n$`, r.stderr, args)
		require.Empty(t, r.stdout, args)
	}
}

// TestAddressOfSeveralHosts: an address may be a name of DNS with several addresses, as that of a
// headless Service of Kubernetes.
func TestAddressOfSeveralHosts(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	_, port, err := net.SplitHostPort(st.Temporal)
	require.NoError(t, err)
	c := console{address: "dns:///localhost:" + port, namespace: st.Namespace}
	c.ok(t, "jobs", "list")
	require.Regexp(t, `version +1\.\d+\.\d+, history shards: 1, on sqlite`, c.run(t.Context(), "doctor", "--only", "temporal").stdout)
}

// TestEachCommandConnectsToWhatItNeeds has commands of NATS work while Temporal is away, and
// those of Temporal while NATS is.
func TestEachCommandConnectsToWhatItNeeds(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	const away = "127.0.0.1:1"
	withoutTemporal := console{address: away}
	for _, args := range [][]string{{"loads"}, {"quarantine", "list"}, {"bookmarks", "list"}} {
		r := withoutTemporal.run(t.Context(), append(args, "--nats", st.NATS)...)
		require.Zero(t, r.code, "%v: %s", args, r.stderr)
	}
	refused := withoutTemporal.run(t.Context(), "jobs", "list")
	require.Equal(t, 1, refused.code)
	require.Regexp(t, `^starter: temporal at 127\.0\.0\.1:1 cannot be reached; is it running there\? \(.*\)\n$`, refused.stderr)

	// Doctor knows the types of its file from workers.
	file := writeFile(t, "jobs.toml", "[jobs.hash_files.a]\none_shot = {}\n")
	refused = withoutTemporal.run(t.Context(), "doctor", "--file", file)
	require.Contains(t, refused.stderr, "It is not known whether workers have the job types of "+file+" that are not built in: hash_files.")

	withoutNATS := console{address: st.Temporal, namespace: st.Namespace, env: map[string]string{"DENDRA_NATS_REPLICAS": "none"}}
	withoutNATS.ok(t, "jobs", "list")
	refused = withoutNATS.run(t.Context(), "bookmarks", "list", "--nats", "http://"+away)
	require.Equal(t, 1, refused.code)
	require.Contains(t, refused.stderr, "begins with http://: NATS is reached by nats://")
}

// TestWrongServer names servers that are none, or do not let the caller in.
func TestWrongServer(t *testing.T) {
	t.Parallel()
	answers := func(status int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", status) }))
		t.Cleanup(server.Close)
		return server.URL
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	plainly := answers(http.StatusNotFound)
	for _, test := range []struct{ url, want string }{
		{"jobs.example.org", `server "jobs\.example\.org" is not a URL such as https://jobs\.example\.org`},
		{"http://127.0.0.1:1", `the server http://127\.0\.0\.1:1 cannot be reached \(connection refused\)`},
		{plainly, `what answers at \S+ is not a Job API \(.*404.*\)`},
		{answers(http.StatusUnauthorized), `the server \S+ does not know you: give a token with --token-file or \$DENDRA_TOKEN, or a certificate with --client-cert`},
		{answers(http.StatusForbidden), `the server \S+ does not allow this to you`},
		{answers(http.StatusServiceUnavailable), `the server \S+ is not available now: try again later \(.*503.*\)`},
		{secure.URL, `the server \S+ cannot be reached with TLS: its certificate is of an authority that is not known here; name it with --server-ca`},
		{strings.Replace(plainly, "http:", "https:", 1), `the server \S+ cannot be reached with TLS: it does not speak TLS; is its URL http://\?`},
	} {
		for _, format := range []string{"table", "json"} {
			r := console{}.run(t.Context(), "jobs", "list", "-o", format, "--server", test.url)
			require.Equal(t, 1, r.code)
			require.Empty(t, r.stdout)
			require.Regexp(t, "^starter: "+test.want+"\n$", r.stderr)
		}
	}
	// The token goes nowhere else, and people are told when it goes in clear.
	stolen := make(chan string, 10)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen <- r.Header.Get("Authorization") }))
	t.Cleanup(thief.Close)
	redirecting := httptest.NewServer(http.RedirectHandler(thief.URL+"/stolen", http.StatusTemporaryRedirect))
	t.Cleanup(redirecting.Close)
	known := console{env: map[string]string{cli.EnvToken: "canary"}}
	for _, args := range [][]string{{"jobs", "list"}, {"jobs", "pause", "a.b"}} {
		r := known.run(t.Context(), append(args, "--server", redirecting.URL)...)
		require.Equal(t, 1, r.code)
		require.Regexp(t, `^starter: the server \S+ is not the one: it redirects to http://127\.0\.0\.1:\d+: give that to --server if it may have your token\n$`, r.stderr)
	}
	require.Empty(t, stolen)
	const warning = "starter: everybody on the way to http://0.0.0.0:1 can read the token: use https.\n"
	require.Contains(t, known.run(t.Context(), "jobs", "list", "--server", "http://0.0.0.0:1").stderr, warning)
	require.NotContains(t, known.run(t.Context(), "jobs", "list", "--server", "http://127.0.0.1:1").stderr, "everybody")
	require.NotContains(t, console{}.run(t.Context(), "jobs", "list", "--server", "http://0.0.0.0:1").stderr, "everybody")
	r := console{}.run(t.Context(), "version", "--server", plainly)
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "starter: starter version does not work through --server: ")

	// What needs no server does not mind a wrong one.
	misled := console{env: map[string]string{cli.EnvServer: "jobs.example.org"}}
	require.Equal(t, 1, misled.run(t.Context(), "jobs", "list").code)
	for _, line := range []string{"version", "help jobs", "jobs", "jobs list --help", "completion bash", "__complete jobs li"} {
		require.Zero(t, misled.run(t.Context(), strings.Fields(line)...).code, line)
	}
}
