package load_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/load"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

func TestDescribesItselfWithoutServers(t *testing.T) {
	t.Parallel()
	jobType := load.LiveInflux(nil)
	require.Equal(t, "LiveLoadInfluxV1", jobType.Name)
	require.Equal(t, job.WorkerLoad, jobType.Worker)
	require.Equal(t, []job.Mode{job.ModeContinuous}, jobType.Modes)
}

func TestSpecProblemsAreNamed(t *testing.T) {
	t.Parallel()
	const good = `"location":"l","influx_url":"http://127.0.0.1:8086"`
	jobType := load.LiveInflux(nil)
	require.NoError(t, jobtest.CheckSpec(jobType, "{"+good+"}"))
	for want, text := range map[string]string{
		`spec.location: "L" does not match the pattern`:                   `{"location":"L","influx_url":"http://127.0.0.1:8086"}`,
		`spec.influx_url: this is not a URL`:                              `{"location":"l","influx_url":"127.0.0.1:8086"}`,
		`spec.operation_mode: "prod" is not one of live, test, bulk`:      `{` + good + `,"operation_mode":"prod"}`,
		`spec.password: a secret is named, never written`:                 `{` + good + `,"username":"u","password":"plain"}`,
		`username and password are given`:                                 `{` + good + `,"username":"u"}`,
		`spec.batch_points: 100000 is more than 50000`:                    `{` + good + `,"batch_points":100000}`,
		`spec.batch_bytes: 10 is less than 1000`:                          `{` + good + `,"batch_bytes":10}`,
		`spec.batch_age: "PT1M" is longer than PT30S`:                     `{` + good + `,"batch_age":"PT1M"}`,
		`mirror "default": default is`:                                    `{` + good + `,"mirrors":[{"name":"default","influx_url":"http://127.0.0.1:1"}]}`,
		`mirror "a": another mirror has this name`:                        `{"location":"l","mirrors":[{"name":"a","influx_url":"http://127.0.0.1:1"},{"name":"a","influx_url":"http://127.0.0.1:2"}]}`,
		`spec.mirrors.0.influx_url: this is not a URL`:                    `{` + good + `,"mirrors":[{"name":"a","influx_url":"x"}]}`,
		`spec.mirrors.0.name: "A" does not match the pattern`:             `{` + good + `,"mirrors":[{"name":"A","influx_url":"http://127.0.0.1:1"}]}`,
		`neither influx_url nor mirrors`:                                  `{"location":"l"}`,
		`go with influx_url`:                                              `{"location":"l","username":"u","password":"secret://p","mirrors":[{"name":"a","influx_url":"http://127.0.0.1:1"}]}`,
		`spec.database: "a/b" does not match the pattern`:                 `{` + good + `,"database":"a/b"}`,
		`spec.mirrors.0.database: ".." does not match the pattern`:        `{` + good + `,"mirrors":[{"name":"a","influx_url":"http://127.0.0.1:1","database":".."}]}`,
		`spec.create_databases.1: "a*b" does not match the pattern`:       `{` + good + `,"create_databases":["*","a*b"]}`,
		`spec.create_databases.0: "" does not match the pattern`:          `{` + good + `,"create_databases":[""]}`,
		`spec.gzip: "often" is not one of auto, always, never`:            `{` + good + `,"gzip":"often"}`,
		`spec.on_conflict: "ignore" is not one of quarantine, drop_field`: `{` + good + `,"on_conflict":"ignore"}`,
		`spec.number_fields.0: `:                                          `{` + good + `,"number_fields":["("]}`,
		`"mirrors_to_nowhere`:                                             `{` + good + `,"mirrors_to_nowhere":1}`,
	} {
		require.ErrorContains(t, jobtest.CheckSpec(jobType, text), want, text)
	}
}

