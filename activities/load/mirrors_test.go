package load_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// west adds a mirror to the default one: another database of the same server,
// behind a proxy of its own.
func (b *bench) west(t *testing.T) *proxy {
	t.Helper()
	p := newProxy(t, b.influx.URL)
	server := stacktest.Serve(t, p)
	b.spec.Mirrors = []influx.Mirror{{Name: "west", InfluxURL: server, Database: b.name + "_west"}}
	return p
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
type log struct{ stacktest.Output }

func (l *log) count(text string) int { return strings.Count(l.String(), text) }

// TestMirrorWithoutADefaultPolicy: in one of two mirrors the database has lost its
// retention policy, until someone makes it anew. The other one gets everything.
func TestMirrorWithoutADefaultPolicy(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	b := newBench(t, "lacks", stacktest.Start(t))
	proxies := map[string]*proxy{pipeline.DefaultMirror: b.proxy, "west": b.west(t)}
	databases := map[string]string{pipeline.DefaultMirror: "lacks", "west": "lacks_west"}
	mirrors := []string{pipeline.DefaultMirror, "west"}
	random.Shuffle(2, func(i, j int) { mirrors[i], mirrors[j] = mirrors[j], mirrors[i] })
	lacking, other := mirrors[0], mirrors[1]
	n := int64(100 + random.IntN(400))
	tries := 2 + random.IntN(20)
	t.Logf("mirror %s lacks the policy for %d messages until it has failed %d times", lacking, n, tries)
	query := func(database, text string) {
		t.Helper()
		_, err := influx.Query(t.Context(), b.influx, database, text)
		require.NoError(t, err)
	}
	for _, database := range databases {
		query("", "CREATE DATABASE "+database+" WITH NAME keep")
	}
	query("", "DROP RETENTION POLICY keep ON "+databases[lacking])
	b.publishNumbers(t, 0, int(n))

	said := &log{}
	iteration := func() job.Result {
		t.Helper()
		result, err := b.jobType.Handle(t.Context(), b.newRun(jobtest.WithLogger(slog.New(slog.NewTextHandler(said, nil)))))
		require.NoError(t, err, "one mirror can go on")
		return result
	}
	var result job.Result
	stacktest.WaitFor(t, "the other mirror to have all, and this one to fail", func() (bool, error) {
		result = iteration()
		return b.loaded(t, other) && b.state(t, lacking).Breaker.State != pipeline.BreakerClosed, nil
	})
	require.EqualValues(t, n, b.countIn(t, databases[other], `"keep"."m"`))
	state := b.state(t, lacking)
	require.NotEqual(t, pipeline.BreakerClosed, state.Breaker.State)
	require.Equal(t, errclass.InfluxConfig, state.Breaker.Class)
	require.Contains(t, state.Breaker.Reason, "retention policy not found")
	require.NotNil(t, state.Breaker.Held)
	require.Equal(t, b.subject(), state.Breaker.Held.Subject)
	require.Contains(t, result.Message, "mirror "+lacking+" is down since ")
	require.EqualValues(t, 1, result.Counts["mirrors_down"])
	require.Equal(t, pipeline.BreakerClosed, b.state(t, other).Breaker.State)
	// It opened with the first write; what came after were tries.
	require.EqualValues(t, state.Breaker.Failures, proxies[lacking].writes.Load())

	var again pipeline.LoadState
	stacktest.WaitFor(t, "more tries", func() (bool, error) {
		iteration()
		again = b.state(t, lacking)
		return again.Breaker.Failures > state.Breaker.Failures && again.Breaker.Failures >= tries, nil
	})
	require.EqualValues(t, again.Breaker.Failures, proxies[lacking].writes.Load(), "goes on from where it was")
	require.Equal(t, state.Breaker.Since, again.Breaker.Since)
	require.Equal(t, 1, said.count("a mirror is down"), "told once")
	require.Zero(t, b.consumerOf(t, lacking).AckFloor.Stream, "nothing is acknowledged")
	loads, err := b.client.Loads(t.Context())
	require.NoError(t, err)
	found := 0
	for _, l := range loads {
		if l.Location == "lacks" && l.Mirror == lacking {
			found++
			require.EqualValues(t, n, l.Waiting)
			require.False(t, l.Oldest.IsZero())
			require.Equal(t, again.Breaker.Since, l.Breaker.Since)
			require.Equal(t, l.Oldest, l.Breaker.Held.Time, "the first that waits")
		}
	}
	require.Equal(t, 1, found)

	query("", "CREATE RETENTION POLICY keep ON "+databases[lacking]+" DURATION INF REPLICATION 1 DEFAULT")
	stacktest.WaitFor(t, "the mirror to have all", func() (bool, error) {
		iteration()
		return b.loaded(t, lacking), nil
	})
	require.EqualValues(t, n, b.countIn(t, databases[lacking], `"keep"."m"`))
	require.Equal(t, pipeline.BreakerClosed, b.state(t, lacking).Breaker.State)
	require.Equal(t, 1, said.count("a mirror is back"))
	require.Empty(t, b.quarantine(t))
}

// TestEveryTroubleInTurn: credentials that are refused for as many tries as ten
// minutes have, a limit on bodies, and a server that asks to be left alone for a
// while, in any order.
func TestEveryTroubleInTurn(t *testing.T) {
	t.Parallel()
	b := newBench(t, "troubles", stacktest.Start(t))
	random := stacktest.Random(t)
	published := 0
	publish := func(n int) {
		t.Helper()
		b.publishNumbers(t, published, published+n)
		published += n
	}
	publish(1 + random.IntN(50))
	b.drain(t) // makes the database
	troubles := []func(){
		func() { b.credentialsAreRefused(t, random, publish) },
		func() { b.bodiesAreTooLarge(t, random, publish) },
		func() { b.isAskedToWait(t, random, publish) },
	}
	usual := b.spec
	for _, n := range random.Perm(len(troubles)) {
		b.spec.IterationDuration = job.Duration(time.Minute) // which ends when the mirror is down
		troubles[n]()
		b.spec = usual
		b.proxy.onWrite(nil)
		b.drain(t)
		require.EqualValues(t, published, b.count(t, "v"))
		require.Equal(t, pipeline.BreakerClosed, b.state(t, pipeline.DefaultMirror).Breaker.State)
	}
	require.Empty(t, b.quarantine(t))
}

func (b *bench) credentialsAreRefused(t *testing.T, random *rand.Rand, publish func(int)) {
	// A worker's waits grow up to half a minute: a quarter each on average, and a few
	// shorter ones first.
	const tenMinutes = 30
	status := []int{http.StatusUnauthorized, http.StatusForbidden}[random.IntN(2)]
	t.Logf("%d", status)
	floor := b.consumer(t).AckFloor.Stream
	publish(1 + random.IntN(500))
	b.proxy.onWrite(answer(status, "authorization failed"))
	b.proxy.writes.Store(0)
	stacktest.WaitFor(t, "the tries of ten minutes", func() (bool, error) {
		_, err := b.iteration(t)
		failure := jobtest.FailureOf(t, err)
		require.Equal(t, errclass.InfluxConfig, failure.Class)
		require.False(t, failure.Kind.Final())
		return b.proxy.writes.Load() >= tenMinutes, nil
	})
	require.EqualValues(t, b.proxy.writes.Load(), b.state(t, pipeline.DefaultMirror).Breaker.Failures)
	require.Equal(t, floor, b.consumer(t).AckFloor.Stream, "nothing is acknowledged")
}

func (b *bench) bodiesAreTooLarge(t *testing.T, random *rand.Rand, publish func(int)) {
	const lines = 1000 // of more than 20 bytes each
	limit := 2000 + random.IntN(10_000)
	t.Logf("%d for more than %d bytes", http.StatusRequestEntityTooLarge, limit)
	var refused atomic.Int64
	b.proxy.onWrite(func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		if len(body) <= limit {
			return false
		}
		refused.Add(1)
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return true
	})
	publish(lines)
	b.oneBatch(t, lines)
	require.Positive(t, refused.Load())
	ceiling := b.state(t, pipeline.DefaultMirror).MaxBytes
	require.LessOrEqual(t, ceiling, limit)
	require.Greater(t, ceiling, limit/4, "halved until it is taken")
	refused.Store(0)
	publish(lines)
	b.oneBatch(t, lines)
	require.Zero(t, refused.Load(), "writes have stayed small in later iterations")
	require.Equal(t, ceiling, b.state(t, pipeline.DefaultMirror).MaxBytes)
}

