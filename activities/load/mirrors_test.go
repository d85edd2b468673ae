package load_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/load"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// west adds a mirror to the default one: another database of the same server,
// behind a proxy of its own.
func (b *bench) west(t *testing.T) *proxy {
	t.Helper()
	p := newProxy(t, b.influx.URL)
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	b.spec.Mirrors = []load.InfluxMirror{{Name: "west", InfluxURL: server.URL, Database: b.name + "_west"}}
	return p
}

func (b *bench) consumerOf(t *testing.T, mirror string) *jetstream.ConsumerInfo {
	t.Helper()
	consumer, err := b.client.JetStream().Consumer(t.Context(), pipeline.StreamPrepared, pipeline.LoadConsumer(pipeline.OperationLive, b.name, mirror))
	require.NoError(t, err)
	return consumer.CachedInfo()
}

func (b *bench) countIn(t *testing.T, database, source string) int64 {
	t.Helper()
	rows, err := influx.Query(t.Context(), b.influx, database, "SELECT COUNT(v) FROM "+source)
	require.NoError(t, err)
	if len(rows) == 0 {
		return 0
	}
	number, ok := rows[0].Values[0][1].(json.Number)
	require.True(t, ok)
	n, err := number.Int64()
	require.NoError(t, err)
	return n
}

// log is what a loader writes to its log.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *log) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// TestMirrorWithoutItsRetentionPolicy: one of two mirrors lacks the policy that the
// messages name, until someone makes it.
func TestMirrorWithoutItsRetentionPolicy(t *testing.T) {
	b := newBench(t, "lacks", stacktest.Start(t))
	west := b.west(t)
	query := func(database, text string) {
		t.Helper()
		_, err := influx.Query(t.Context(), b.influx, database, text)
		require.NoError(t, err)
	}
	for _, database := range []string{"lacks", "lacks_west"} {
		query("", "CREATE DATABASE "+database)
	}
	query("", "CREATE RETENTION POLICY keep ON lacks DURATION INF REPLICATION 1")
	var bodies []string
	for i := range 300 {
		bodies = append(bodies, strings.Replace(b.message(i, fmt.Sprintf(`{"v":%d}`, i)), `"precision":"ms"`, `"precision":"ms","retentionPolicy":"keep"`, 1))
	}
	b.publish(t, bodies...)

	said := &log{}
	lap := func() (job.Result, error) {
		return b.jobType.Handle(t.Context(), b.newRun(jobtest.WithLogger(slog.New(slog.NewTextHandler(said, nil)))))
	}
	result, err := lap()
	require.NoError(t, err, "one mirror can go on")
	require.EqualValues(t, 300, b.countIn(t, "lacks", `"keep"."m"`))
	require.Zero(t, b.consumer(t).NumAckPending)
	state := b.state(t, "west")
	require.NotEqual(t, pipeline.BreakerClosed, state.Breaker.State)
	require.Equal(t, load.ClassConfig, state.Breaker.Class)
	require.Contains(t, state.Breaker.Reason, "retention policy not found")
	require.Contains(t, result.Message, "mirror west is down since ")
	require.EqualValues(t, 1, result.Counts["mirrors_down"])
	require.Equal(t, pipeline.BreakerClosed, b.state(t, pipeline.DefaultMirror).Breaker.State)
	// It opened with the first write; what came after were tries.
	require.EqualValues(t, state.Breaker.Failures, west.writes.Load())

	_, err = lap()
	require.NoError(t, err)
	again := b.state(t, "west")
	require.Greater(t, again.Breaker.Failures, state.Breaker.Failures, "goes on from where it was")
	require.Equal(t, state.Breaker.Since, again.Breaker.Since)
	require.Equal(t, 1, said.count("a mirror is down"), "told once")
	require.Zero(t, b.consumerOf(t, "west").AckFloor.Stream, "nothing is acknowledged")
	loads, err := b.client.Loads(t.Context())
	require.NoError(t, err)
	found := 0
	for _, l := range loads {
		if l.Location == "lacks" && l.Mirror == "west" {
			found++
			require.EqualValues(t, 300, l.Waiting)
			require.False(t, l.Oldest.IsZero())
			require.Equal(t, again.Breaker.Since, l.Breaker.Since)
		}
	}
	require.Equal(t, 1, found)

	query("", "CREATE RETENTION POLICY keep ON lacks_west DURATION INF REPLICATION 1")
	stacktest.WaitFor(t, "the mirror to have all", func() (bool, error) {
		_, err := lap()
		info := b.consumerOf(t, "west")
		return info.NumPending == 0 && info.NumAckPending == 0, err
	})
	require.EqualValues(t, 300, b.countIn(t, "lacks_west", `"keep"."m"`))
	require.Equal(t, pipeline.BreakerClosed, b.state(t, "west").Breaker.State)
	require.Equal(t, 1, said.count("a mirror is back"))
	require.Empty(t, b.quarantine(t))
}