// TestNamesAreThoseOfTheServer: what the real server makes a database of is what specs
// and messages may name.
func TestNamesAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	writer, err := influx.NewWriter(influx.Config{URL: st.Influx})
	require.NoError(t, err)
	good := []string{"named a", `named "b" 'c'`, "named é日本", "named.", "...", " named", "named;%?#&=,", strings.Repeat("n", 255), strings.Repeat("é", 127)}
	bad := []string{".", "..", "a/b", `a\b`, "/", "a\nb", "a\tb", "a\x00b", "a\x7fb", "a\u00a0b", "a\u200bb", "a\u0085b", strings.Repeat("n", 256), strings.Repeat("é", 128)}
	for _, name := range good {
		require.NoError(t, pipeline.CheckStoreName("database", name))
		require.NoError(t, writer.CreateDatabase(t.Context(), name), "%q", name)
		made, err := influx.MadeByLoad(t.Context(), influx.Config{URL: st.Influx}, name)
		require.NoError(t, err)
		require.True(t, made, "%q", name)
	}
	_, err = influx.Query(t.Context(), influx.Config{URL: st.Influx}, "", "CREATE DATABASE named_by_others")
	require.NoError(t, err)
	require.NoError(t, writer.CreateDatabase(t.Context(), "named_by_others"))
	made, err := influx.MadeByLoad(t.Context(), influx.Config{URL: st.Influx}, "named_by_others")
	require.NoError(t, err)
	require.False(t, made)
	gone, leave := context.WithCancel(t.Context())
	leave()
	require.NoError(t, writer.CreateDatabase(gone, "named_by_who_left"))
	made, err = influx.MadeByLoad(t.Context(), influx.Config{URL: st.Influx}, "named_by_who_left")
	require.NoError(t, err)
	require.True(t, made, "no database is left without its mark")
	var asked atomic.Int64
	forward := stacktest.ReverseProxy(t, st.Influx)
	broken, err := influx.NewWriter(influx.Config{URL: stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 {
			forward.ServeHTTP(w, r)
			return
		}
		create, _, _ := strings.Cut(r.FormValue("q"), ";")
		if _, err := influx.Query(r.Context(), influx.Config{URL: st.Influx}, "", create); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	}))})
	require.NoError(t, err)
	require.NoError(t, broken.CreateDatabase(t.Context(), "named_by_half"))
	made, err = influx.MadeByLoad(t.Context(), influx.Config{URL: st.Influx}, "named_by_half")
	require.NoError(t, err)
	require.True(t, made, "nor if the server is broken off after the first statement")
	for _, name := range bad {
		require.Error(t, pipeline.CheckStoreName("database", name), "%q", name)
		require.Error(t, writer.CreateDatabase(t.Context(), name), "%q", name)
	}
	require.ErrorContains(t, pipeline.CheckStoreName("database", ""), "database is empty")
}