func (b *bench) isAskedToWait(t *testing.T, random *rand.Rand, publish func(int)) {
	status := []int{http.StatusServiceUnavailable, http.StatusTooManyRequests}[random.IntN(2)]
	seconds := 1 + random.IntN(2)
	asked := time.Duration(seconds) * time.Second
	t.Logf("%d with Retry-After of %s", status, asked)
	publish(1 + random.IntN(500))
	b.proxy.onWrite(answer(status, "busy", "Retry-After", fmt.Sprint(seconds)))
	b.proxy.writes.Store(0)
	_, err := b.iteration(t)
	require.Equal(t, errclass.InfluxUnreachable, jobtest.FailureOf(t, err).Class)
	require.EqualValues(t, 1, b.proxy.writes.Load(), "left alone at once")
	breaker := b.state(t, pipeline.DefaultMirror).Breaker
	wait := breaker.RetryAt.Sub(breaker.FailedAt)
	require.GreaterOrEqual(t, wait, asked)
	require.LessOrEqual(t, wait, asked+asked/20)

	// An iteration that is longer than the wait asks as soon as that is over, and goes on.
	var first atomic.Int64
	b.proxy.onWrite(func(http.ResponseWriter, *http.Request, []byte) bool {
		first.CompareAndSwap(0, time.Now().UnixNano())
		return false
	})
	b.oneBatch(t, 100)
	came := time.Unix(0, first.Load())
	require.False(t, came.Before(breaker.RetryAt), "not before it wanted to be asked again")
	t.Logf("asked again after %s, %+.1f %%", came.Sub(breaker.FailedAt).Round(time.Millisecond), 100*(float64(came.Sub(breaker.FailedAt))/float64(asked)-1))
}

