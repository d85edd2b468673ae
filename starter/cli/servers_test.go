package cli_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/internal/grpcproxy"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/starter/servers"
)

// results runs doctor or setup, with the exit code that it has to have.
func results(t *testing.T, c console, code int, args ...string) []servers.Result {
	t.Helper()
	r := c.run(t.Context(), append(args, "-o", "json")...)
	require.Equal(t, code, r.code, "%s\n%s", r.stdout, r.stderr)
	return decodeText[[]servers.Result](t, r.stdout)
}

// states are the results, each as "part check: state".
func states(results []servers.Result) []string {
	lines := make([]string, len(results))
	for n, r := range results {
		lines[n] = fmt.Sprintf("%s %s: %s", r.Part, r.Check, r.State)
	}
	return lines
}

func find(t *testing.T, results []servers.Result, part, check string) servers.Result {
	t.Helper()
	n := slices.IndexFunc(results, func(r servers.Result) bool { return r.Part == part && r.Check == check })
	require.GreaterOrEqual(t, n, 0, "%s %s in %v", part, check, results)
	return results[n]
}

var allAttributes = "JobDefinitionHash, JobId, JobMode, JobOwner, JobPauseEnd, JobProvider, JobQueue, JobType"

// A server that someone brings has no namespace for jobs, then one without search
// attributes, and then what setup makes.
func TestSetupOfANewNamespace(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	own := stacktest.StartOwn(t, "--only", "nats,s3")
	env := own.Variables()
	name := fmt.Sprintf("brought-%016x", rand.Uint64())
	c := console{address: st.Temporal, namespace: name, env: env}

	r := c.run(t.Context(), "jobs", "list")
	require.Equal(t, 1, r.code)
	require.Equal(t, fmt.Sprintf("starter: temporal at %s has no namespace %q: starter setup makes it\n", st.Temporal, name), r.stderr)
	doctor := results(t, c, 2, "doctor", "--only", "temporal,workers")
	require.Equal(t, []string{"temporal address: ok", "temporal version: ok", "temporal namespace: wrong", "workers services: unset"}, states(doctor))
	require.Contains(t, find(t, doctor, "temporal", "namespace").Cure, "run starter setup")

	temporal := st.Dial(t)
	_, err := temporal.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	lacks := fmt.Sprintf("starter: namespace %q of temporal at %s lacks the search attributes %s: run starter setup\n", name, st.Temporal, allAttributes)
	stacktest.WaitFor(t, "the namespace to be known", func() (bool, error) {
		return strings.Contains(c.run(t.Context(), "jobs", "list").stderr, "lacks"), nil
	})
	for _, command := range [][]string{
		{"jobs", "list"}, {"runs", "list"}, {"runs", "list", "--missed"}, {"queues", "list"}, {"workers"}, {"upcoming"}, {"drift"},
		{"runs", "describe", "x.y"},
	} {
		r := c.run(t.Context(), command...)
		require.Equal(t, 1, r.code, command)
		require.Equal(t, lacks, r.stderr, command)
		require.Empty(t, r.stdout, command)
	}
	doctor = results(t, c, 2, "doctor", "--only", "temporal")
	require.Equal(t, servers.StateWrong, find(t, doctor, "temporal", "retention").State)
	attributes := find(t, doctor, "temporal", "search attributes")
	require.Equal(t, "0 of 8; missing: "+allAttributes, attributes.Found)
	require.Equal(t, "run starter setup", attributes.Cure)

	nats := own.Pipeline(t)
	_, err = nats.Look(t.Context())
	require.NoError(t, err)
	for _, stream := range []string{pipeline.StreamPrepared, "KV_" + pipeline.BucketRates} {
		require.NoError(t, nats.JetStream().DeleteStream(t.Context(), stream))
	}
	doctor = results(t, c, 2, "doctor", "--only", "nats", "--nats", own.NATS)
	require.Equal(t, "missing: stream PREPARED, bucket rates", find(t, doctor, "nats", "streams").Found)

	made := results(t, c, 0, "setup", "--bucket", "brought", "--retention", "P40D", "--nats", own.NATS)
	require.Equal(t, []string{
		"temporal namespace: there", "temporal retention: made", "temporal search attributes: made",
		"nats streams: there", "nats streams: made", "s3 bucket: made",
	}, states(made))
	require.Equal(t, "P40D, before: P1D", made[1].Found)
	require.Equal(t, allAttributes, made[2].Found)
	require.Contains(t, made[3].Found, "stream RAW, stream QUARANTINE, stream RUN_LOGS, stream CHANGES, bucket bookmarks")
	require.Equal(t, "stream PREPARED, bucket rates; replicas: 1", made[4].Found)
	again := results(t, c, 0, "setup", "--bucket", "brought", "--nats", own.NATS)
	require.Equal(t, []string{"temporal namespace: there", "temporal search attributes: there", "nats streams: there", "s3 bucket: there"}, states(again))
	require.JSONEq(t, `{"jobs": []}`, c.ok(t, "jobs", "list", "-o", "json"))
	doctor = results(t, c, 2, "doctor", "--bucket", "brought", "--nats", own.NATS)
	require.Equal(t, []string{
		"temporal address: ok", "temporal version: ok", "temporal namespace: ok", "temporal retention: ok",
		"temporal search attributes: ok", "temporal services: ok", "temporal schedule engine: unset",
		"workers services: wrong", "workers job types: ok",
		"nats address: ok", "nats version: ok", "nats jetstream: ok", "nats streams: ok", "nats replicas: ok",
		"s3 address: ok", "s3 bucket brought: ok", "influx servers: unset", "platform address: unset", "release2 address: unset",
		"clocks time: ok",
	}, states(doctor))

	env[pipeline.EnvReplicas] = "3"
	doctor = results(t, c, 2, "doctor", "--only", "nats", "--nats", own.NATS)
	require.Contains(t, find(t, doctor, "nats", "replicas").Found, "fewer than the 3 of DENDRA_NATS_REPLICAS: RAW, PREPARED")
}