// TestPoisonIsSetApart: one message of each kind that cannot be stored, anywhere in a
// batch of 5,000.
func TestPoisonIsSetApart(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	b := newBench(t, "poison", stacktest.Start(t))
	const n = 5000
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = b.message(i, fmt.Sprintf(`{"v":%d}`, i))
	}
	places := random.Perm(n)
	conflict, noJSON, reserved := places[0], places[1], places[2]
	t.Logf("a conflict at %d, no JSON at %d, a reserved name at %d", conflict, noJSON, reserved)
	bodies[conflict] = b.message(conflict, `{"v":"a string where a number was"}`)
	bodies[noJSON] = strings.Replace(b.message(noJSON, `{"v":NUMBER}`), "NUMBER", "NaN", 1)
	bodies[reserved] = b.message(reserved, `{"time":4}`)
	b.publish(t, b.message(-1, `{"v":0}`)) // settles the type of the field
	b.drain(t)
	b.proxy.writes.Store(0)
	b.publish(t, bodies...)

	counts := b.oneBatch(t, n-2) // two of the three do not come as far as a point
	for name, more := range b.drain(t) {
		counts[name] += more
	}
	require.EqualValues(t, n, counts["messages"])
	require.EqualValues(t, n-3, counts["points"])
	require.EqualValues(t, 3, counts["quarantined"])
	require.EqualValues(t, n-3+1, b.count(t, "v"))
	require.LessOrEqual(t, b.proxy.writes.Load(), int64(80))

	reasons := map[string]string{}
	for _, message := range b.quarantine(t) {
		reasons[message.Headers().Get(pipeline.HeaderClass)+" "+message.Headers().Get(pipeline.HeaderReason)] = string(message.Data())
		require.Equal(t, b.subject(), message.Headers().Get(pipeline.HeaderSubject))
		require.Equal(t, b.spec.InfluxURL, message.Headers().Get(pipeline.HeaderTarget))
		require.NotEmpty(t, message.Headers().Get(pipeline.HeaderSequence))
	}
	require.Len(t, reasons, 3)
	for reason, body := range reasons {
		switch class, _, _ := strings.Cut(reason, " "); class {
		case errclass.RefusedPoint:
			require.Contains(t, reason, "field type conflict", "the server's words")
			require.JSONEq(t, bodies[conflict], body, "a message that can be published again")
		case errclass.BadMessage:
			require.Equal(t, bodies[noJSON], body, "verbatim")
		case errclass.BadPoint:
			require.Contains(t, reason, `the field name "time" is reserved`)
			require.JSONEq(t, bodies[reserved], body)
		default:
			t.Fatalf("unexpected class in %q", reason)
		}
	}
}

func TestOnePoisonPointOfAMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t, "onepoint", stacktest.Start(t))
	b.publish(t, b.message(0, `{"v":1}`))
	b.drain(t)
	whole := strings.Replace(b.message(1, `{"v":2}`), `"points":[`,
		fmt.Sprintf(`"points":[{"measurement":"m","fields":{"v":"x"},"time":%d},`, noon.UnixMilli()+2), 1)
	b.publish(t, whole)
	counts := b.drain(t)
	require.EqualValues(t, 1, counts["messages"])
	require.EqualValues(t, 1, counts["points"])
	require.EqualValues(t, 2, b.count(t, "v"))
	quarantine := b.quarantine(t)
	require.Len(t, quarantine, 1)
	var message pipeline.Message[pipeline.Points]
	require.NoError(t, json.Unmarshal(quarantine[0].Data(), &message))
	require.Len(t, message.Payload.Points, 1)
	require.Equal(t, "x", message.Payload.Points[0].Fields["v"])
}

// TestDeadInfluxLosesNothing has no server at the address for some iterations, and then
// one.
func TestDeadInfluxLosesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, "dead", stacktest.Start(t))
	b.spec.IterationDuration = job.Duration(time.Minute) // which ends when the mirror is down
	address := "127.0.0.1:" + stacktest.FreePort(t)
	b.spec.InfluxURL = "http://" + address
	b.publishNumbers(t, 0, 1000)

	for range 2 {
		result, err := b.iteration(t)
		failure := jobtest.FailureOf(t, err)
		require.False(t, failure.Kind.Final())
		require.Equal(t, errclass.InfluxUnreachable, failure.Class)
		require.ErrorContains(t, err, "influx http://"+address)
		require.ErrorContains(t, err, "location dead")
		require.Zero(t, result.Counts["messages"])
		require.Zero(t, b.consumer(t).AckFloor.Stream, "nothing is acknowledged")
	}
	b.publishNumbers(t, 1000, 1500)

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(b.proxy)
	require.NoError(t, server.Listener.Close())
	server.Listener = listener
	server.Start()
	defer server.Close()
	b.spec.IterationDuration = job.Duration(200 * time.Millisecond)
	counts := b.drain(t)
	require.EqualValues(t, 1500, counts["messages"])
	require.EqualValues(t, 1500, b.count(t, "v"))
	require.Empty(t, b.quarantine(t))
}

