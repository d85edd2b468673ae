package load_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/load"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/pipeline/pipelinetest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// bench is a location: its stream of prepared messages, its loader, and the real
// InfluxDB behind a proxy that a test can make fail.
type bench struct {
	client  *pipeline.Client
	jobType job.Type
	spec    load.LiveInfluxSpec
	proxy   *proxy
	influx  influx.Config
	name    string
}

func newBench(t *testing.T, name string, st *stacktest.Stack) *bench {
	t.Helper()
	client := st.Pipeline(t)
	p := newProxy(t, st.Influx)
	server := stacktest.Serve(t, p)
	return &bench{
		client: client, name: name, proxy: p, influx: influx.Config{URL: st.Influx},
		jobType: load.LiveInflux(client, load.WithBackoff(5*time.Millisecond, 50*time.Millisecond)),
		spec: load.LiveInfluxSpec{
			Servers:  influx.Servers{Location: name, InfluxURL: server},
			BatchAge: job.Duration(50 * time.Millisecond), IterationDuration: job.Duration(200 * time.Millisecond),
		},
	}
}

func (b *bench) newRun(options ...jobtest.Option) *jobtest.Run {
	definition := jobtest.NewJob(b.jobType, b.name, job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, b.spec)
	return jobtest.NewRun(definition, options...)
}

// iteration runs one iteration.
func (b *bench) iteration(t *testing.T) (job.Result, error) {
	t.Helper()
	return b.jobType.Handle(t.Context(), b.newRun())
}

// drain runs iterations until nothing is left, and sums their counts up.
func (b *bench) drain(t *testing.T) map[string]int64 {
	t.Helper()
	sums := map[string]int64{}
	stacktest.WaitFor(t, "the stream of "+b.name+" to be loaded", func() (bool, error) {
		result, err := b.iteration(t)
		for name, n := range result.Counts {
			sums[name] += n
		}
		if err != nil {
			return false, err
		}
		return b.loaded(t, pipeline.DefaultMirror), nil
	})
	return sums
}

// oneBatch runs one iteration that takes n points as one batch, however long they
// take to come, and ends when they are done with. It takes no more than a thousand
// messages at a time, and waits for as many.
func (b *bench) oneBatch(t *testing.T, n int) map[string]int64 {
	t.Helper()
	defer func(spec load.LiveInfluxSpec) { b.spec = spec }(b.spec)
	b.spec.BatchPoints, b.spec.BatchAge, b.spec.IterationDuration = n, job.Duration(30*time.Second), job.Duration(time.Hour)
	result, err := b.jobType.Handle(t.Context(), b.newRun(jobtest.OnCheckpoint(func(r *jobtest.Run, _ jobtest.Checkpoint) { r.Stop() })))
	require.NoError(t, err)
	return result.Counts
}

// loaded reports whether a mirror's consumer has acknowledged the last message of the
// location.
func (b *bench) loaded(t *testing.T, mirror string) bool {
	t.Helper()
	position, err := stacktest.PositionOf(t.Context(), b.client.JetStream(), pipeline.StreamPrepared,
		pipeline.LoadConsumer(pipeline.OperationLive, b.name, mirror))
	require.NoError(t, err)
	return position.Done()
}

func (b *bench) consumer(t *testing.T) *jetstream.ConsumerInfo {
	t.Helper()
	return b.consumerOf(t, pipeline.DefaultMirror)
}

func (b *bench) consumerOf(t *testing.T, mirror string) *jetstream.ConsumerInfo {
	t.Helper()
	consumer, err := b.client.JetStream().Consumer(t.Context(), pipeline.StreamPrepared, pipeline.LoadConsumer(pipeline.OperationLive, b.name, mirror))
	require.NoError(t, err)
	return consumer.CachedInfo()
}