// A namespace that setup makes itself.
func TestSetupMakesTheNamespace(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	c := console{address: st.Temporal, namespace: fmt.Sprintf("made-%016x", rand.Uint64())}
	made := results(t, c, 0, "setup", "--only", "temporal")
	require.Equal(t, []string{"temporal namespace: made", "temporal search attributes: made"}, states(made))
	require.Equal(t, c.namespace+", retention P30D", made[0].Found)
	require.Equal(t, []string{"temporal namespace: there", "temporal search attributes: there"}, states(results(t, c, 0, "setup", "--only", "temporal")))
}

func TestDoctorOfAllServers(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t)
	env := st.Variables()
	c := console{address: st.Temporal, env: env}
	file := writeFile(t, "timed.toml", `
[jobs.nobody_serves.nightly]
spec = { steps = 1 }
recurring = { recur_every = "P1D" }
`)
	c.ok(t, "apply", "--yes", "-f", file)
	c.ok(t, "setup", "--nats", st.NATS)
	worker := stacktest.StartProcess(t, st, "example-worker", "--service", "shed")
	worker.WaitOutput("msg=announced")
	var doctor []servers.Result
	stacktest.WaitFor(t, "the schedule to be listed", func() (bool, error) {
		doctor = results(t, c, 2, "doctor", "--nats", st.NATS)
		return find(t, doctor, "temporal", "schedule engine").State == servers.StateOK && find(t, doctor, "workers", "job types").State == servers.StateWrong, nil
	})
	require.Equal(t, "no live worker serves NobodyServes (jobs: 1)", find(t, doctor, "workers", "job types").Found)
	require.Equal(t, "files@shed", find(t, doctor, "workers", "services").Found)
	c.ok(t, "apply", "--yes", "-f", writeFile(t, "bound.toml", `
[jobs.hash_files.bound]
spec = { folder = "/none" }
one_shot = {}
bind = { gpu = "yes" }
`))
	stacktest.WaitFor(t, "tags that no worker has", func() (bool, error) {
		return slices.ContainsFunc(results(t, c, 2, "doctor", "--only", "temporal,workers"), func(r servers.Result) bool {
			return r.Check == "job types" && r.Found == "no live worker that serves HashFiles has the tags gpu=yes (jobs: 1)"
		}), nil
	})
	for _, part := range []string{"platform", "release2"} {
		require.Equal(t, servers.StateOK, find(t, doctor, part, "address").State)
	}
	require.Equal(t, "there, with conditional writes", find(t, doctor, "s3", "bucket archive").Found)
	require.Contains(t, find(t, doctor, "clocks", "time").Found, "within 2s: nats, platform, release2, s3, temporal")

	// Wrong settings are told one by one.
	env["DENDRA_S3_SECRET_KEY"], env["DENDRA_PLATFORM_TOKEN"], env["DENDRA_RELEASE2_URL"] = "wrong", "wrong", "nowhere"
	doctor = results(t, c, 2, "doctor", "--only", "s3,platform,release2")
	require.Equal(t, []string{"s3 address: wrong", "platform address: wrong", "release2 address: wrong"}, states(doctor))
	require.Contains(t, doctor[1].Found, "the Platform API refuses the token")
	require.Contains(t, doctor[2].Found, "DENDRA_RELEASE2_URL is not a URL")
	text := c.run(t.Context(), "doctor", "--only", "s3,platform,release2").stdout
	require.Regexp(t, regexp.MustCompile(`(?m)^wrong  platform  address .*\n {26}→ start it, or correct DENDRA_PLATFORM_URL and DENDRA_PLATFORM_TOKEN$`), text)
}

