package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/activities/exports"
	"github.com/dendrascience/dendra-jobs/activities/imports"
	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
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

// all are the messages that came.
func (r *receiver) all() []watchdog.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.messages)
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

// TestEndsOfExports: two replicas tell the end of each export and import once, with its link or
// its error. A queue of an organization runs its exports one at a time.
func TestEndsOfExports(t *testing.T) {
	t.Parallel()
	st, hook := stacktest.StartOwn(t), &receiver{}
	var under atomic.Int32
	ends := time.Date(2026, 3, 8, 0, 0, 0, 0, time.UTC)
	workertest.Start(t, st, job.NewType("ExportDatastreams", job.WorkerBackend, "Stands in for exports.",
		func(_ context.Context, _ job.Run, spec exports.Spec) (job.Result, error) {
			defer under.Add(-1)
			if under.Add(1) > 1 {
				return job.Result{}, job.Fail(errclass.ExportRefused, "another export runs")
			}
			if spec.Stations[0] == "ridge" {
				return job.Result{}, job.Fail(errclass.ExportRefused, "ridge has nothing")
			}
			report := exports.Report{Link: "https://store.example.org/links", LinkEnds: ends}
			return job.Result{Message: "5 values in 3 rows", Output: job.EncodeJSON(report)}, nil
		}, job.ModeQueued))
	workertest.Start(t, st, job.NewType("ImportFile", job.WorkerExtract, "Stands in for imports.",
		func(context.Context, job.Run, imports.FileSpec) (job.Result, error) {
			return job.Result{Message: "7 rows of a file", Output: job.EncodeJSON(imports.Report{})}, nil
		}, job.ModeQueued))
	file := writeWatchdog(t, fmt.Sprintf("group_wait = \"PT0S\"\n[receivers.hook]\ntype = \"webhook\"\nurl = %q\nsecret = \"secret://hook\"\n"+
		"rules = [\"run-ended\"]\nowners = [\"organization:demo\"]\n", stacktest.Serve(t, hook)))
	for range 2 {
		stacktest.StartProgram(t, st, stacktest.Program{
			Name: "starter", Args: []string{"serve", "--listen", "127.0.0.1:0", "--watchdog", file},
			Env: []string{"DENDRA_SECRET_HOOK=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
		})
	}
	c := api.NewInProcess(api.Config{Client: client.New(st.Dial(t), st.Namespace), Types: activities.Types()})
	var jobs []*jobsv1.Job
	for _, name := range []string{"angelo", "ridge", "meadow", "dry"} {
		spec, err := structpb.NewStruct(map[string]any{
			"organization": "demo", "stations": []any{name}, "start": "2026-03-01T00:00:00Z", "end": "2026-04-01T00:00:00Z", "location": "lake",
			"dry_run": name == "dry",
		})
		require.NoError(t, err)
		jobs = append(jobs, &jobsv1.Job{
			Id: "export_datastreams." + name, Type: "ExportDatastreams", Spec: spec,
			Mode: &jobsv1.Job_Queued{Queued: &jobsv1.Queued{Queue: "exports-demo"}},
		})
	}
	spec, err := structpb.NewStruct(map[string]any{"organization": "demo", "station": "angelo", "key": "demo/imports/0a/card.dat", "time_zone": "UTC"})
	require.NoError(t, err)
	card := &jobsv1.Job{
		Id: "import_file.card", Type: "ImportFile", Spec: spec, Mode: &jobsv1.Job_Queued{Queued: &jobsv1.Queued{Queue: "imports-demo"}},
	}
	for _, of := range [][]*jobsv1.Job{jobs, {card}} {
		_, err = c.Queues.EnqueueJobs(t.Context(), &jobsv1.EnqueueJobsRequest{Jobs: of})
		require.NoError(t, err)
	}
	stacktest.WaitFor(t, "the ends of three exports and an import", func() (bool, error) { return len(hook.all()) >= 4, nil })
	stacktest.WaitFor(t, "all to be marked as told", func() (bool, error) {
		state, err := alerts.NewBucket(st.Pipeline(t)).Read(t.Context())
		sent := 0
		for _, record := range state.Records {
			if record.Sent {
				sent++
			}
		}
		return sent == 4 && len(state.Records) == 4, err
	})
	texts := map[string]watchdog.Message{}
	for _, m := range hook.all() {
		for _, name := range []string{"angelo", "ridge", "meadow", "dry", "card"} {
			if strings.HasPrefix(m.Text, "Job export_datastreams."+name+" ") || strings.HasPrefix(m.Text, "Job import_file."+name+" ") {
				require.NotContains(t, texts, name, "told once")
				texts[name] = m
			}
		}
	}
	require.Len(t, texts, 4)
	for _, name := range []string{"angelo", "meadow"} {
		require.Regexp(t, "stations "+name+", from 2026-03-01.* to 2026-04-01.* has completed: 5 values in 3 rows; link until 2026-03-08", texts[name].Text)
		require.Equal(t, "https://store.example.org/links", texts[name].Link)
	}
	require.Regexp(t, "stations angelo, .*card.dat.* has completed: 7 rows of a file$", texts["card"].Text)
	require.Contains(t, texts["ridge"].Text, "has failed: ExportRefused: ridge has nothing")
	require.Empty(t, texts["ridge"].Link)
	require.Equal(t, "organization:demo", texts["ridge"].Owner)
}