// TestEveryTroubleInTurn: no credentials, then a limit on bodies, then a server that
// asks to be left alone for a second.
func TestEveryTroubleInTurn(t *testing.T) {
	b := newBench(t, "troubles", stacktest.Start(t))
	b.publishNumbers(t, 0, 500)
	b.proxy.onWrite(answer(http.StatusUnauthorized, "authorization failed"))
	for range 3 {
		_, err := b.lap(t)
		require.Equal(t, load.ClassConfig, failureOf(t, err).Class)
	}
	require.Zero(t, b.consumer(t).AckFloor.Stream)

	var refused atomic.Int64
	b.proxy.onWrite(func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		if len(body) <= 5000 {
			return false
		}
		refused.Add(1)
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return true
	})
	b.drain(t)
	require.EqualValues(t, 500, b.count(t, "v"))
	require.Positive(t, refused.Load())
	ceiling := b.state(t, pipeline.DefaultMirror).MaxBytes
	require.LessOrEqual(t, ceiling, 5000)
	refused.Store(0)
	b.publishNumbers(t, 500, 1500)
	b.drain(t)
	require.EqualValues(t, 1500, b.count(t, "v"))
	require.Zero(t, refused.Load(), "writes have stayed small in later laps")
	require.Equal(t, ceiling, b.state(t, pipeline.DefaultMirror).MaxBytes)

	b.publishNumbers(t, 1500, 2000)
	b.proxy.onWrite(answer(http.StatusServiceUnavailable, "busy", "Retry-After", "1"))
	b.proxy.writes.Store(0)
	_, err := b.lap(t)
	require.Equal(t, load.ClassUnreachable, failureOf(t, err).Class)
	require.EqualValues(t, 1, b.proxy.writes.Load(), "left alone at once")
	breaker := b.state(t, pipeline.DefaultMirror).Breaker
	require.GreaterOrEqual(t, breaker.RetryAt.Sub(breaker.FailedAt), time.Second)
	require.LessOrEqual(t, breaker.RetryAt.Sub(breaker.FailedAt), 1100*time.Millisecond)
	b.proxy.onWrite(nil)
	first := time.Time{}
	b.proxy.afterWrite(func() {
		if first.IsZero() {
			first = time.Now()
		}
	})
	b.drain(t)
	require.False(t, first.Before(breaker.RetryAt), "not before it wanted to be asked again")
	require.EqualValues(t, 2000, b.count(t, "v"))
	require.Empty(t, b.quarantine(t))
}

// TestStalledMirrorHoldsUpNobody: a mirror does not answer, with 20,000 messages
// waiting. The other one gets all of them and those that come after, also beyond
// the end of the lap, and the worker holds only a few for the stalled one.
func TestStalledMirrorHoldsUpNobody(t *testing.T) {
	b := newBench(t, "stalls", stacktest.Start(t))
	west := b.west(t)
	b.spec.BatchPoints = 500
	b.publishNumbers(t, 0, 20_000)
	release := make(chan struct{})
	stalled := make(chan struct{})
	once := sync.OnceFunc(func() { close(stalled) })
	west.onWrite(func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		once()
		select {
		case <-release:
		case <-r.Context().Done():
			return true
		}
		return false
	})
	ended := make(chan error, 1)
	run := b.newRun()
	go func() {
		_, err := b.jobType.Handle(t.Context(), run)
		ended <- err
	}()
	<-stalled
	loaded := func(n int64) {
		stacktest.WaitFor(t, fmt.Sprintf("%d points in the fast mirror", n), func() (bool, error) {
			info := b.consumer(t)
			return info.NumPending == 0 && info.NumAckPending == 0 && b.count(t, "v") == n, nil
		})
	}
	loaded(20_000)
	for i := range 3 {
		b.publishNumbers(t, 20_000+100*i, 20_100+100*i)
		loaded(int64(20_100 + 100*i))
	}
	// One batch that is written, one that is filled, and two fetches.
	require.LessOrEqual(t, b.consumerOf(t, "west").NumAckPending, 4*500)
	require.Empty(t, ended, "the lap waits for the write in hand")
	run.Stop()
	close(release)
	require.NoError(t, <-ended)
	stacktest.WaitFor(t, "the stalled mirror to have all", func() (bool, error) {
		_, err := b.lap(t)
		return b.countIn(t, "stalls_west", "m") == 20_300, err
	})
}