func TestDoctorWithoutServers(t *testing.T) {
	t.Parallel()
	c := console{address: "127.0.0.1:1", env: map[string]string{"DENDRA_S3_ENDPOINT": "http://127.0.0.1:1", "DENDRA_S3_ACCESS_KEY": "a", "DENDRA_S3_SECRET_KEY": "b"}}
	doctor := results(t, c, 2, "doctor", "--nats", "nats://127.0.0.1:1")
	require.Equal(t, []string{
		"temporal address: wrong", "workers services: unset", "nats address: wrong", "s3 address: wrong", "influx servers: unset",
		"platform address: unset", "release2 address: unset", "clocks time: unset",
	}, states(doctor))
	setup := results(t, c, 1, "setup", "--nats", "nats://127.0.0.1:1")
	require.Equal(t, []string{"temporal address: wrong", "nats streams: wrong", "s3 bucket: wrong"}, states(setup))
	c.env["COLUMNS"] = "80"
	narrow := c.run(t.Context(), "doctor", "--nats", "nats://127.0.0.1:1").stdout
	require.Contains(t, narrow, "unset")
	for line := range strings.Lines(narrow) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, line)
	}
	r := c.run(t.Context(), "doctor", "--only", "mars")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "--only mars is not one of temporal, workers, nats, s3, influx, platform, release2, clocks")
	require.Equal(t, 2, c.run(t.Context(), "setup", "--retention", "PT1H").code)
}

// loaderTypes has the job type of load jobs, which names their servers.
func loaderTypes() []job.Type {
	return []job.Type{job.NewType("LiveLoadInfluxV1", job.WorkerLoad, "Loads.",
		func(context.Context, job.Run, influx.Servers) (job.Result, error) { return job.Result{}, nil }, job.ModeContinuous)}
}

