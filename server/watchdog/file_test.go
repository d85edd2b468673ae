package watchdog_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/secrets"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/server/watchdog"
)

func resolve(ref job.SecretRef, destination string) (string, error) {
	const hooks = "hosts: hooks.example.org, a.example.org\n\n"
	return secrets.New(func(name string) string {
		return map[string]string{
			"DENDRA_SECRET_BEAT": "https://hc.example.org/s3cr3t", "DENDRA_SECRET_HOOK": hooks + webhookSecret,
			"DENDRA_SECRET_MAIL": "hosts: smtp.example.org\n\ns3cr3t", "DENDRA_SECRET_BAD": hooks + "s3cr3t!",
		}[name]
	}).Resolve(ref, destination, job.Owner{})
}

const goodFile = `
repeat_every = "P1D"
group_wait = "PT30S"

[heartbeat]
url = "secret://beat"
fail_url = "http://hc.example.org/fail"

[stations."extract_hobo.meadow/*"]
age = "P3D"

[stations."extract_hobo.meadow/21"]
age = "never"

[limits]
queue_age = "PT30M"
freshness = "PT6H"

[rules.drift]
off = true
severity = "critical"

[rules.job-failing]
hold = "PT1M"
repeat_every = "PT4H"

[receivers.log]
type = "log"

[receivers.chat]
type = "webhook"
url = "https://hooks.example.org/jobs"
secret = "secret://hook"
rules = ["server-down", "no-worker"]
severities = ["critical"]
owners = ["organization:demo", ""]

[receivers.mail]
type = "email"
host = "smtp.example.org"
from = "Jobs <jobs@example.org>"
to = ["ops@example.org"]
user = "jobs"
password = "secret://mail"
`

func TestFile(t *testing.T) {
	t.Parallel()
	f, err := watchdog.ReadFile("watchdog.toml", []byte(goodFile), resolve, quiet)
	require.NoError(t, err)
	require.Equal(t, 30*time.Minute, f.Limits.QueueAge)
	require.Equal(t, 6*time.Hour, f.Limits.Freshness)
	require.True(t, f.Timings["drift"].Off)
	require.Equal(t, watchdog.Timing{Hold: time.Minute, Clear: time.Minute, Repeat: 4 * time.Hour}, f.Timings["job-failing"])
	require.Equal(t, 24*time.Hour, f.Timings["no-worker"].Repeat)
	require.Equal(t, 30*time.Second, f.GroupWait)
	require.Equal(t, map[string]time.Duration{"extract_hobo.meadow/*": 72 * time.Hour, "extract_hobo.meadow/21": 0}, f.Limits.Stations)
	require.Equal(t, map[jobsv1.AlertRule]jobsv1.AlertSeverity{jobsv1.AlertRule_ALERT_RULE_DRIFT: critical}, f.Limits.Severities)
	require.Equal(t, "https://hc.example.org/s3cr3t", f.Heartbeat.URL.String())
	require.Equal(t, "http://hc.example.org/fail", f.Heartbeat.FailURL.String())
	require.Equal(t, time.Minute, f.Heartbeat.Every)
	require.Len(t, f.Routes, 3)
	require.Equal(t, []string{"server-down", "no-worker"}, f.Routes[0].Rules)
	require.Equal(t, []string{"critical"}, f.Routes[0].Severities)
	require.Equal(t, []string{"organization:demo", ""}, f.Routes[0].Owners)

	f, err = watchdog.ReadFile("watchdog.toml", nil, resolve, quiet)
	require.NoError(t, err)
	require.Len(t, f.Routes, 1, "without receivers there is the log")
	require.Equal(t, 10*time.Second, f.GroupWait)
	require.Nil(t, f.Heartbeat)
}

