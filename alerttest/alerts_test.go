package alerttest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workers"
)

// pace is how long a scrape interval takes in the test.
const pace = 100 * time.Millisecond

// site is a stack with a worker of each type, which a prometheus watches.
type site struct {
	*prometheus
	stack    *stacktest.Stack
	control  *client.Client
	pipeline *pipeline.Client
	scraped  time.Time
}

func newSite(t *testing.T) *site {
	t.Helper()
	st := stacktest.StartNamespace(t)
	rules := readRules(t, filepath.Join(stacktest.Root(t), "docs", "alerts.yaml"))
	for i := range rules {
		if rules[i].Alert == "DendraLoadBehind" { // The age of a message is counted in the time of the test.
			require.Contains(t, rules[i].Expr, "> 900")
			rules[i].Expr = strings.Replace(rules[i].Expr, "> 900", "> 3", 1)
		}
	}
	data := st.Pipeline(t)
	return &site{prometheus: newPrometheus(t, rules), stack: st, control: client.New(st.Dial(t), st.Namespace), pipeline: data}
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+/readyz`)

// worker starts bin/NAME, and has it scraped.
func (s *site) worker(name string) *stacktest.Process {
	s.Helper()
	w := stacktest.StartProcess(s, s.stack, name, "--health-address", "127.0.0.1:0")
	w.WaitOutput("msg=serving")
	s.targets[name] = strings.Replace(address.FindString(w.Output()), "readyz", "metrics", 1)
	return w
}

// await scrapes until a rule fires with labels, or fires no more.
func (s *site) await(alert string, of map[string]string, fires bool) {
	s.Helper()
	what := "fire"
	if !fires {
		what = "clear"
	}
	began := time.Now()
	stacktest.WaitFor(s, fmt.Sprintf("%s %v to %s", alert, of, what), func() (bool, error) {
		if time.Since(s.scraped) < pace {
			return false, nil
		}
		s.scraped = time.Now()
		s.scrape()
		if s.fires(alert, of) == fires {
			return true, nil
		}
		return false, fmt.Errorf("firing: %s", s.state())
	})
	s.Logf("%s %v: %s after %s", alert, of, what, time.Since(began).Round(pace))
}

// server is InfluxDB behind a proxy that can be told to refuse everything.
type server struct {
	url  string
	down atomic.Bool
}

func newServer(t *testing.T, influx string) *server {
	t.Helper()
	s := &server{}
	proxy := stacktest.ReverseProxy(t, influx)
	s.url = stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.down.Load() {
			http.Error(w, `{"error":"retention policy not found"}`, http.StatusInternalServerError)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	return s
}

const locationName = "alerting"

func (s *site) publish(bodies ...string) {
	s.Helper()
	messages := make([]pipeline.Outgoing, len(bodies))
	for i, body := range bodies {
		messages[i] = pipeline.Outgoing{Subject: pipeline.PrepSubject(pipeline.OperationLive, locationName), Body: []byte(body)}
	}
	_, err := s.pipeline.Publish(s.Context(), messages)
	require.NoError(s, err)
}

func point(n int) string {
	return fmt.Sprintf(`{"context":{"station":"s"},"payload":{"options":{"database":"alerting"},"points":[{"measurement":"m","fields":{"v":%d},"time":%d}]}}`, n, n)
}

func continuous(typeName string, worker job.WorkerType, spec any) job.Job {
	trigger := job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}
	return job.Job{
		ID: job.ID(typeName, locationName), Type: typeName, Worker: worker, Provider: job.ProviderAPI,
		Spec: job.EncodeJSON(spec), Trigger: trigger, Options: job.DefaultOptions(trigger.Mode()),
	}
}

// TestEachRuleFiresAndClears brings about the fault of each rule, and mends it.
func TestEachRuleFiresAndClears(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	shown := map[string]bool{}
	fires := func(alert string, of map[string]string) {
		t.Helper()
		s.await(alert, of, true)
		shown[alert] = true
	}
	clears := func(alert string, of map[string]string) {
		t.Helper()
		s.await(alert, of, false)
	}
	s.worker("backend")
	extract := s.worker("extract")
	s.worker("load")

	noExtract := map[string]string{"worker_type": "extract"}
	s.await("DendraNoLiveWorker", nil, false)
	extract.Kill()
	fires("DendraNoLiveWorker", noExtract)
	s.worker("extract")
	clears("DendraNoLiveWorker", noExtract)

	influx := newServer(t, s.stack.Influx)
	loader := continuous("LiveLoadInfluxV1", job.WorkerLoad, map[string]any{
		"location": locationName, "influx_url": influx.url, "iteration_duration": "PT1S", "batch_age": "PT0.05S",
	})
	require.NoError(t, s.control.Jobs.StartContinuous(t.Context(), loader))
	mirror := map[string]string{"location": locationName, "mirror": pipeline.DefaultMirror, "operation": "live"}
	jobType := map[string]string{"job_type": loader.Type}
	s.publish(point(1))
	stacktest.WaitFor(t, "the first point to be stored", func() (bool, error) {
		waiting, _, err := s.pipeline.Waiting(t.Context(), pipeline.OperationLive, locationName, pipeline.DefaultMirror)
		return err == nil && waiting == 0, err
	})

	influx.down.Store(true)
	s.publish(point(2), point(3))
	fires("DendraMirrorDown", mirror)
	fires("DendraLoadBehind", mirror)
	fires("DendraJobsFailing", jobType)
	influx.down.Store(false)
	clears("DendraMirrorDown", mirror)
	clears("DendraLoadBehind", mirror)
	clears("DendraJobsFailing", jobType)

	refused := map[string]string{"stage": "load", "class": "BadMessage"}
	s.publish("no message of this system")
	fires("DendraQuarantineGrowing", refused)
	clears("DendraQuarantineGrowing", refused)

	s.stuckHandler(fires, clears)
	s.haltedQueue(fires, clears)
	for _, r := range s.rules {
		require.True(t, shown[r.Alert], "no fault shows rule %s", r.Alert)
	}
}

// stuckHandler runs a handler that ignores the end of its context, in a worker of the
// test's own: no job type of this repository does so.
func (s *site) stuckHandler(fires, clears func(string, map[string]string)) {
	s.Helper()
	gate, began := make(chan struct{}), make(chan struct{}, 1)
	free := sync.OnceFunc(func() { close(gate) })
	stuck := job.NewType("IgnoreContext", "testing", "Ignores its context.",
		func(context.Context, job.Run, struct{}) (job.Result, error) {
			began <- struct{}{}
			<-gate
			return job.Result{}, nil
		})
	output := &stacktest.Output{}
	workertest.Run(s, s.stack, workers.Config{
		Types: []job.Type{stuck}, HealthAddress: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(output, nil)),
	})
	s.Cleanup(free)
	stacktest.WaitFor(s, "the worker to serve", func() (bool, error) { return strings.Contains(output.String(), "msg=serving"), nil })
	s.targets["testing"] = strings.Replace(address.FindString(output.String()), "readyz", "metrics", 1)
	j := continuous(stuck.Name, "testing", struct{}{})
	j.Options.StopGracePeriod = job.Duration(time.Second)
	require.NoError(s, s.control.Jobs.StartContinuous(s.Context(), j))
	<-began
	require.NoError(s, s.control.Jobs.Stop(s.Context(), j.ID, "by test"))
	of := map[string]string{"job_type": stuck.Name}
	fires("DendraHandlerStuck", of)
	free()
	clears("DendraHandlerStuck", of)
}

var serving = regexp.MustCompile(`serving (http://127\.0\.0\.1:\d+)`)

// haltedQueue has a job fail that halts its queue, under the watchdog of a starter serve.
func (s *site) haltedQueue(fires, clears func(string, map[string]string)) {
	s.Helper()
	file := filepath.Join(s.TempDir(), "watchdog.toml")
	require.NoError(s, os.WriteFile(file, []byte("[rules.queue-halted]\nhold = \"PT1S\"\nclear = \"PT10S\"\n"), 0o600))
	serve := stacktest.StartProcess(s, s.stack, "starter", "serve", "--listen", "127.0.0.1:0", "--watchdog", file)
	serve.WaitOutput("starter: serving http")
	s.targets["serve"] = serving.FindStringSubmatch(serve.Output())[1] + "/metrics"

	const queue = "halted"
	trigger := job.Trigger{Queued: &job.Queued{Queue: queue, OnFailure: job.OnFailureHalt}}
	options := job.DefaultOptions(trigger.Mode())
	options.MaxRetryCount = 0
	_, err := s.control.Queues.Enqueue(s.Context(), job.Job{
		ID: job.ID("GeneratePhotoVariantsToMinio", "missing"), Type: "GeneratePhotoVariantsToMinio", Worker: job.WorkerBackend,
		Provider: job.ProviderAPI, Spec: job.EncodeJSON(map[string]any{"bucket": "uploads", "key": "missing.jpg"}),
		Trigger: trigger, Options: options,
	}, client.EnqueueOptions{})
	require.NoError(s, err)
	of := map[string]string{"rule": "queue-halted"}
	fires("DendraAlertFires", of)
	_, err = s.control.Queues.SkipFailed(s.Context(), queue)
	require.NoError(s, err)
	clears("DendraAlertFires", of)
}

// TestDashboardShowsMetricsThatThereAre evaluates the expressions of the dashboard.
func TestDashboardShowsMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile("../docs/grafana/dendra-jobs.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &dashboard))
	p := newPrometheus(t, nil)
	variables := strings.NewReplacer("$__rate_interval", "5m", "$job_type", ".*", "$location", ".*")
	count := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			count++
			p.evaluate(rule{Alert: panel.Title, Expr: variables.Replace(target.Expr), For: "0m"})
		}
	}
	require.Greater(t, count, 20)
}