// TestSlowMirrorHoldsUpNobody: a mirror does not answer a write before the other one
// has got further, with 20,000 messages waiting and then, iteration after iteration, with those
// that come after. The worker holds only a few for the slow one.
func TestSlowMirrorHoldsUpNobody(t *testing.T) { //nolint:paralleltest // It compares heaps.
	random := stacktest.Random(t)
	b := newBench(t, "slow", stacktest.Start(t))
	proxies := map[string]*proxy{pipeline.DefaultMirror: b.proxy, "west": b.west(t)}
	databases := map[string]string{pipeline.DefaultMirror: "slow", "west": "slow_west"}
	slow, fast := "west", pipeline.DefaultMirror
	if random.IntN(2) == 0 {
		slow, fast = fast, slow
	}
	t.Logf("mirror %s is slow", slow)
	b.spec.BatchPoints = 500
	_, err := b.iteration(t) // makes the consumers
	require.NoError(t, err)
	published := 20_000
	b.publishNumbers(t, 0, published)
	writes := holdWrites(proxies[slow])
	l := b.keepIterating(t)

	// While the slow mirror has a write in hand and the time of the iteration is over, do begins
	// something of which reached tells when the fast mirror has done it. On a busy
	// machine the fast one can count as slow too: then another write shows it.
	const holdFor = 4 * time.Second // less than the loader waits for an answer
	held := 0
	getsFurther := func(do func(), reached func() bool) {
		t.Helper()
		var write *heldWrite
		begun := false
		stacktest.WaitFor(t, "the fast mirror to get further before the slow one answers", func() (bool, error) {
			if write == nil || write.ctx.Err() != nil {
				write, begun = writes.next(), false
			}
			if write == nil || time.Since(write.began) < 2*b.spec.IterationDuration.Std() {
				return false, nil
			}
			if !begun {
				do()
				begun = true
			}
			held = max(held, b.consumerOf(t, slow).NumAckPending)
			done := reached() && write.ctx.Err() == nil
			if done || time.Since(write.began) > holdFor {
				close(write.answer)
				write = nil
			}
			return done, nil
		})
	}
	acknowledged := func() uint64 { return b.consumerOf(t, fast).AckFloor.Consumer }
	for !b.loaded(t, fast) {
		from := uint64(0)
		getsFurther(func() { from = acknowledged() }, func() bool {
			return acknowledged() >= from+uint64(2*b.spec.BatchPoints) || b.loaded(t, fast)
		})
	}
	require.EqualValues(t, published, b.countIn(t, databases[fast], "m"))

	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for iterations := l.iterations.Load(); l.iterations.Load() < iterations+2; {
		getsFurther(func() {
			n := 1 + random.IntN(40)
			b.publishNumbers(t, published, published+n)
			published += n
		}, func() bool { return b.loaded(t, fast) })
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("%d messages, %d held for the slow mirror, heap of %d kB before and %d kB after",
		published, held, before.HeapAlloc/1000, after.HeapAlloc/1000)
	// One batch that is written, one that is filled, and two fetches.
	require.LessOrEqual(t, held, 4*b.spec.BatchPoints)
	require.False(t, b.loaded(t, slow))

	close(writes.release)
	l.stop(t)
	for _, mirror := range []string{slow, fast} {
		stacktest.WaitFor(t, "mirror "+mirror+" to have all", func() (bool, error) {
			_, err := b.iteration(t)
			return b.loaded(t, mirror), err
		})
		require.EqualValues(t, published, b.countIn(t, databases[mirror], "m"))
	}
}

// heldWrites are those of a mirror, each of which waits for its answer.
type heldWrites struct {
	came    chan *heldWrite
	release chan struct{} // closed to answer all
}

type heldWrite struct {
	ctx    context.Context // ends when the loader gives the write up
	began  time.Time
	answer chan struct{} // closed to answer it
}

func holdWrites(p *proxy) *heldWrites {
	h := &heldWrites{came: make(chan *heldWrite), release: make(chan struct{})}
	p.onWrite(func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		write := &heldWrite{ctx: r.Context(), began: time.Now(), answer: make(chan struct{})}
		came := h.came
		for {
			select {
			case came <- write:
				came = nil
			case <-write.answer:
				return false
			case <-h.release:
				return false
			case <-write.ctx.Done():
				return true
			}
		}
	})
	return h
}