// TestDocumentedFile reads the file that people start from.
func TestDocumentedFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/sample/watchdog.toml")
	require.NoError(t, err)
	store := secrets.New(func(name string) string {
		return map[string]string{
			"DENDRA_SECRET_HEARTBEAT": "https://hc-ping.com/5", "DENDRA_SECRET_HEARTBEAT_FAIL": "https://hc-ping.com/5/fail",
			"DENDRA_SECRET_HOOK": "hosts: hooks.example.org\n\n" + webhookSecret, "DENDRA_SECRET_MAIL": "hosts: smtp.example.org\n\ns3cr3t",
		}[name]
	})
	f, err := watchdog.ReadFile("watchdog.toml", text, func(ref job.SecretRef, destination string) (string, error) {
		return store.Resolve(ref, destination, job.Owner{})
	}, quiet)
	require.NoError(t, err)
	require.Len(t, f.Routes, 3)
	require.Len(t, f.Limits.Stations, 2)
	require.NotNil(t, f.Heartbeat)
}

// TestSettings: replicas compare what decides about messages, and nothing else.
func TestSettings(t *testing.T) {
	t.Parallel()
	settings := func(text string) string {
		f, err := watchdog.ReadFile("watchdog.toml", []byte(text), resolve, quiet)
		require.NoError(t, err)
		return f.Settings
	}
	usual := settings("")
	for _, same := range []string{"# a note", `group_wait = "PT10S"`, "[heartbeat]\nurl = \"http://hc.example.org/1\"", "[receivers.log]\ntype = \"log\""} {
		require.Equal(t, usual, settings(same), same)
	}
	seen := map[string]bool{usual: true}
	for _, other := range []string{
		goodFile, strings.Replace(goodFile, "ops@", "dev@", 1), `group_wait = "PT0S"`, "[rules.drift]\noff = true", "[rules.drift]\nseverity = \"critical\"",
		"[limits]\nqueue_age = \"PT2H\"", "[stations.a]\nage = \"never\"", "[receivers.other]\ntype = \"log\"",
		"[receivers.log]\ntype = \"log\"\nowners = [\"user:ann\"]",
	} {
		got := settings(other)
		require.False(t, seen[got], other)
		seen[got] = true
	}
}

// TestKeys: each key that the file takes is described.
func TestKeys(t *testing.T) {
	t.Parallel()
	known := map[string]watchdog.Key{}
	for _, key := range watchdog.Keys() {
		require.NotEmpty(t, key.Meaning, key.Name)
		known[key.Name] = key
	}
	require.Equal(t, "PT10S", known["group_wait"].Default)
	for _, name := range []string{"heartbeat.url", "limits.load_age", `stations."JOB_ID/SOURCE".age`, "rules.RULE.severity", "receivers.NAME.owners"} {
		require.Contains(t, known, name)
	}
}

