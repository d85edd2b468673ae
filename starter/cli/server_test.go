package cli_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

// twinJobs are two sets of the same jobs: one command works on the first in process, and on
// the second through a server.
const twinJobs = `
[jobs.take_steps.twin-NAME]
spec = { steps = 2 }
owner = "user:twin"
tags = { twin = "yes" }
recurring = { recur_every = "P1D", offset = "PT0S" }

[jobs.take_steps.once-NAME]
spec = { steps = 2 }
owner = "user:twin"
one_shot = {}

[jobs.take_steps.fails-NAME]
spec = { steps = 2, fail = true }
owner = "user:twin"
max_retry_count = 0
one_shot = {}

[jobs.take_steps.line-NAME]
spec = { steps = 2 }
owner = "user:twin"
queued = { queue = "twins-NAME" }

[jobs.take_steps.loop-NAME]
spec = { steps = 2 }
owner = "user:twin"
continuous = { interval = "PT1H" }

[jobs.nobody_serves.loop-NAME]
spec = { steps = 2 }
continuous = { interval = "PT1H" }
`

// varying is what two runs of the same command cannot have the same.
var varying = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "RUN"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`after [0-9.]+m?s`), "after SOME TIME"},
	{regexp.MustCompile(`"etag": "[^"]*"|"definitionHash": "[^"]*"`), "HASH"},
}

func withoutVarying(r result, name string) result {
	for _, text := range []*string{&r.stdout, &r.stderr} {
		*text = strings.NewReplacer("-"+name, "-NAME").Replace(*text)
		for _, v := range varying {
			*text = v.pattern.ReplaceAllString(*text, v.as)
		}
	}
	return r
}

// withServer runs every command twice, in process and through a server: what they write
// is the same.
func withServer(t *testing.T, c console, st *stacktest.Stack) {
	c.ok(t, "apply", "--yes", "-f", writeFile(t, "twins.toml", strings.ReplaceAll(twinJobs, "NAME", "xyz")+strings.ReplaceAll(twinJobs, "NAME", "zyx")))
	for _, name := range []string{"xyz", "zyx"} {
		c.run(t.Context(), "run", "take_steps.once-"+name)
		c.run(t.Context(), "run", "take_steps.fails-"+name)
		c.ok(t, "run", "take_steps.twin-"+name)
	}
	stacktest.WaitFor(t, "the runs in the list", func() (bool, error) {
		runs := answered[jobsv1.ListRunsResponse](t, c, "runs", "list", "--owner", "user:twin", "--limit", "0").GetRuns()
		ended := 0
		for _, run := range runs {
			if run.GetEndTime() != nil {
				ended++
			}
		}
		return ended >= 6, nil
	})
	in := c
	in.now = time.Now().Truncate(time.Second)
	through := in
	through.address, through.env = "", map[string]string{cli.EnvServer: serve(t, st, nil)}
	t.Run("reads", func(t *testing.T) { sameReads(t, in, through) })
	t.Run("changes", func(t *testing.T) { sameChanges(t, in, through) })
	t.Run("failures", func(t *testing.T) { sameFailures(t, in, through) })
}

// upToNow is the end of the time that missed starts are counted for.
var upToNow = regexp.MustCompile(`  "endTime": "[^"]*",\n`)

// sameReads compares the bytes of commands that change nothing, and reads their JSON as
// messages of the contract.
func sameReads(t *testing.T, in, through console) {
	for line, message := range map[string]proto.Message{
		"jobs list --owner user:twin":                                   &jobsv1.ListJobsResponse{},
		"jobs list --tag twin --status scheduled --mode recurring":      &jobsv1.ListJobsResponse{},
		"jobs list --owner user:nobody":                                 &jobsv1.ListJobsResponse{},
		"jobs describe take_steps.twin-xyz":                             &jobsv1.Job{},
		"jobs describe take_steps.once-xyz":                             &jobsv1.Job{},
		"jobs describe take_steps.loop-xyz":                             &jobsv1.Job{},
		"jobs next take_steps.twin-xyz -n 3":                            &jobsv1.ListNextStartsResponse{},
		"upcoming --within 24h --owner user:twin --limit 1":             &jobsv1.ListUpcomingStartsResponse{},
		"runs list --owner user:twin --status completed":                &jobsv1.ListRunsResponse{},
		"runs list --job take_steps.fails-xyz":                          &jobsv1.ListRunsResponse{},
		"runs list --job take_steps.loop-xyz":                           &jobsv1.ListRunsResponse{},
		"runs list --missed --job take_steps.twin-xyz":                  &jobsv1.ListMissedStartsResponse{},
		"runs describe take_steps.once-xyz":                             &jobsv1.Run{},
		"runs describe job/take_steps.fails-xyz":                        &jobsv1.Run{},
		"workers":                                                       &jobsv1.ListWorkersResponse{},
		"run --type TakeSteps --key read --spec {\"steps\":1}":          &jobsv1.Run{},
		"run --type TakeSteps --key read --spec {\"steps\":1} --detach": &jobsv1.RunJobResponse{},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			for _, format := range []string{"table", "json"} {
				args := append(strings.Fields(line), "-o", format)
				in.run(t.Context(), args...)
				var direct, served result
				// A worker may be seen, and a job may go on, between the two.
				stacktest.WaitFor(t, "the same answers", func() (bool, error) {
					direct, served = in.run(t.Context(), args...), through.run(t.Context(), args...)
					if strings.Contains(line, "--missed") { // It counts up to now.
						direct.stdout, served.stdout = upToNow.ReplaceAllString(direct.stdout, ""), upToNow.ReplaceAllString(served.stdout, "")
					}
					if direct != served {
						return false, fmt.Errorf("in process:\n%+v\nthrough a server:\n%+v", direct, served)
					}
					return true, nil
				})
				require.Zero(t, direct.code, direct.stderr)
				if format == "json" {
					require.NoError(t, protojson.Unmarshal([]byte(served.stdout), proto.Clone(message)))
				}
			}
		})
	}
}

