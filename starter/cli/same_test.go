package cli_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile/reconciletest"
	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

// serve serves the Job API for the namespace of a stack.
func serve(t *testing.T, st *stacktest.Stack, streams *pipeline.Client) string {
	t.Helper()
	handler := api.New(api.Config{
		Client: client.New(st.Dial(t), st.Namespace), Pipeline: streams, Types: testTypes(), Address: st.Temporal,
		Reads: readmodel.Config{Temporal: temporalclient.Settings{Address: st.Temporal, Namespace: st.Namespace}},
	}).Handler()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// doubles are two namespaces of one server in which the same is done: in the one by commands
// that work in process, in the other by commands with --server.
type doubles struct {
	*testing.T
	here, there   console
	local, remote *stacktest.Stack
	url           string
}

func newDoubles(t *testing.T) *doubles {
	t.Helper()
	w := &doubles{T: t, local: stacktest.StartNamespace(t), remote: stacktest.StartNamespace(t)}
	for _, st := range []*stacktest.Stack{w.local, w.remote} {
		startWorker(t, st)
		c := client.New(st.Dial(t), st.Namespace)
		stacktest.WaitFor(t, "the worker to be listed", func() (bool, error) {
			listed, err := c.Workers.List(t.Context())
			return err == nil && len(listed.Services) > 0, err
		})
	}
	w.url = serve(t, w.remote, connectPipeline(t, w.remote))
	// Times are told from a fixed moment.
	now := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	w.here = console{address: w.local.Temporal, namespace: w.local.Namespace, now: now}
	w.there = console{now: now, env: map[string]string{"DENDRA_SERVER": w.url}}
	return w
}

// forms are the output forms of a command.
var forms = [][]string{nil, {"-o", "json"}}

// What differs between two namespaces: how long an apply took, and what names a live state.
var (
	tookTime = regexp.MustCompile(` in \d[^ ]*s\.\n`)
	etag     = regexp.MustCompile(`"(etag|namespaceId)": "[^"]*"`)
)

// told is what a command gave, without what differs between the namespaces and between two
// runs of a command.
func (w *doubles) told(r result) result {
	namespaces := strings.NewReplacer(w.local.Namespace, "NAMESPACE", w.remote.Namespace, "NAMESPACE")
	r.stdout = tookTime.ReplaceAllString(namespaces.Replace(r.stdout), " in a while.\n")
	r.stdout = etag.ReplaceAllString(r.stdout, `"$1": ""`)
	r.stderr = namespaces.Replace(r.stderr)
	return r
}

// both changes the two namespaces, and wants the same answers.
func (w *doubles) both(code int, args ...string) result {
	w.Helper()
	here, there := w.told(w.here.run(w.Context(), args...)), w.told(w.there.run(w.Context(), args...))
	require.Equal(w, code, here.code, "%v\n%s%s", args, here.stdout, here.stderr)
	require.Equal(w, here.code, there.code, "%v\n%s%s", args, there.stdout, there.stderr)
	require.Equal(w, here.stdout, there.stdout, args)
	require.Equal(w, here.stderr, there.stderr, args)
	return here
}

// reads reads the namespace of the server in both ways and both forms, and wants the same
// bytes. What goes on there may change between the two, so it tries again.
func (w *doubles) reads(code int, args ...string) {
	w.Helper()
	local := w.here
	local.namespace = w.remote.Namespace
	for _, form := range forms {
		var here, there result
		stacktest.WaitFor(w, strings.Join(args, " ")+" to be the same in process and with --server", func() (bool, error) {
			all := append(append([]string{}, args...), form...)
			here, there = local.run(w.Context(), all...), w.there.run(w.Context(), all...)
			if here != there {
				return false, fmt.Errorf("in process:\n%+v\nwith --server:\n%+v", here, there)
			}
			return true, nil
		})
		require.Equal(w, code, there.code, "%v\n%s%s", args, there.stdout, there.stderr)
	}
}

// TestCommandsAreTheSameWithAServer runs the commands for queues, plans and drift in process
// and with --server.
func TestCommandsAreTheSameWithAServer(t *testing.T) {
	t.Parallel()
	w := newDoubles(t)
	sameQueues(w)
	samePlans(w)
	w.reads(0, "validate", writeFile(t, "jobs.toml", declared))
	w.reads(1, "validate", writeFile(t, "jobs.toml", "[jobs.hash_files.x]\none_shot = {}\n"))
}

// sameQueues works with a queue that halts, and with queues that there are not.
func sameQueues(w *doubles) {
	put := func(queue, key, spec string, more ...string) {
		w.both(0, append([]string{"queues", "enqueue", queue, "--type", "TakeSteps", "--key", key, "--spec", spec, "--max-retry-count", "0"}, more...)...)
	}
	w.both(0, "queues", "set", "line", "--on-failure", "halt")
	w.both(0, "queues", "set", "line", "--on-failure", "halt", "-o", "json")
	w.both(0, "queues", "pause", "line", "--reason", "lunch")
	w.both(0, "queues", "pause", "line", "--reason", "tea", "-o", "json")
	put("line", "broken", `{"steps": 1, "fail": true}`)
	var items strings.Builder
	for k := range 120 { // More than one request has.
		fmt.Fprintf(&items, `{"key": "item-%03d", "spec": {"steps": 1}}`+"\n", k)
	}
	w.both(0, "queues", "enqueue", "line", "--type", "TakeSteps", "--file", writeFile(w.T, "items", items.String()))
	put("line", "again", `{"steps": 1}`, "-o", "json")
	for _, form := range forms {
		w.both(0, append([]string{"queues", "move", "line", "take_steps.item-099"}, form...)...)
		w.both(0, append([]string{"queues", "purge", "line", "--from", "40", "--to", "60", "--yes"}, form...)...)
	}
	w.both(0, "queues", "cancel", "line", "take_steps.item-003", "--yes")
	w.both(0, "queues", "cancel", "line", "take_steps.item-004", "-o", "json", "--yes")
	w.both(1, "queues", "cancel", "line", "take_steps.item-004", "--yes")
	w.both(1, "queues", "move", "line", "take_steps.none")
	w.both(1, "queues", "purge", "line")
	w.reads(0, "queues", "describe", "line", "--limit", "5")
	w.reads(0, "queues", "peek", "line", "--from", "3", "--limit", "20")
	w.reads(0, "queues", "peek", "line", "--limit", "0")
	w.both(0, "queues", "resume", "line")
	for _, c := range []console{w.here, w.there} {
		stacktest.WaitFor(w, "the queue to halt", func() (bool, error) {
			return strings.Contains(c.ok(w.T, "queues", "describe", "line"), "\nStatus      halted\n"), nil
		})
	}
	w.reads(0, "queues", "describe", "line")
	w.reads(0, "queues", "list")
	w.both(0, "queues", "skip", "line", "--yes")
	w.both(1, "queues", "skip", "line", "--yes", "-o", "json")
	w.both(0, "queues", "drain", "line", "--yes")
	w.both(1, "queues", "enqueue", "line", "--type", "TakeSteps", "--key", "late", "--spec", `{"steps": 1}`)
	w.both(0, "queues", "resume", "line", "-o", "json")
	w.both(0, "queues", "resume", "line", "-o", "json")
	w.both(0, "queues", "recover", "line")
	w.reads(0, "queues", "dead", "list", "line")
	w.both(1, "queues", "dead", "retry", "line", "take_steps.none")
	w.both(0, "queues", "dead", "retry", "line", "take_steps.broken")
	for _, c := range []console{w.here, w.there} {
		stacktest.WaitFor(w, "the job to fail again", func() (bool, error) {
			return strings.Contains(c.ok(w.T, "queues", "describe", "line"), "\nStatus        halted\n") ||
				strings.Contains(c.ok(w.T, "queues", "describe", "line"), "\nStatus      halted\n"), nil
		})
	}
	w.both(0, "queues", "skip", "line", "--yes")
	w.both(0, "queues", "dead", "drop", "line", "--all", "--yes", "-o", "json")
	for _, st := range []*stacktest.Stack{w.local, w.remote} {
		require.NoError(w, st.Dial(w.T).TerminateWorkflow(w.Context(), contract.QueueWorkflowID("line"), "", "by mistake"))
	}
	w.reads(0, "queues", "describe", "line")
	w.reads(1, "queues", "pause", "line")
	w.both(0, "queues", "recover", "line")
	for _, args := range [][]string{
		{"describe", "none"}, {"peek", "none"}, {"pause", "none"}, {"resume", "none"}, {"skip", "none"}, {"drain", "none"}, {"recover", "none"},
		{"purge", "none", "--yes"}, {"cancel", "none", "a.b"}, {"move", "none", "a.b"}, {"dead", "list", "none"}, {"dead", "drop", "none", "--all", "--yes"},
		{"enqueue", "none", "--job", "take_steps.none"}, {"enqueue", "none", "--type", "TakeSteps", "--spec", `{"step": 1}`},
	} {
		w.reads(1, append([]string{"queues"}, args...)...)
	}
	w.reads(2, "queues", "enqueue", "none", "--type", "Nope", "--spec", `{}`)
}

// samePlans applies a file, a saved plan, and what is refused.
func samePlans(w *doubles) {
	file := writeFile(w.T, "jobs.toml", declared)
	plans := func(code int, args ...string) {
		for _, form := range forms {
			w.both(code, append(append([]string{"plan"}, args...), form...)...)
		}
	}
	w.reads(2, "plan", "-f", file)
	w.both(1, "apply", "-f", file)
	for _, c := range []console{w.here, w.there} { // The order in which changes end differs.
		require.Contains(w, c.ok(w.T, "apply", "-f", file, "--yes"), "Applied: 4 created")
	}
	w.awaitPlan(file, 0)
	plans(0, "-f", file)
	w.both(0, "apply", "-f", file)
	w.both(0, "apply", "-f", file, "-o", "json")
	w.reads(0, "drift")
	var tables strings.Builder
	for _, key := range []string{"once", "often", "always", "in-line"} {
		tables.WriteString(w.there.ok(w.T, "jobs", "describe", "take_steps."+key, "--toml"))
	}
	require.Contains(w, tables.String(), "[jobs.take_steps.often]\nrecurring = { recur_every = \"P1D\" }\n\n[jobs.take_steps.often.spec]\nsteps = 1\n")
	plans(0, "-f", writeFile(w.T, "jobs.toml", tables.String()))

	few := writeFile(w.T, "jobs.toml", strings.Replace(declared[:strings.Index(declared, "[jobs.take_steps.always]")], `"P1D"`, `"PT12H"`, 1))
	w.awaitPlan(few, 2)
	w.reads(2, "plan", "-f", few, "--prune")
	w.both(1, "apply", "-f", few, "--prune", "--yes")
	w.both(1, "plan", "-f", few, "--prune", "--out", filepath.Join(w.TempDir(), "plan"))
	empty := writeFile(w.T, "jobs.toml", "")
	w.both(1, "apply", "-f", empty, "--prune", "--yes")
	w.both(1, "apply", "-f", empty, "--prune", "--yes", "--allow-empty")
	w.both(1, "apply", "-f", writeFile(w.T, "jobs.toml", "[jobs.take_steps.a]\nspec = { step = 1 }\none_shot = {}\n"))
	w.both(1, "plan", "-f", filepath.Join(w.TempDir(), "none.toml"))

	for _, st := range []*stacktest.Stack{w.local, w.remote} {
		_, err := st.Dial(w.T).ExecuteWorkflow(w.Context(), sdk.StartWorkflowOptions{ID: contract.JobWorkflowID("take_steps.taken"), TaskQueue: "others"}, "Others")
		require.NoError(w, err)
	}
	blockedFile := writeFile(w.T, "jobs.toml", declared+"\n[jobs.take_steps.taken]\nspec = { steps = 1 }\none_shot = {}\n")
	plans(2, "-f", blockedFile)
	w.both(1, "apply", "-f", blockedFile, "--yes")

	edited := writeFile(w.T, "jobs.toml", strings.Replace(declared, `"PT1H"`, `"PT2H"`, 1))
	saved := map[string]string{}
	for name, c := range map[string]console{"here": w.here, "there": w.there} {
		saved[name] = filepath.Join(w.TempDir(), "plan")
		require.Equal(w, 2, c.run(w.Context(), "plan", "-f", edited, "--out", saved[name]).code)
		require.Contains(w, c.ok(w.T, "apply", saved[name]), "Applied: 0 created, 1 updated, 0 deleted in ")
		r := c.run(w.Context(), "apply", saved[name])
		require.Equal(w, 1, r.code)
		require.Equal(w, "starter: "+saved[name]+" is not applied: what the plan was made against has changed since: take_steps.always; plan again\n", r.stderr)
	}
	// A plan that was made in process is that of the server.
	near := w.here
	near.namespace = w.remote.Namespace
	again := filepath.Join(w.TempDir(), "plan")
	require.Equal(w, 2, near.run(w.Context(), "plan", "-f", file, "--out", again).code)
	require.Contains(w, w.there.ok(w.T, "apply", again), "Applied: 0 created, 1 updated, 0 deleted in ")

	r := w.there.run(w.Context(), "apply", saved["here"])
	require.Equal(w, fmt.Sprintf("starter: %s is not applied: the plan was made for namespace %q, not %q\n", saved["here"], w.local.Namespace, w.remote.Namespace), r.stderr)
}

// awaitPlan waits until the lists of both namespaces have what was applied.
func (w *doubles) awaitPlan(file string, code int) {
	w.Helper()
	for _, c := range []console{w.here, w.there} {
		stacktest.WaitFor(w, "the plan", func() (bool, error) { return c.run(w.Context(), "plan", "-f", file).code == code, nil })
	}
}

// TestPipelineCommandsAreTheSameWithAServer does so for loads and the quarantine. Both work
// on the same NATS server.
func TestPipelineCommandsAreTheSameWithAServer(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	streams := connectPipeline(t, st)
	now := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	here := console{now: now}
	there := console{now: now, env: map[string]string{"DENDRA_SERVER": serve(t, st, streams)}}
	same := func(code int, args ...string) result {
		t.Helper()
		args = append(args, "--nats", st.NATS)
		local, remote := here.run(t.Context(), args...), there.run(t.Context(), args...)
		require.Equal(t, code, local.code, "%v\n%s%s", args, local.stdout, local.stderr)
		require.Equal(t, local, remote, args)
		return local
	}
	putPoints(t, streams, "samehere", "RefusedPoint", 4)
	putPoints(t, streams, "samethere", "RefusedPoint", 4)
	_, err := streams.Quarantine(t.Context(), []pipeline.Quarantined{{
		Stage: pipeline.StageExtract, Operation: "test", Name: "samehere.csi", Class: "BadRecord", Reason: "no record", Job: "e", Body: []byte("<\x00\xff"),
	}})
	require.NoError(t, err)
	bad := fmt.Sprint(itemsOf(t, here, st, "--organization", "samehere")[0].GetId())
	for _, form := range forms {
		reads := func(code int, args ...string) {
			same(code, append(append([]string{"quarantine"}, args...), form...)...)
		}
		reads(0, "list", "--location", "samehere")
		reads(0, "list", "--location", "samehere", "--limit", "2")
		reads(0, "list", "--location", "samehere", "--oldest-first", "--limit", "3")
		reads(0, "list", "--organization", "samehere", "--summary")
		reads(0, "list", "--location", "nowhere")
		reads(0, "show", bad)
		reads(1, "show", "999999999")
		reads(1, "replay", bad, "--yes")
		reads(1, "replay", "999999999", "--yes")
		reads(1, "drop", bad, "999999999", "--yes")
		reads(0, "replay", "--organization", "samehere", "--yes")
		reads(1, "drop", "--location", "samehere")
		reads(2, "drop")
	}
	same(0, "quarantine", "show", bad, "--body")
	for n, form := range forms {
		verb := []string{"replay", "drop"}[n]
		local := here.run(t.Context(), onNATS(st, append([]string{verb, "--location", "samehere", "--yes"}, form...)...)...)
		remote := there.run(t.Context(), append([]string{"quarantine", verb, "--location", "samethere", "--yes"}, form...)...)
		require.Zero(t, local.code, local.stderr)
		require.Equal(t, number.ReplaceAllString(local.stdout, `"lastId": ""`), number.ReplaceAllString(remote.stdout, `"lastId": ""`))
		require.Equal(t, local.stderr, remote.stderr)
	}
	same(1, "loads", "nowhere")
	same(1, "loads", "skip", "nowhere", "--yes")
	stacktest.WaitFor(t, "the same loads", func() (bool, error) { // Those of other tests are at work.
		for _, form := range forms {
			args := append([]string{"loads", "--nats", st.NATS}, form...)
			if local, remote := here.run(t.Context(), args...), there.run(t.Context(), args...); local != remote || local.code != 0 {
				return false, fmt.Errorf("in process:\n%+v\nwith --server:\n%+v", local, remote)
			}
		}
		return true, nil
	})
}

// TestAlertsAreTheSameWithAServer reads alerts and top from all sources, in a process that has
// just begun and from a server.
func TestAlertsAreTheSameWithAServer(t *testing.T) {
	t.Parallel()
	st, p := stacktest.StartNamespace(t), reconciletest.New(t)
	startWorker(t, st)
	streams := connectPipeline(t, st)
	c := client.New(st.Dial(t), st.Namespace)
	ctx, stop := context.WithCancel(context.Background())
	reader, err := readmodel.New(t.Context(), readmodel.Config{
		Always: true, Temporal: temporalclient.Settings{Address: st.Temporal, Namespace: st.Namespace}, Logger: slog.New(slog.DiscardHandler),
		Pipeline: streams, Platform: p.Client, PlatformURL: p.URL,
	})
	require.NoError(t, err)
	read := make(chan struct{})
	go func() {
		defer close(read)
		_ = reader.Run(ctx) // It ends with the context.
	}()
	t.Cleanup(func() { stop(); <-read })
	server := httptest.NewServer(api.New(api.Config{Client: c, Pipeline: streams, Types: testTypes(), Overview: reader}).Handler())
	t.Cleanup(server.Close)
	now := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	here := console{
		address: st.Temporal, namespace: st.Namespace, now: now, env: map[string]string{platform.EnvURL: p.URL, platform.EnvToken: p.Token},
	}
	there := console{now: now, env: map[string]string{"DENDRA_SERVER": server.URL}}

	p.Enable("alone")
	const name, object = "integration-failing/alone", "alone"
	bucket := alerts.NewBucket(streams)
	_, err = bucket.Put(t.Context(), alerts.Record{
		Name: name, Rule: "integration-failing", Object: object, Phase: alerts.Firing, Since: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC),
	}, 0)
	require.NoError(t, err)
	stacktest.WaitFor(t, "the worker to be listed", func() (bool, error) {
		listed, err := c.Workers.List(t.Context())
		return err == nil && len(listed.Services) > 0, err
	})
	for _, queue := range []string{"alert-a", "alert-b", "alert-c"} {
		here.ok(t, "queues", "set", queue, "--on-failure", "halt")
		here.ok(t, "queues", "enqueue", queue, "--type", "TakeSteps", "--key", queue, "--spec", `{"steps": 1, "fail": true}`, "--max-retry-count", "0")
		stacktest.WaitFor(t, "the queue to halt", func() (bool, error) {
			return strings.Contains(here.ok(t, "queues", "describe", queue), "halted\n"), nil
		})
	}
	same := func(wanted []string, readTime *regexp.Regexp, args ...string) {
		t.Helper()
		stacktest.WaitFor(t, strings.Join(args, " ")+" to be the same in process and with --server", func() (bool, error) {
			local, remote := here.run(t.Context(), append(args, "--nats", st.NATS)...), there.run(t.Context(), args...)
			for _, text := range wanted {
				if !strings.Contains(remote.stdout, text) {
					return false, fmt.Errorf("%q is not in:\n%+v", text, remote)
				}
				require.Contains(t, local.stdout, text, args) // At the first time.
			}
			local.stdout, remote.stdout = readTime.ReplaceAllString(local.stdout, ""), readTime.ReplaceAllString(remote.stdout, "")
			if local != remote {
				return false, fmt.Errorf("in process:\n%+v\nwith --server:\n%+v", local, remote)
			}
			return true, nil
		})
	}
	nothing := regexp.MustCompile(`^$`)
	same([]string{"integration-failing  alone", "2026-02-03 04:05", "queue-halted         alert-a"}, nothing, "alerts", "list")
	same([]string{`"2026-02-03T04:05:06Z"`, `"queue-halted/alert-c"`}, nothing, "alerts", "list", "-o", "json")
	same([]string{"alert-a  halted", "alert-b  halted", "alert-c  halted", "\nINTEGRATIONS\n", "\nalone "}, regexp.MustCompile(`^as of .*|\d+(ms|s) `), "top")

	silence := decoded[map[string]any](t, here, "alerts", "silence", "queue-halted/alert-*", "--for", "PT1H", "--nats", st.NATS)
	require.NotEmpty(t, silence)
	same([]string{"(silenced) Queue alert-a waits"}, regexp.MustCompile(`^as of .*|\d+(ms|s) `), "top")
}

// number is the number of an item in an answer.
var number = regexp.MustCompile(`"lastId": "\d+"`)

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

// TestCommandsWithoutAServer lists the commands that do not work through --server. All
// others call the Job API.
func TestCommandsWithoutAServer(t *testing.T) {
	t.Parallel()
	reasons := map[string]string{
		"schema": "it writes what this program knows", "version": "it tells of this program", "serve": "it is the server",
		"setup": "it makes what the server needs", "doctor": "it looks at the servers themselves",
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(reasons)), cli.OnlyLocal())
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

	withoutNATS := console{address: st.Temporal, namespace: st.Namespace, env: map[string]string{"DENDRA_NATS_REPLICAS": "none"}}
	withoutNATS.ok(t, "jobs", "list")
	refused = withoutNATS.run(t.Context(), "bookmarks", "list", "--nats", "http://"+away)
	require.Equal(t, 1, refused.code)
	require.Contains(t, refused.stderr, "begins with http://: NATS is reached by nats://")
}