// next is a write that waits and was not returned before, nil if there is none now.
func (h *heldWrites) next() *heldWrite {
	select {
	case write := <-h.came:
		return write
	default:
		return nil
	}
}

// iterating runs iteration after iteration.
type iterating struct {
	iterations atomic.Int64 // that are over
	run        atomic.Pointer[jobtest.Run]
	over       atomic.Bool
	ended      chan error
}

func (b *bench) keepIterating(t *testing.T) *iterating {
	t.Helper()
	l := &iterating{ended: make(chan error, 1)}
	go func() {
		for {
			run := b.newRun()
			l.run.Store(run)
			if l.over.Load() {
				l.ended <- nil
				return
			}
			if _, err := b.jobType.Handle(t.Context(), run); err != nil {
				l.ended <- err
				return
			}
			l.iterations.Add(1)
		}
	}()
	return l
}

func (l *iterating) stop(t *testing.T) {
	t.Helper()
	l.over.Store(true)
	l.run.Load().Stop()
	require.NoError(t, <-l.ended)
}

// TestNamedLinesAreTakenOutAtOnce: the server's own words, as InfluxDB 1.8 writes
// them, say which lines it cannot read.
func TestNamedLinesAreTakenOutAtOnce(t *testing.T) {
	t.Parallel()
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
	counts := b.oneBatch(t, 1000)
	require.EqualValues(t, 998, counts["points"])
	require.EqualValues(t, 2, counts["quarantined"])
	require.LessOrEqual(t, b.proxy.writes.Load(), int64(4))
	reasons := ""
	for _, message := range b.quarantine(t) {
		require.Equal(t, errclass.RefusedPoint, message.Headers().Get(pipeline.HeaderClass))
		reasons += message.Headers().Get(pipeline.HeaderReason) + "\n"
	}
	require.Contains(t, reasons, fmt.Sprintf("unable to parse 'm v=13 %d': bad timestamp\n", noon.UnixMilli()+13))
	require.Contains(t, reasons, fmt.Sprintf(`unable to parse 'm s="it's ': odd" %d': bad timestamp`, noon.UnixMilli()+700))
}

