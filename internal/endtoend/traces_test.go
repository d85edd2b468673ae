package endtoend_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect/v2/connecthttp"
	"github.com/stretchr/testify/require"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// span is a span as a collector gets it.
type span struct {
	service, name, trace, id, parent string
	attributes                       map[string]string
}

// collector takes traces by OTLP over HTTP.
type collector struct {
	*testing.T
	url string

	mu    sync.Mutex
	spans []span
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{T: t}
	c.url = stacktest.Serve(t, c)
	return c
}

// env turns traces on.
func (c *collector) env() []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.url, "OTEL_BSP_SCHEDULE_DELAY=100"}
}

// ServeHTTP implements http.Handler.
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
		var packed *gzip.Reader
		if packed, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(packed)
		}
	}
	var request collectorpb.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint(r.URL.Path, err), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		service := ""
		for _, a := range resource.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				service = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				found := span{
					service: service, name: s.GetName(), attributes: map[string]string{},
					trace: hex.EncodeToString(s.GetTraceId()), id: hex.EncodeToString(s.GetSpanId()), parent: hex.EncodeToString(s.GetParentSpanId()),
				}
				for _, a := range s.GetAttributes() {
					found.attributes[a.GetKey()] = a.GetValue().GetStringValue()
				}
				c.spans = append(c.spans, found)
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// path is the names of the spans from the root to one with the name, the service of each
// before it; nil if there is none yet, or one above it is missing.
func (c *collector) path(name string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	byID := map[string]span{}
	for _, s := range c.spans {
		byID[s.id] = s
	}
	for _, s := range c.spans {
		if s.name != name {
			continue
		}
		var path []string
		for at, ok := s, true; ok; at, ok = byID[at.parent] {
			path = append(path, at.service+" "+at.name)
			if at.parent == "" {
				slices.Reverse(path)
				return path
			}
		}
	}
	return nil
}

// names are the names of all spans of the trace that a span with the name belongs to.
func (c *collector) names(name string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, s := range c.spans {
		if s.name != name {
			continue
		}
		for _, other := range c.spans {
			if other.trace == s.trace {
				names = append(names, other.name)
			}
		}
	}
	return names
}

// traces are the ids of the traces that spans with the name belong to.
func (c *collector) traces(name string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var traces []string
	for _, s := range c.spans {
		if s.name == name {
			traces = append(traces, s.trace)
		}
	}
	return traces
}

func (c *collector) await(name string, want ...string) {
	c.Helper()
	stacktest.WaitFor(c, "the path to span "+name, func() (bool, error) {
		if got := c.path(name); !slices.Equal(got, want) {
			return false, fmt.Errorf("%q", got)
		}
		return true, nil
	})
}

// TestTraceFromStartToStore follows a photo from the starter to the S3 store, an extraction
// to NATS, and a load to InfluxDB, each in one trace.
func TestTraceFromStartToStore(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t))
	c := newCollector(t)
	l := newLocation(b, "traced", stacktest.Random(t).Uint64())
	b.worker("backend", c.env()...)
	b.worker("extract", append(c.env(), l.secret())...)
	b.worker("load", c.env()...)
	ok := func(args ...string) string {
		t.Helper()
		a := starter(t, append(b.st.Env(), c.env()...), args...)
		require.Zero(t, a.code, a.stderr)
		return a.stdout
	}

	b.upload("traced.jpg", photo(t, stacktest.Random(t)))
	ok("run", "--type", "GeneratePhotoVariantsToMinio", "--key", "traced", "--spec", `{"bucket": "uploads", "key": "traced.jpg"}`)
	run := func(worker, typeName, store string) []string {
		return []string{
			"starter starter run", "starter dendra.jobs.v1.JobService/RunJob", "starter StartWorkflow:RunJob", worker + " RunWorkflow:RunJob",
			worker + " StartActivity:" + typeName, worker + " RunActivity:" + typeName, worker + " " + store,
		}
	}
	c.await("S3 GET", run("dendra-jobs-backend", "GeneratePhotoVariantsToMinio", "S3 GET")...)
	c.await("S3 PUT", run("dendra-jobs-backend", "GeneratePhotoVariantsToMinio", "S3 PUT")...)

	logger := l.vendor.Options().Loggers[0]
	ok("run", "--type", "ExtractHoboTimeFrame", "--key", "traced", "--spec", fmt.Sprintf(
		`{"base_url": %q, "token": "secret://traced", "organization": "ucnrs", "location": "traced", "database": "traced",
		"backfill": "PT2H", "loggers": [{"serial": %q, "station": "s", "measurement": "m"}]}`, l.url, logger))
	c.await("NATS publish", run("dendra-jobs-extract", "ExtractHoboTimeFrame", "NATS publish")...)
	c.await("HOBOlink GET /v1/data", run("dendra-jobs-extract", "ExtractHoboTimeFrame", "HOBOlink GET /v1/data")...)

	jobs := writeFile(t, "jobs.toml", fmt.Sprintf("[jobs.live_load_influx_v1.traced]\ncontinuous = { interval = \"PT0.1S\" }\n"+
		"[jobs.live_load_influx_v1.traced.spec]\nlocation = \"traced\"\ninflux_url = %q\niteration_duration = \"PT1S\"\n", b.st.Influx))
	ok("apply", "-f", jobs, "--yes")
	stacktest.WaitFor(t, "the trace of the load", func() (bool, error) {
		names := c.names("InfluxDB POST /write")
		for _, want := range []string{"starter apply", "StartWorkflow:ContinuousJob", "RunActivity:LiveLoadInfluxV1"} {
			if !slices.Contains(names, want) {
				return false, fmt.Errorf("%q", names)
			}
		}
		return true, nil
	})

	// What is kept of the logs names the trace, and no secret.
	lines := ok("runs", "logs", "extract_hobo_time_frame.traced", "-o", "json")
	require.Regexp(t, `"trace_id":"[0-9a-f]{32}"`, lines)
	require.NotContains(t, lines, l.vendor.Options().Token)
	c.mu.Lock()
	defer c.mu.Unlock()
	require.NotContains(t, fmt.Sprint(c.spans), l.vendor.Options().Token)
	require.False(t, slices.ContainsFunc(c.spans, func(s span) bool { return strings.Contains(s.name, "Query") }))
}