// TestCrashBetweenWriteAndAck ends an iteration when InfluxDB has stored its points and
// before it could acknowledge them.
func TestCrashBetweenWriteAndAck(t *testing.T) {
	t.Parallel()
	b := newBench(t, "crash", stacktest.Start(t))
	b.publishNumbers(t, 0, 100)
	usual := b.spec
	b.spec.BatchPoints, b.spec.BatchAge, b.spec.IterationDuration = 100, job.Duration(30*time.Second), job.Duration(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.proxy.afterWrite(func() {
		if b.proxy.writes.Load() > 1 { // the first finds no database
			cancel()
		}
	})
	_, err := b.jobType.Handle(ctx, b.newRun())
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 100, b.count(t, "v"), "stored")
	made, err := influx.MadeByLoad(t.Context(), b.influx, b.name)
	require.NoError(t, err)
	require.True(t, made)
	require.Equal(t, 100, b.consumer(t).NumAckPending, "and not acknowledged")

	b.proxy.afterWrite(nil)
	b.spec = usual
	counts := b.drain(t)
	require.EqualValues(t, 100, counts["rewound"])
	require.EqualValues(t, 100, counts["messages"])
	require.EqualValues(t, 100, b.count(t, "v"))
}

// TestWhatIsInQuarantineIsCountedOnce: a loader that dies has counted what it acknowledged,
// and what comes again is not counted again.
func TestWhatIsInQuarantineIsCountedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, "counted", stacktest.Start(t))
	b.publishNumbers(t, 0, 10)
	b.publish(t, "no message", "nor this", "nor that")
	usual := b.spec
	b.spec.IterationDuration = job.Duration(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error)
	go func() {
		_, err := b.jobType.Handle(ctx, b.newRun())
		ended <- err
	}()
	consumer := pipeline.LoadConsumer(pipeline.OperationLive, b.name, pipeline.DefaultMirror)
	stacktest.WaitFor(t, "all messages to be acknowledged", func() (bool, error) {
		position, err := stacktest.PositionOf(t.Context(), b.client.JetStream(), pipeline.StreamPrepared, consumer)
		return err == nil && position.Done(), err
	})
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Len(t, b.quarantine(t), 3)
	require.EqualValues(t, 3, b.state(t, pipeline.DefaultMirror).Quarantined)

	b.spec = usual
	require.NoError(t, b.client.JetStream().DeleteConsumer(t.Context(), pipeline.StreamPrepared, consumer))
	b.drain(t)
	require.EqualValues(t, 3, b.state(t, pipeline.DefaultMirror).Quarantined)
	b.publish(t, "a fourth")
	b.drain(t)
	require.EqualValues(t, 4, b.state(t, pipeline.DefaultMirror).Quarantined)
}

// TestLaterMessageWins: whatever a dead reader took before, and gave back out of
// order, the value of a point is that of the last message about it in the stream.
func TestLaterMessageWins(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	seeds := stacktest.Random(t)
	for round := range 100 {
		random := rand.New(rand.NewPCG(seeds.Uint64(), 0))
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, fmt.Sprintf("later%d", round), st)
			b.spec.BatchPoints = 1 + random.IntN(7)
			b.spec.BatchAge = job.Duration(10 * time.Millisecond)
			b.spec.IterationDuration = job.Duration(150 * time.Millisecond)
			const n = 20
			var bodies []string
			for i := range n {
				bodies = append(bodies, b.message(0, fmt.Sprintf(`{"v":%d}`, i)))
			}
			b.publish(t, bodies...)
			consumer, err := b.client.Consumer(t.Context(), pipeline.StreamPrepared, pipeline.ConsumerOptions{
				Name:    pipeline.LoadConsumer(pipeline.OperationLive, b.name, pipeline.DefaultMirror),
				Subject: b.subject(), InOrder: true,
			})
			require.NoError(t, err)
			taken, err := consumer.Fetch(t.Context(), 1+random.IntN(n-1), 5*time.Second, nil)
			require.NoError(t, err)
			giveBack := func() {
				for _, message := range taken {
					if random.IntN(2) == 0 {
						require.NoError(t, message.Reject())
					}
				}
			}
			if random.IntN(2) == 0 {
				giveBack()
			} else { // while the loader is at work: its consumer delivers out of order
				b.proxy.afterWrite(sync.OnceFunc(giveBack))
			}
			b.drain(t)
			rows, err := influx.Query(t.Context(), b.influx, b.name, "SELECT v FROM m")
			require.NoError(t, err)
			require.Len(t, rows[0].Values, 1)
			require.Equal(t, json.Number(fmt.Sprint(n-1)), rows[0].Values[0][1])
		})
	}
}