// TestNamedLinesAreTakenOutAtOnce: the server's own words, as InfluxDB 1.8 writes
// them, say which lines it cannot read.
func TestNamedLinesAreTakenOutAtOnce(t *testing.T) {
	b := newBench(t, "named", stacktest.Start(t))
	b.publish(t, b.message(-1, `{"v":0}`))
	b.drain(t)
	b.proxy.writes.Store(0)
	b.proxy.onWrite(func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		var complaints []string
		for line := range strings.Lines(string(body)) {
			if strings.Contains(line, "v=13 ") || strings.Contains(line, `"it's ': odd"`) {
				complaints = append(complaints, fmt.Sprintf("unable to parse '%s': bad timestamp", strings.TrimSpace(line)))
			}
		}
		return len(complaints) > 0 && answer(http.StatusBadRequest, "partial write: "+strings.Join(complaints, "\n")+" dropped=0")(w, r, body)
	})
	bodies := make([]string, 1000)
	for i := range bodies {
		bodies[i] = b.message(i, fmt.Sprintf(`{"v":%d}`, i))
	}
	bodies[700] = b.message(700, `{"s":"it's ': odd"}`)
	b.publish(t, bodies...)
	counts := b.drain(t)
	require.EqualValues(t, 998, counts["points"])
	require.EqualValues(t, 2, counts["quarantined"])
	require.LessOrEqual(t, b.proxy.writes.Load(), int64(4))
	reasons := ""
	for _, message := range b.quarantine(t) {
		require.Equal(t, load.ClassRefusedPoint, message.Headers().Get(pipeline.HeaderClass))
		reasons += message.Headers().Get(pipeline.HeaderReason) + "\n"
	}
	require.Contains(t, reasons, fmt.Sprintf("unable to parse 'm v=13 %d': bad timestamp\n", noon.UnixMilli()+13))
	require.Contains(t, reasons, fmt.Sprintf(`unable to parse 'm s="it's ': odd" %d': bad timestamp`, noon.UnixMilli()+700))
}

// TestGzip writes compressed to the real server.
func TestGzip(t *testing.T) {
	b := newBench(t, "packed", stacktest.Start(t))
	b.spec.Gzip = load.GzipAlways
	b.publishNumbers(t, 0, 1000)
	packed := 0
	b.proxy.onWrite(func(_ http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.Header.Get("Content-Encoding") == "gzip" && len(body) < 1000*10 {
			packed++
		}
		return false
	})
	b.drain(t)
	require.Positive(t, packed)
	require.EqualValues(t, 1000, b.count(t, "v"))
}

// TestStackDiesDuringLoad kills NATS and InfluxDB while points are loaded.
func TestStackDiesDuringLoad(t *testing.T) {
	st := stacktest.StartOwn(t)
	b := newBench(t, "dies", st)
	// Made before the first write: while it is missing, the server answers without
	// reading what is sent, and the proxy may cut that answer.
	writer, err := influx.NewWriter(b.influx)
	require.NoError(t, err)
	require.NoError(t, writer.CreateDatabase(t.Context(), b.name))
	_, err = b.lap(t)
	require.NoError(t, err)
	before := runtime.NumGoroutine()
	b.publishNumbers(t, 0, 2000)
	b.spec.BatchPoints = 100
	b.spec.Lap = job.Duration(time.Minute)
	run := b.newRun(jobtest.OnCheckpoint(func(r *jobtest.Run, _ jobtest.Checkpoint) {
		if len(r.Checkpoints()) == 3 {
			st.Kill()
		}
	}))
	_, err = b.jobType.Handle(t.Context(), run)
	require.False(t, failureOf(t, err).Final)
	_, err = b.lap(t)
	require.Equal(t, pipeline.ClassUnreachable, failureOf(t, err).Class)
	require.ErrorContains(t, err, st.NATS)

	st.Restart(t)
	b.spec.Lap = job.Duration(time.Second)
	b.drain(t)
	require.EqualValues(t, 2000, b.count(t, "v"))
	// Those of a connection that InfluxDB may keep, and no more.
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	stacktest.WaitFor(t, "the goroutines to be as many as before", func() (bool, error) {
		return runtime.NumGoroutine() <= before+4, nil
	})
}