// The InfluxDB servers are those of the load jobs, applied or in a file.
func TestDoctorLooksAtTheServersOfLoaders(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "temporal,influx")
	c := console{address: st.Temporal, env: map[string]string{}, types: loaderTypes()}
	file := writeFile(t, "loads.toml", `
[jobs.live_load_influx_v1.here]
continuous = { interval = "PT1H" }
spec = { location = "here", influx_url = "`+st.Influx+`" }

[jobs.live_load_influx_v1.away]
continuous = { interval = "PT1H" }
spec = { location = "away", mirrors = [
  { name = "west", influx_url = "http://127.0.0.1:1" },
  { name = "east", influx_url = "`+st.Influx+`", username = "u", password = "secret://east" },
] }
`)
	doctor := results(t, c, 0, "doctor", "--only", "influx")
	require.Equal(t, []string{"influx servers: unset"}, states(doctor))
	looked := []string{"influx away/west: wrong", "influx away/east: unset", "influx here/default: ok"}
	require.ElementsMatch(t, looked, states(results(t, c, 2, "doctor", "--only", "influx", "-f", file)))
	c.ok(t, "apply", "--yes", "-f", file)
	stacktest.WaitFor(t, "the jobs to be listed", func() (bool, error) {
		doctor = results(t, c, 2, "doctor", "--only", "temporal,influx")
		return len(doctor) >= 10, nil
	})
	influx := slices.DeleteFunc(doctor, func(r servers.Result) bool { return r.Part != "influx" })
	require.ElementsMatch(t, looked, states(influx))
	require.Contains(t, find(t, influx, "influx", "here/default").Found, "version 1.8")
	require.Contains(t, find(t, influx, "influx", "away/east").Found, "secret secret://east is not set")
}

// On a Temporal without standalone activities a bound job is refused and the rest works.
func TestATemporalWithoutServices(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	proxy, err := grpcproxy.Start(t.Context(), st.Temporal, grpcproxy.Older())
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	c := console{address: proxy.Address, namespace: st.Namespace, env: map[string]string{}}
	const sentence = "this Temporal has no standalone activities, which services are made of: it has to be 1.32 or newer"

	file := writeFile(t, "bound.toml", `
[jobs.take_steps.bound]
spec = { steps = 1 }
bind = { zone = "north" }
one_shot = {}

[jobs.only_recurring.free]
spec = { steps = 1 }
recurring = { recur_every = "P1D" }
`)
	r := c.run(t.Context(), "plan", "-f", file)
	require.Equal(t, 2, r.code, r.stderr)
	require.Contains(t, r.stdout, "! take_steps.bound  one-shot  it has the option bind: "+sentence)
	require.Contains(t, r.stdout, "+ only_recurring.free")
	r = c.run(t.Context(), "apply", "--yes", "-f", file)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "1 job is blocked")
	require.Zero(t, proxy.Calls()["StartWorkflowExecution"], "the bound job was started")
	r = c.run(t.Context(), "run", "take_steps.bound", "-f", file)
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: start job take_steps.bound: job take_steps.bound cannot be bound: it has the option bind: "+sentence+"\n", r.stderr)
	r = c.run(t.Context(), "workers")
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: list services: "+sentence+"\n", r.stderr)
	stacktest.WaitFor(t, "the schedule to be listed", func() (bool, error) {
		return strings.Contains(c.ok(t, "jobs", "list"), "only_recurring.free"), nil
	})

	doctor := results(t, c, 2, "doctor", "--only", "temporal,workers")
	require.Regexp(t, "^"+regexp.QuoteMeta(grpcproxy.OlderVersion)+",", find(t, doctor, "temporal", "version").Found)
	require.Equal(t, servers.StateWrong, find(t, doctor, "temporal", "services").State)
	require.Contains(t, find(t, doctor, "temporal", "services").Cure, "upgrade it to 1.32")
	require.Equal(t, servers.StateUnset, find(t, doctor, "workers", "services").State)

	// A worker says it once, and says first where it is.
	worker := stacktest.StartProcess(t, st, "example-worker", "--address", proxy.Address, "--service", "shed")
	worker.WaitOutput("services are missing")
	first, _, _ := strings.Cut(worker.Output(), "\n")
	require.Contains(t, first, "msg=connected")
	require.Contains(t, first, fmt.Sprintf("temporal=%s namespace=%s version=%s", proxy.Address, st.Namespace, grpcproxy.OlderVersion))
	proxy.Reset()
	stacktest.WaitFor(t, "it to look again", func() (bool, error) { return proxy.Calls()["DescribeNamespace"] > 1, nil })
	require.Equal(t, 1, strings.Count(worker.Output(), "services are missing"))
	require.NotContains(t, worker.Output(), "not listed as a service")
}