func TestFailuresKeepTheMessages(t *testing.T) {
	t.Parallel()
	b := newBench(t, "keeps", stacktest.Start(t))
	b.spec.IterationDuration = job.Duration(time.Minute) // which ends when the mirror is down
	b.publishNumbers(t, 0, 10)
	for _, c := range []struct {
		status  int
		text    string
		class   string
		after   time.Duration
		headers []string
	}{
		{401, "authorization failed", errclass.InfluxConfig, 0, nil},
		{403, "not authorized", errclass.InfluxConfig, 0, nil},
		{500, "retention policy not found: autogen", errclass.InfluxConfig, 0, nil},
		{400, "something else is wrong", errclass.InfluxConfig, 0, nil},
		{400, "partial write: max-series-per-database limit exceeded: (3) dropped=7", errclass.InfluxLimits, time.Minute, nil},
		{400, `partial write: max-values-per-tag limit exceeded (3/3): measurement="m" tag="id" value="x" dropped=1`, errclass.InfluxLimits, time.Minute, nil},
		{500, "engine: cache-max-memory-size exceeded: (1073741824/1073741824)", errclass.InfluxLimits, time.Minute, nil},
		{503, "busy", errclass.InfluxUnreachable, 9 * time.Second, []string{"Retry-After", "9"}},
		{502, "", errclass.InfluxUnreachable, 0, nil},
		{400, "partial write: shard 7 is pending deletion dropped=0", errclass.InfluxUnreachable, 0, nil},
	} {
		b.proxy.onWrite(answer(c.status, c.text, c.headers...))
		result, err := b.iteration(t)
		failure := jobtest.FailureOf(t, err)
		require.False(t, failure.Kind.Final(), c.text)
		require.Zero(t, result.Counts["quarantined"], c.text)
		require.Equal(t, c.class, failure.Class, c.text)
		breaker := b.state(t, pipeline.DefaultMirror).Breaker
		require.Equal(t, pipeline.BreakerOpen, breaker.State)
		if c.after > 0 {
			wait := breaker.RetryAt.Sub(breaker.FailedAt)
			require.GreaterOrEqual(t, wait, c.after, c.text)
			require.LessOrEqual(t, wait, c.after+c.after/10, c.text)
		}
		b.forget(t)
		require.ErrorContains(t, err, b.spec.InfluxURL)
		require.Zero(t, b.consumer(t).AckFloor.Stream, c.text)
	}
	b.proxy.onWrite(nil)
	b.spec.IterationDuration = job.Duration(200 * time.Millisecond)
	b.drain(t)
	require.EqualValues(t, 10, b.count(t, "v"))
	require.Empty(t, b.quarantine(t))
}

func TestTooBigWritesAreHalved(t *testing.T) {
	t.Parallel()
	b := newBench(t, "toobig", stacktest.Start(t))
	b.publishNumbers(t, 0, 1000)
	largest := 0
	b.proxy.onWrite(func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		if len(body) > 5000 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return true
		}
		largest = max(largest, len(body))
		return false
	})
	counts := b.drain(t)
	require.EqualValues(t, 1000, counts["points"])
	require.EqualValues(t, 1000, b.count(t, "v"))
	require.Greater(t, largest, 2000)
	require.Empty(t, b.quarantine(t))
}