// TestTwoJobsOfALocation: the second one is refused until the first has told
// nothing for a while, and the first gets every message.
func TestTwoJobsOfALocation(t *testing.T) {
	b := newBench(t, "twojobs", stacktest.Start(t))
	other := *b
	other.spec.Database = "twojobs_copy"
	second := func() (job.Result, error) {
		definition := jobtest.NewJob(b.jobType, "second", job.Schedule{Continuous: &job.Continuous{Interval: job.MinInterval}}, other.spec)
		return b.jobType.Handle(t.Context(), jobtest.NewRun(definition))
	}
	b.publishNumbers(t, 0, 10)
	var refused error
	refuse := sync.OnceFunc(func() { _, refused = second() })
	b.proxy.onWrite(func(http.ResponseWriter, *http.Request, []byte) bool {
		refuse()
		return false
	})
	b.drain(t)
	failure := failureOf(t, refused)
	require.Equal(t, load.ClassTwoLoaders, failure.Class)
	require.False(t, failure.Final)
	require.Positive(t, failure.RetryAfter)
	first := b.state(t, pipeline.DefaultMirror)
	require.ErrorContains(t, refused, "job live_load_influx_v1.second does not load location twojobs")
	require.ErrorContains(t, refused, "since job "+first.Job+" does")
	require.EqualValues(t, 10, b.count(t, "v"))

	claimed, err := b.client.ClaimLoad(t.Context(), pipeline.LoadState{Operation: first.Operation, Location: first.Location, Mirror: first.Mirror})
	require.NoError(t, err)
	require.False(t, claimed, "another has written since")
	first.UpdatedAt = first.UpdatedAt.Add(-time.Minute)
	require.NoError(t, b.client.PutLoadState(t.Context(), first))
	b.publishNumbers(t, 10, 20)
	stacktest.WaitFor(t, "the second job to take over", func() (bool, error) {
		_, err := second()
		undelivered, unanswered := b.waiting(t)
		return undelivered == 0 && unanswered == 0, err
	})
	require.EqualValues(t, 10, b.countIn(t, "twojobs_copy", "m"))
	require.Equal(t, "live_load_influx_v1.second", b.state(t, pipeline.DefaultMirror).Job)
}

// TestSecretOfOneMirror: a worker that has not the secret of one of two mirrors
// loads the other one.
func TestSecretOfOneMirror(t *testing.T) {
	b := newBench(t, "onesecret", stacktest.Start(t))
	b.west(t)
	b.spec.Mirrors[0].Username, b.spec.Mirrors[0].Password = "loader", "secret://west"
	b.publishNumbers(t, 0, 10)
	b.drain(t)
	require.EqualValues(t, 10, b.count(t, "v"))
	breaker := b.state(t, "west").Breaker
	require.Equal(t, load.ClassConfig, breaker.Class)
	require.Contains(t, breaker.Reason, "secret://west")
	require.Zero(t, b.consumerOf(t, "west").AckFloor.Stream)

	secrets := jobtest.WithSecrets(map[job.SecretRef]string{"secret://west": "password"})
	stacktest.WaitFor(t, "the mirror to have all", func() (bool, error) {
		_, err := b.jobType.Handle(t.Context(), b.newRun(secrets))
		return b.countIn(t, "onesecret_west", "m") == 10, err
	})

	b.spec.InfluxURL = "" // and it is the only one
	_, err := b.lap(t)
	require.Equal(t, load.ClassConfig, failureOf(t, err).Class)
	require.ErrorContains(t, err, "secret://west")
}