// sameChanges compares commands that change the one set of jobs in process, and the other
// through a server.
func sameChanges(t *testing.T, in, through console) {
	for _, line := range []string{
		"jobs pause take_steps.twin-NAME --reason lunch",
		"jobs pause take_steps.twin-NAME --reason tea -o json",
		"jobs resume take_steps.twin-NAME",
		"jobs resume take_steps.twin-NAME",
		"jobs resume take_steps.twin-NAME -o json",
		"jobs restart take_steps.loop-NAME",
		"jobs stop take_steps.loop-NAME --reason enough --yes",
		"jobs stop take_steps.once-NAME --yes",
		"jobs trigger take_steps.once-NAME take_steps.none --yes",
		"jobs skip-next take_steps.twin-NAME --by ada",
		"jobs next take_steps.twin-NAME -n 1",
		"jobs backfill take_steps.twin-NAME --from 2026-03-01T00:00:00Z --to 2026-03-02T12:00:00Z",
		"jobs backfill take_steps.twin-NAME --from 2026-03-01T00:00:00Z --to 2026-03-02T12:00:00Z --yes",
		"run take_steps.line-NAME",
		"run take_steps.fails-NAME",
		"run take_steps.once-NAME --detach",
		"run take_steps.once-NAME --in PT1H",
		"runs cancel take_steps.once-NAME take_steps.fails-NAME --yes",
		"runs retry take_steps.fails-NAME",
		"runs retry take_steps.once-NAME --yes",
		"runs terminate take_steps.fails-NAME --yes",
		"runs cancel --owner user:none --yes",
		"jobs stop take_steps.none-NAME --yes",
	} {
		run := func(c console, name string) result {
			return withoutVarying(c.run(t.Context(), strings.Fields(strings.ReplaceAll(line, "NAME", name))...), name)
		}
		direct, served := run(in, "xyz"), run(through, "zyx")
		// Progress is of the moment.
		progress := regexp.MustCompile(`(?m)^(waiting|running).*\n`)
		direct.stderr, served.stderr = progress.ReplaceAllString(direct.stderr, ""), progress.ReplaceAllString(served.stderr, "")
		require.Equal(t, direct, served, line)
	}
}

// sameFailures compares the errors of commands, and their exit codes.
func sameFailures(t *testing.T, in, through console) {
	for line, code := range map[string]int{
		"jobs describe take_steps.none":                                           1,
		"jobs next take_steps.none":                                               1,
		"jobs next take_steps.loop-xyz":                                           1,
		"jobs list --type Nope":                                                   2,
		"jobs pause take_steps.once-xyz":                                          1,
		"jobs skip-next take_steps.loop-xyz":                                      1,
		"jobs backfill take_steps.twin-xyz --from PT1H --to 2099-01-01T00:00:00Z": 1,
		"runs list --job take_steps.none":                                         1,
		"runs list --missed --job take_steps.none":                                1,
		"runs list --type TakeStep":                                               2,
		"runs describe take_steps.none":                                           1,
		"runs describe job/take_steps.none":                                       1,
		"runs describe take_steps.once-xyz nonsense":                              1,
		"runs describe take_steps.loop-xyz":                                       1,
		"runs cancel take_steps.none --yes":                                       1,
		"runs terminate take_steps.once-xyz":                                      1,
		"workers describe none":                                                   1,
		"run take_steps.none":                                                     1,
		"run --type Nope":                                                         2,
		"run --type TakeSteps --spec {\"steps\":0}":                               1,
		"run --type TakeSteps --key twin-xyz --spec {\"steps\":1}":                1,
		"run take_steps.twin-xyz --in PT1H":                                       1,
		"runs list --job nobody_serves.loop-xyz":                                  1,
		"run nobody_serves.loop-xyz":                                              1,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			direct := in.run(t.Context(), strings.Fields(line)...)
			require.Equal(t, direct, through.run(t.Context(), strings.Fields(line)...))
			require.Equal(t, code, direct.code, direct.stderr)
			require.Regexp(t, `(?s)(^|\n)starter: [^\n]*\n$`, direct.stderr)
			require.NotRegexp(t, `not_found|failed_precondition|unavailable:|invalid_argument`, direct.stderr)
		})
	}
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
	r := console{}.run(t.Context(), "version", "--server", plainly)
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "starter: starter version does not work through --server: ")
	require.Zero(t, console{env: map[string]string{cli.EnvServer: plainly}}.run(t.Context(), "version").code)
}