// TestGzip writes compressed to the real server.
func TestGzip(t *testing.T) {
	t.Parallel()
	b := newBench(t, "packed", stacktest.Start(t))
	b.spec.Gzip = influx.GzipAlways
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

// TestStackDiesDuringLoad kills NATS and InfluxDB while points are loaded, at any
// moment.
func TestStackDiesDuringLoad(t *testing.T) {
	t.Parallel()
	goroutines := stacktest.Goroutines(t)
	random := stacktest.Random(t)
	st := stacktest.StartOwn(t)
	b := newBench(t, "dies", st)
	// Made before the first write: while it is missing, the server answers without
	// reading what is sent, and the proxy may cut that answer.
	writer, err := influx.NewWriter(b.influx)
	require.NoError(t, err)
	require.NoError(t, writer.CreateDatabase(t.Context(), b.name))
	_, err = b.iteration(t)
	require.NoError(t, err)
	before := goroutines()
	b.publishNumbers(t, 0, 2000)
	b.spec.BatchPoints = 100
	b.spec.IterationDuration = job.Duration(time.Minute)
	nth := int64(1 + random.IntN(15))
	kill := sync.OnceFunc(st.Kill)
	run := b.newRun()
	switch random.IntN(3) {
	case 0:
		t.Logf("both die when write %d arrives", nth)
		writes := b.proxy.writes.Load()
		b.proxy.onWrite(func(http.ResponseWriter, *http.Request, []byte) bool {
			if b.proxy.writes.Load() == writes+nth {
				kill()
			}
			return false
		})
	case 1:
		t.Logf("both die between write %d and its acknowledgement", nth)
		writes := b.proxy.writes.Load()
		b.proxy.afterWrite(func() {
			if b.proxy.writes.Load() == writes+nth {
				kill()
			}
		})
	default:
		t.Logf("both die after acknowledgement %d", nth)
		run = b.newRun(jobtest.OnCheckpoint(func(r *jobtest.Run, _ jobtest.Checkpoint) {
			if int64(len(r.Checkpoints())) == nth {
				kill()
			}
		}))
	}
	_, err = b.jobType.Handle(t.Context(), run)
	b.proxy.onWrite(nil)
	b.proxy.afterWrite(nil)
	require.False(t, jobtest.FailureOf(t, err).Kind.Final())
	_, err = b.iteration(t)
	require.Equal(t, errclass.PipelineUnreachable, jobtest.FailureOf(t, err).Class)
	require.ErrorContains(t, err, st.NATS)

	st.Restart(t)
	b.spec.IterationDuration = job.Duration(time.Second)
	b.drain(t)
	require.EqualValues(t, 2000, b.count(t, "v"))
	stacktest.WaitFor(t, "the goroutines to be as many as before", func() (bool, error) {
		return goroutines() <= before+4, nil // NATS has a few more after a reconnect.
	})
}

// TestTwoJobsOfALocation: the second one is refused until the first has told
// nothing for a while, and the first gets every message.
func TestTwoJobsOfALocation(t *testing.T) {
	t.Parallel()
	b := newBench(t, "twojobs", stacktest.Start(t))
	other := *b
	other.spec.Database = "twojobs_copy"
	second := func() (job.Result, error) {
		definition := jobtest.NewJob(b.jobType, "second", job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, other.spec)
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
	failure := jobtest.FailureOf(t, refused)
	require.Equal(t, errclass.TwoLoaders, failure.Class)
	require.False(t, failure.Kind.Final())
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
		return b.loaded(t, pipeline.DefaultMirror), err
	})
	require.EqualValues(t, 10, b.countIn(t, "twojobs_copy", "m"))
	require.Equal(t, "live_load_influx_v1.second", b.state(t, pipeline.DefaultMirror).Job)
}

// TestSecretOfOneMirror: a worker that has not the secret of one of two mirrors
// loads the other one.
func TestSecretOfOneMirror(t *testing.T) {
	t.Parallel()
	b := newBench(t, "onesecret", stacktest.Start(t))
	b.west(t)
	b.spec.Mirrors[0].Username, b.spec.Mirrors[0].Password = "loader", "secret://west"
	b.publishNumbers(t, 0, 10)
	b.drain(t)
	require.EqualValues(t, 10, b.count(t, "v"))
	breaker := b.state(t, "west").Breaker
	require.Equal(t, errclass.InfluxConfig, breaker.Class)
	require.Contains(t, breaker.Reason, "secret://west")
	require.Zero(t, b.consumerOf(t, "west").AckFloor.Stream)

	secrets := jobtest.WithSecrets(map[job.SecretRef]string{"secret://west": "password"})
	stacktest.WaitFor(t, "the mirror to have all", func() (bool, error) {
		_, err := b.jobType.Handle(t.Context(), b.newRun(secrets))
		return b.loaded(t, "west"), err
	})
	require.EqualValues(t, 10, b.countIn(t, "onesecret_west", "m"))

	b.spec.InfluxURL = "" // and it is the only one
	_, err := b.iteration(t)
	require.Equal(t, errclass.InfluxConfig, jobtest.FailureOf(t, err).Class)
	require.ErrorContains(t, err, "secret://west")
}