func TestPointsOlderThanTheDatabaseKeeps(t *testing.T) {
	t.Parallel()
	b := newBench(t, "expired", stacktest.Start(t))
	_, err := influx.Query(t.Context(), b.influx, "", `CREATE DATABASE "expired" WITH DURATION 1h NAME "short"`)
	require.NoError(t, err)
	fresh := strings.Replace(b.message(0, `{"v":1}`), fmt.Sprint(noon.UnixMilli()), fmt.Sprint(time.Now().UnixMilli()), 1)
	old := fmt.Sprint(time.Now().Add(-48 * time.Hour).UnixMilli())
	stale := strings.Replace(b.message(0, `{"v":2}`), fmt.Sprint(noon.UnixMilli()), old, 1)
	b.publish(t, stale, fresh, stale)
	counts := b.drain(t)
	require.EqualValues(t, 2, counts["expired"])
	require.EqualValues(t, 3, counts["messages"])
	require.EqualValues(t, 1, b.count(t, "v"))
	require.Empty(t, b.quarantine(t))
}

func TestStopEndsAnIteration(t *testing.T) {
	t.Parallel()
	b := newBench(t, "stops", stacktest.Start(t))
	b.spec.BatchPoints, b.spec.BatchAge, b.spec.IterationDuration = 50, job.Duration(30*time.Second), job.Duration(time.Hour)
	b.publishNumbers(t, 0, 50)
	run := b.newRun(jobtest.OnCheckpoint(func(r *jobtest.Run, _ jobtest.Checkpoint) { r.Stop() }))
	result, err := b.jobType.Handle(t.Context(), run)
	require.NoError(t, err)
	require.EqualValues(t, 50, result.Counts["messages"])
	require.Contains(t, result.Message, "50 messages, 50 points")
	require.True(t, b.loaded(t, pipeline.DefaultMirror))
}

// TestStopEndsAWaitForMorePoints: the longest batch_age is three times the time
// that a worker has to stop in by default. The context ends at half of it.
func TestStopEndsAWaitForMorePoints(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	for name, messages := range map[string]int{"stopsidle": 0, "stopscollecting": 5} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, name, st)
			b.spec.IterationDuration = job.Duration(time.Hour)
			b.spec.BatchAge = job.Duration(30 * time.Second)
			_, err := b.client.Consumer(t.Context(), pipeline.StreamPrepared, pipeline.ConsumerOptions{
				Name: pipeline.LoadConsumer(pipeline.OperationLive, b.name, pipeline.DefaultMirror), Subject: b.subject(), InOrder: true,
			})
			require.NoError(t, err)
			b.publishNumbers(t, 0, messages)

			ctx, cancel := context.WithTimeout(t.Context(), b.spec.BatchAge.Std()/2)
			defer cancel()
			run := b.newRun()
			var result job.Result
			done := make(chan struct{})
			go func() {
				defer close(done)
				result, err = b.jobType.Handle(ctx, run)
			}()
			stacktest.WaitFor(t, "a fetch that waits for more", func() (bool, error) {
				info := b.consumer(t)
				return info.NumWaiting > 0 && info.NumAckPending == messages, nil
			})
			run.Stop()
			<-done
			require.NoError(t, err)
			require.NoError(t, ctx.Err(), "the iteration ended by itself")
			// What was still on its way to the loader when it was stopped comes again.
			b.spec.IterationDuration, b.spec.BatchAge = job.Duration(200*time.Millisecond), job.Duration(50*time.Millisecond)
			require.EqualValues(t, messages, result.Counts["messages"]+b.drain(t)["messages"])
			require.True(t, b.loaded(t, pipeline.DefaultMirror))
		})
	}
}