// state is what the loader tells of a mirror.
func (b *bench) state(t *testing.T, mirror string) pipeline.LoadState {
	t.Helper()
	state, err := b.client.LoadState(t.Context(), pipeline.OperationLive, b.name, mirror)
	require.NoError(t, err)
	return state
}

// forget removes what was said of the default mirror, as if it had never failed.
func (b *bench) forget(t *testing.T) {
	t.Helper()
	bucket, err := b.client.JetStream().KeyValue(t.Context(), pipeline.BucketLoads)
	require.NoError(t, err)
	require.NoError(t, bucket.Delete(t.Context(), pipeline.LoadConsumer(pipeline.OperationLive, b.name, pipeline.DefaultMirror)))
}

func (b *bench) subject() string { return pipeline.PrepSubject(pipeline.OperationLive, b.name) }

func (b *bench) publish(t *testing.T, bodies ...string) {
	t.Helper()
	messages := make([]pipeline.Outgoing, len(bodies))
	for i, body := range bodies {
		messages[i] = pipeline.Outgoing{Subject: b.subject(), Body: []byte(body)}
	}
	published, err := b.client.Publish(t.Context(), messages)
	require.NoError(t, err)
	require.EqualValues(t, len(bodies), published.Stored)
}

// message is a prepared message of one point.
func (b *bench) message(i int, fields string) string {
	return fmt.Sprintf(`{"context":{"imported_at":"2026-03-04T12:00:00Z","org_slug":"org","station":"s"},`+
		`"payload":{"options":{"database":%q,"precision":"ms"},"points":[{"measurement":"m","fields":%s,"time":%d}]}}`,
		b.name, fields, noon.UnixMilli()+int64(i))
}

func (b *bench) publishNumbers(t *testing.T, from, to int) {
	t.Helper()
	var bodies []string
	for i := from; i < to; i++ {
		bodies = append(bodies, b.message(i, fmt.Sprintf(`{"v":%d}`, i)))
	}
	b.publish(t, bodies...)
}

func (b *bench) count(t *testing.T, field string) int64 {
	t.Helper()
	counts, err := influx.Count(t.Context(), b.influx, b.name, "m", field)
	require.NoError(t, err)
	return counts[field]
}

func (b *bench) quarantine(t *testing.T) []jetstream.Msg {
	t.Helper()
	return pipelinetest.Messages(t, b.client, pipeline.StreamQuarantine, "dendra.quarantine.v1.load.live."+b.name+".>")
}

// proxy stands before InfluxDB, counts writes, and can answer in its place.
type proxy struct {
	upstream http.Handler
	writes   atomic.Int64

	mu        sync.Mutex
	intercept func(w http.ResponseWriter, r *http.Request, body []byte) bool
	after     func()
}

func newProxy(t *testing.T, upstream string) *proxy {
	t.Helper()
	return &proxy{upstream: stacktest.ReverseProxy(t, upstream)}
}

// onWrite sets what answers writes: a function that returns true has answered.
func (p *proxy) onWrite(intercept func(w http.ResponseWriter, r *http.Request, body []byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.intercept = intercept
}

// afterWrite sets what is called when InfluxDB has answered a write, before the
// loader hears of it.
func (p *proxy) afterWrite(after func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = after
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	intercept, after := p.intercept, p.after
	p.mu.Unlock()
	if r.URL.Path == "/write" {
		p.writes.Add(1)
		if intercept != nil {
			body, err := io.ReadAll(r.Body)
			if err != nil || intercept(w, r, body) {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		if after != nil {
			recorder := httptest.NewRecorder()
			p.upstream.ServeHTTP(recorder, r)
			after()
			w.WriteHeader(recorder.Code)
			_, _ = w.Write(recorder.Body.Bytes())
			return
		}
	}
	p.upstream.ServeHTTP(w, r)
}

// answer makes an intercept that answers every write the same.
func answer(status int, text string, headers ...string) func(http.ResponseWriter, *http.Request, []byte) bool {
	return func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"error":%q}`, text)
		return true
	}
}