func TestFilesThatAreWrong(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"no TOML":       {"[limits", []string{"w.toml:1: "}},
		"unknown keys":  {"a = 1\n[limits]\nqueue = \"PT1H\"", []string{"w.toml:1: a: there is no such key", "w.toml:3: limits.queue: there is no such key"}},
		"negative":      {"[limits]\nqueue_age = \"-PT1H\"", []string{"w.toml:2: "}},
		"no duration":   {"[limits]\nqueue_age = \"soon\"", []string{"w.toml:2: "}},
		"wrong type":    {"[receivers.a]\ntype = 3", []string{"w.toml:2: "}},
		"no such rule":  {"\n[rules.droft]\noff = true", []string{"w.toml:2: rules.droft: there is no such rule"}},
		"short clear":   {"[rules.drift]\nclear = \"PT1S\"", []string{"w.toml:2: rules.drift.clear: PT1S is shorter than PT10S"}},
		"short repeat":  {"repeat_every = \"PT1S\"", []string{"w.toml:1: repeat_every: PT1S is shorter than PT1M"}},
		"long wait":     {"group_wait = \"PT1H\"", []string{"w.toml:1: group_wait: PT1H is longer than PT10M"}},
		"no heartbeat":  {"\n[heartbeat]\nevery = \"PT1M\"", []string{"w.toml:2: heartbeat.url: the address is not a URL"}},
		"quick one":     {"[heartbeat]\nurl = \"http://a\"\nevery = \"PT0.1S\"", []string{"w.toml:3: heartbeat.every: PT0.1S is shorter than PT1S"}},
		"its password":  {"[heartbeat]\nurl = \"http://u:s3cr3t@a\"", []string{"w.toml:2: heartbeat.url: it is no URL, or has a password"}},
		"its secret":    {"[heartbeat]\nurl = \"secret://bad\"", []string{"w.toml:2: heartbeat.url: secret secret://bad, in the variable DENDRA_SECRET_BAD, is not a URL"}},
		"fail_url":      {"[heartbeat]\nurl = \"http://a\"\nfail_url = \"secret://none\"", []string{"w.toml:3: heartbeat.fail_url: secret secret://none is not set here"}},
		"no age":        {"[stations.\"a/b\"]\nage = \"soon\"", []string{"w.toml:2: "}},
		"an empty age":  {"[stations.\"a/b\"]", []string{"w.toml:1: stations.a/b: age is not set"}},
		"no severity":   {"[rules.drift]\nseverity = \"high\"", []string{"w.toml:2: rules.drift.severity: \"high\" is not one of critical, warning, info"}},
		"severities":    {"[receivers.a]\ntype = \"log\"\nseverities = [\"high\"]", []string{"w.toml:3: receivers.a.severities: \"high\" is not one of"}},
		"no owner":      {"[receivers.a]\ntype = \"log\"\nowners = [\"demo\"]", []string{"w.toml:3: receivers.a.owners: \"demo\" is not an owner"}},
		"no such type":  {"[receivers.a]\ntype = \"pager\"", []string{"w.toml:2: receivers.a.type: \"pager\" is not one of log, webhook, email"}},
		"no secret":     {"[receivers.a]\ntype = \"webhook\"\nurl = \"https://a.example.org\"", []string{"w.toml:1: receivers.a.secret: it is not set"}},
		"a plain one":   {"[receivers.a]\ntype = \"webhook\"\nurl = \"https://a.example.org\"\nsecret = \"s3cr3t\"", []string{"w.toml:4: receivers.a.secret: a secret is named as secret://NAME"}},
		"unset secret":  {"[receivers.a]\ntype = \"webhook\"\nurl = \"https://a.example.org\"\nsecret = \"secret://other\"", []string{"w.toml:4: receivers.a.secret: secret secret://other is not set here"}},
		"bad secret":    {"[receivers.a]\ntype = \"webhook\"\nurl = \"https://a.example.org\"\nsecret = \"secret://bad\"", []string{"w.toml:1: receivers.a: the secret of a webhook is whsec_"}},
		"another host":  {"[receivers.a]\ntype = \"webhook\"\nurl = \"https://b.example.org/x\"\nsecret = \"secret://hook\"", []string{"w.toml:4: receivers.a.secret: secret secret://hook, in the variable DENDRA_SECRET_HOOK, may not go to b.example.org: a line \"hosts: b.example.org\" before it would allow that"}},
		"password":      {"[receivers.a]\ntype = \"webhook\"\nurl = \"https://u:s3cr3t@a.example.org\"\nsecret = \"secret://hook\"", []string{"w.toml:3: receivers.a.url: it is no URL, or has a password"}},
		"several":       {"[receivers.a]\ntype = \"email\"\n[receivers.b]\ntype = \"log\"\nrules = [\"x\"]", []string{"w.toml:1: receivers.a: host is not set", "w.toml:5: receivers.b.rules: there is no rule \"x\""}},
		"bad addresses": {"[receivers.a]\ntype = \"email\"\nhost = \"h\"\nfrom = \"nobody\"\nto = [\"a@example.org\"]", []string{"w.toml:1: receivers.a: from: \"nobody\" is not an address of mail"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := watchdog.ReadFile("w.toml", []byte(test.text), resolve, quiet)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "s3cr3t")
			got := strings.Split(err.Error(), "\n")
			require.Len(t, got, len(test.want), "%q", got)
			for i, want := range test.want {
				require.True(t, strings.HasPrefix(got[i], want), "%q does not begin with %q", got[i], want)
			}
		})
	}
}