// TestPoisonAtASlowMirror: each iteration is over before the search for poison is. What
// it has found is set apart all the same, and the next iteration goes on from there.
func TestPoisonAtASlowMirror(t *testing.T) {
	t.Parallel()
	b := newBench(t, "slowpoison", stacktest.Start(t))
	b.publish(t, b.message(-1, `{"v":0}`))
	b.drain(t)
	bodies := make([]string, 400)
	for i := range bodies {
		bodies[i] = b.message(i, fmt.Sprintf(`{"v":%d}`, i))
	}
	for _, i := range []int{0, 120, 399} {
		bodies[i] = b.message(i, `{"v":"text"}`)
	}
	b.publish(t, bodies...)
	b.spec.IterationDuration = job.Duration(time.Hour)
	iterations, last, quarantined := 0, uint64(0), int64(0)
	stacktest.WaitFor(t, "all to be stored or set apart", func() (bool, error) {
		run := b.newRun()
		b.proxy.onWrite(func(http.ResponseWriter, *http.Request, []byte) bool {
			run.Stop() // a stop is as the end of the iteration, with every first write
			return false
		})
		result, err := b.jobType.Handle(t.Context(), run)
		require.NoError(t, err)
		require.Positive(t, result.Counts["messages"], "each iteration is a step")
		floor := b.consumer(t).AckFloor.Stream
		require.Greater(t, floor, last)
		iterations, last, quarantined = iterations+1, floor, quarantined+result.Counts["quarantined"]
		return b.loaded(t, pipeline.DefaultMirror), nil
	})
	require.Greater(t, iterations, 3)
	require.EqualValues(t, 3, quarantined, "counted once")
	require.Len(t, b.quarantine(t), 3)
	require.EqualValues(t, 400-3+1, b.count(t, "v"))
}

// TestLastPrecisionWins: messages about one point, in two precisions that take
// turns, with those of another database between them.
func TestLastPrecisionWins(t *testing.T) {
	t.Parallel()
	b := newBench(t, "precisions", stacktest.Start(t))
	b.spec.CreateDatabases = []string{"precisions_*"}
	for round := range 3 { // batches are used again
		var bodies []string
		for i := range 5 {
			body := b.message(0, fmt.Sprintf(`{"v":%d}`, 10*round+i))
			if i%2 == round%2 {
				body = strings.Replace(body, `"precision":"ms"`, `"precision":"s"`, 1)
			}
			other := strings.Replace(b.message(10*round+i, `{"v":1}`), `"database":"precisions"`, `"database":"precisions_other"`, 1)
			bodies = append(bodies, body, other)
		}
		b.publish(t, bodies...)
		b.drain(t)
		rows, err := influx.Query(t.Context(), b.influx, b.name, "SELECT v FROM m")
		require.NoError(t, err)
		require.Len(t, rows[0].Values, 1)
		require.Equal(t, json.Number(fmt.Sprint(10*round+4)), rows[0].Values[0][1])
	}
	require.EqualValues(t, 3*5, b.countIn(t, "precisions_other", "m"))
}

// TestCredentialsAreTriedOnce: a server that refuses them is not asked again for
// each database of a batch.
func TestCredentialsAreTriedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, "credentials", stacktest.Start(t))
	var bodies []string
	for i := range 5 {
		bodies = append(bodies, strings.Replace(b.message(i, `{"v":1}`), `"database":"credentials"`, fmt.Sprintf(`"database":"credentials_%d"`, i), 1))
	}
	b.publish(t, bodies...)
	b.spec.IterationDuration = job.Duration(time.Minute) // which ends when the mirror is down
	b.proxy.onWrite(answer(http.StatusUnauthorized, "authorization failed"))
	_, err := b.iteration(t)
	require.Equal(t, errclass.InfluxConfig, jobtest.FailureOf(t, err).Class)
	require.EqualValues(t, 1, b.proxy.writes.Load())
}