// TestTraceFromTheAPIToTheStore follows a call of the Job API through the workflow and the
// activity that it starts to the S3 store, in one trace.
func TestTraceFromTheAPIToTheStore(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t))
	c := newCollector(t)
	b.worker("backend", c.env()...)
	serving := stacktest.StartProgram(t, b.st, stacktest.Program{Name: "starter", Env: c.env(), Args: []string{"serve", "--listen", "127.0.0.1:0"}})
	serving.WaitOutput("starter: serving http")
	url := regexp.MustCompile(`serving (http://127\.0\.0\.1:\d+)`).FindStringSubmatch(serving.Output())[1]
	clients := api.NewClients(connecthttp.NewTransport(http.DefaultClient, url))

	b.upload("called.jpg", photo(t, stacktest.Random(t)))
	spec, err := structpb.NewStruct(map[string]any{"bucket": "uploads", "key": "called.jpg"})
	require.NoError(t, err)
	_, err = clients.Jobs.CreateJob(t.Context(), &jobsv1.CreateJobRequest{Job: &jobsv1.Job{
		Id: "generate_photo_variants_to_minio.called", Spec: spec, Mode: &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}},
	}})
	require.NoError(t, err)
	worker := "dendra-jobs-backend "
	c.await("S3 PUT", "starter dendra.jobs.v1.JobService/CreateJob", "starter StartWorkflow:RunJob", worker+"RunWorkflow:RunJob",
		worker+"StartActivity:GeneratePhotoVariantsToMinio", worker+"RunActivity:GeneratePhotoVariantsToMinio", worker+"S3 PUT")

	// The log that the API sends is the one of the activity.
	watched, err := clients.Runs.WatchRunLogs(t.Context(), &jobsv1.WatchRunLogsRequest{Name: "job/generate_photo_variants_to_minio.called"})
	require.NoError(t, err)
	defer func() { _ = watched.Close() }()
	var lines []*jobsv1.LogLine
	for {
		next, err := watched.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		lines = append(lines, next.GetLine())
	}
	require.NotEmpty(t, lines)
	require.Equal(t, "attempt began", lines[0].GetMessage())
	require.Equal(t, "attempt ended", lines[len(lines)-1].GetMessage())
	require.Contains(t, c.traces("S3 PUT"), lines[0].GetAttributes().GetFields()["trace_id"].GetStringValue())
	listed, err := clients.Runs.ListRunLogs(t.Context(), &jobsv1.ListRunLogsRequest{Name: "job/generate_photo_variants_to_minio.called"})
	require.NoError(t, err)
	require.Len(t, listed.GetLines(), len(lines))
	for i, line := range listed.GetLines() {
		require.True(t, proto.Equal(lines[i], line), "%v\n%v", lines[i], line)
	}
}

// TestLogsOfARun reads the log of a run with bin/starter, as it comes and afterwards.
func TestLogsOfARun(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t))
	b.worker("backend")
	b.upload("logged.jpg", photo(t, stacktest.Random(t)))
	args := []string{"run", "--type", "GeneratePhotoVariantsToMinio", "--key", "logged", "--spec", `{"bucket": "uploads", "key": "logged.jpg"}`}
	b.ok(append(args, "--detach")...)
	followed := b.ok("runs", "logs", "generate_photo_variants_to_minio.logged", "--follow")
	require.Regexp(t, `(?m)^\S+ \S+ INFO  attempt 1: attempt began$`, followed)
	require.Regexp(t, `(?m)^\S+ \S+ INFO  attempt 1: attempt ended counts=\{.*\} message="4 variants written" outcome=completed$`, followed)
	require.Equal(t, followed, b.ok("runs", "logs", "generate_photo_variants_to_minio.logged"))

	a := b.starter(append(args[:4:4], "missing", "--spec", `{"bucket": "uploads", "key": "missing.jpg"}`)...)
	require.Equal(t, 1, a.code)
	require.Regexp(t, `ERROR attempt 4: attempt ended class=ObjectMissing error=".*missing\.jpg.*" outcome=failed\n$`,
		b.ok("runs", "logs", "generate_photo_variants_to_minio.missing"))

	a = b.starter("runs", "logs", "generate_photo_variants_to_minio.logged", "--nats", "nats://127.0.0.1:1")
	require.Equal(t, 1, a.code)
	require.Regexp(t, `(?m)^starter: the logs of runs are in NATS: nats://127\.0\.0\.1:1 cannot be reached: [^\n]*\n\z`, a.stderr)
	a = b.starter("runs", "logs", "generate_photo_variants_to_minio.never")
	require.Equal(t, 1, a.code)
}
