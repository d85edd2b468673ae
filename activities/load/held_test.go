package load_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
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

// ledger is what a test has published: where each value belongs.
type ledger struct {
	stored      map[string]map[int64]float64 // by database and policy: time and value
	quarantined map[string]string            // by body: class
}

func newLedger() *ledger {
	return &ledger{stored: map[string]map[int64]float64{}, quarantined: map[string]string{}}
}

// to is a message of one point that a database takes.
func (l *ledger) to(database, policy string, i int) string {
	body := addressed(database, policy, i)
	key := fmt.Sprintf("%q", database)
	if policy != "" {
		key += fmt.Sprintf(".%q", policy)
	}
	if l.stored[key] == nil {
		l.stored[key] = map[int64]float64{}
	}
	l.stored[key][noon.UnixMilli()+int64(i)] = float64(i)
	return body
}

// refused is a message that belongs into quarantine.
func (l *ledger) refused(class, body string) string {
	l.quarantined[body] = class
	return body
}

// addressed is a message of one point.
func addressed(database, policy string, i int) string {
	options, err := json.Marshal(pipeline.PointOptions{Database: database, Precision: "ms", RetentionPolicy: policy})
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"context":{"imported_at":"2026-03-04T12:00:00Z","org_slug":"org","station":"s"},`+
		`"payload":{"options":%s,"points":[{"measurement":"m","fields":{"v":%d},"time":%d}]}}`, options, i, noon.UnixMilli()+int64(i))
}

// check compares what the server and the quarantine hold with the ledger.
func (l *ledger) check(t *testing.T, b *bench) {
	t.Helper()
	for target, want := range l.stored {
		database, policy, named := strings.Cut(target, `".`)
		from := "m"
		if named {
			from = policy + ".m"
		}
		rows, err := influx.Query(t.Context(), b.influx, strings.Trim(database, `"`), "SELECT v FROM "+from)
		require.NoError(t, err)
		require.Len(t, rows, 1, "%s", target)
		got := map[int64]float64{}
		for _, values := range rows[0].Values {
			at, err := values[0].(json.Number).Int64()
			require.NoError(t, err)
			got[at], err = values[1].(json.Number).Float64()
			require.NoError(t, err)
		}
		require.Equal(t, want, got, "%s", target)
	}
	got := map[string]string{}
	for _, message := range b.quarantine(t) {
		body := string(message.Data())
		require.NotContains(t, got, body, "once")
		got[body] = message.Headers().Get(pipeline.HeaderClass)
		require.NotEmpty(t, message.Headers().Get(pipeline.HeaderReason))
		require.Equal(t, b.subject(), message.Headers().Get(pipeline.HeaderSubject))
	}
	require.Equal(t, l.quarantined, got)
}

// TestRefusedNames: messages with names that InfluxDB refuses, between good ones. The
// good ones are stored, the others are in quarantine, and the mirror is never down.
func TestRefusedNames(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	b := newBench(t, "refusednames", stacktest.Start(t))
	b.spec.CreateDatabases = []string{"refusednames made*", "refusednames_new"}
	writer, err := influx.NewWriter(b.influx)
	require.NoError(t, err)
	require.NoError(t, writer.CreateDatabase(t.Context(), b.name))
	_, err = influx.Query(t.Context(), b.influx, "", `CREATE RETENTION POLICY "kept" ON "refusednames" DURATION INF REPLICATION 1`)
	require.NoError(t, err)

	l := newLedger()
	var bodies []string
	n := 0
	good := func(count int) {
		for range count {
			n++
			switch random.IntN(3) {
			case 0:
				bodies = append(bodies, l.to(b.name, "kept", n))
			case 1:
				bodies = append(bodies, l.to("refusednames made, too", "", n))
			default:
				bodies = append(bodies, l.to(b.name, "", n))
			}
		}
	}
	long := strings.Repeat("n", 256)
	bad := []func() string{
		func() string { return l.refused(errclass.BadMessage, addressed("a/b", "", n)) },
		func() string { return l.refused(errclass.BadMessage, addressed(`a\b`, "", n)) },
		func() string { return l.refused(errclass.BadMessage, addressed("..", "", n)) },
		func() string { return l.refused(errclass.BadMessage, addressed("a\tb", "", n)) },
		func() string { return l.refused(errclass.BadMessage, addressed(long, "", n)) },
		func() string { return l.refused(errclass.BadMessage, addressed(b.name, "../x", n)) },
		func() string { return l.refused(errclass.BadMessage, addressed(b.name, long, n)) },
		func() string { return l.refused(errclass.RefusedName, addressed(b.name, "missing", n)) },
		func() string { return l.refused(errclass.RefusedName, addressed("refusednames_new", "missing", n)) },
		func() string { return l.refused(errclass.DatabaseNotAllowed, addressed("refusednames_newer", "", n)) },
		func() string {
			return l.refused(errclass.DatabaseNotAllowed, addressed("refusednames mad", "missing", n))
		},
		func() string { // has a point that is bad by itself, and goes whole all the same
			body := strings.Replace(addressed(b.name, "missing", n), `"points":[`, `"points":[{"measurement":"m","fields":{"time":1},"time":1},`, 1)
			return l.refused(errclass.RefusedName, body)
		},
	}
	for _, i := range random.Perm(len(bad)) {
		good(random.IntN(40))
		n++
		bodies = append(bodies, bad[i]())
	}
	good(1 + random.IntN(20))
	b.publish(t, bodies...)
	said := &log{}
	drain := func() {
		stacktest.WaitFor(t, "all to be stored or set apart", func() (bool, error) {
			_, err := b.jobType.Handle(t.Context(), b.newRun(jobtest.WithLogger(slog.New(slog.NewTextHandler(said, nil)))))
			return b.loaded(t, pipeline.DefaultMirror), err
		})
	}
	drain()
	l.check(t, b)
	recent := b.state(t, pipeline.DefaultMirror).Recent
	_, refused := recent.Counts()
	require.EqualValues(t, len(bad), refused, "a message that is refused whole counts with its points")

	bodies = nil
	good(50)
	b.publish(t, bodies...)
	drain()
	l.check(t, b)
	require.Zero(t, said.count("mirror_down"))
}

// TestMessagesCreateNoDatabases: of two hundred messages each names a database of its own.
// None is created, and the messages of the location, and for a database that others have
// made, are stored. Allowed by name, a database is created when its message is replayed.
func TestMessagesCreateNoDatabases(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	b := newBench(t, "nodatabases", stacktest.Start(t))
	databases := func() (names []string) {
		t.Helper()
		all, err := influx.Databases(t.Context(), b.influx)
		require.NoError(t, err)
		for _, name := range all {
			if strings.HasPrefix(name, b.name) {
				names = append(names, name)
			}
		}
		return names
	}
	_, err := influx.Query(t.Context(), b.influx, "", `CREATE DATABASE "nodatabases_theirs"`)
	require.NoError(t, err)
	const n = 200
	l := newLedger()
	var bodies []string
	for i := range n {
		bodies = append(bodies, l.refused(errclass.DatabaseNotAllowed, addressed(fmt.Sprintf("nodatabases_%d", i), "", i)))
		bodies = append(bodies, l.to(b.name, "", i), l.to("nodatabases_theirs", "", i))
	}
	random.Shuffle(len(bodies), func(i, j int) { bodies[i], bodies[j] = bodies[j], bodies[i] })
	b.publish(t, bodies...)
	b.drain(t)
	l.check(t, b)
	require.ElementsMatch(t, []string{b.name, "nodatabases_theirs"}, databases())
	require.Equal(t, pipeline.BreakerClosed, b.state(t, pipeline.DefaultMirror).Breaker.State)

	b.spec.CreateDatabases = []string{"nodatabases_7"}
	var ids []uint64
	for _, message := range b.quarantine(t) {
		stored, err := pipeline.StoredMessage(message)
		require.NoError(t, err)
		ids = append(ids, stored.Sequence)
	}
	replayed, err := b.client.Replay(t.Context(), ids, nil)
	require.NoError(t, err)
	require.Equal(t, n, replayed.Published)
	allowed := l.to("nodatabases_7", "", 7)
	require.Contains(t, l.quarantined, allowed)
	delete(l.quarantined, allowed)
	b.drain(t)
	l.check(t, b)
	require.ElementsMatch(t, []string{b.name, "nodatabases_theirs", "nodatabases_7"}, databases())
}

// TestHeldMessageIsFoundAndSkipped: the mirror refuses two of many messages in words
// that nobody knows. The loader finds the first of them, and stores all before it; when
// it is asked to, it puts this one into quarantine, goes on, and finds the second.
func TestHeldMessageIsFoundAndSkipped(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	b := newBench(t, "heldmessage", stacktest.Start(t))
	b.spec.IterationDuration = job.Duration(time.Minute) // which ends when the mirror is down
	writer, err := influx.NewWriter(b.influx)
	require.NoError(t, err)
	require.NoError(t, writer.CreateDatabase(t.Context(), b.name))
	const n = 600
	l := newLedger()
	places := random.Perm(n)
	first, second := min(places[0], places[1]), max(places[0], places[1])
	t.Logf("refused are %d and %d", first, second)
	bodies := make([]string, n)
	for i := range bodies {
		if i == first || i == second {
			bodies[i] = l.refused(errclass.Skipped, addressed(b.name, "", i))
		} else {
			bodies[i] = l.to(b.name, "", i)
		}
	}
	b.proxy.onWrite(func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		for _, i := range []int{first, second} {
			if strings.Contains(string(body), fmt.Sprintf("m v=%d %d\n", i, noon.UnixMilli()+int64(i))) {
				return answer(http.StatusBadRequest, "the moon is full")(w, r, body)
			}
		}
		return false
	})
	b.publish(t, bodies...)

	consumer := pipeline.LoadConsumer(pipeline.OperationLive, b.name, pipeline.DefaultMirror)
	for _, at := range []int{first, second} {
		var held *pipeline.HeldMessage
		stacktest.WaitFor(t, "the message to hold up the mirror", func() (bool, error) {
			_, err := b.iteration(t)
			require.Equal(t, errclass.InfluxConfig, jobtest.FailureOf(t, err).Class)
			held = b.state(t, pipeline.DefaultMirror).Breaker.Held
			return held != nil, nil
		})
		stored, _, err := b.client.Range(t.Context(), pipeline.StreamPrepared, held.Sequence, held.Sequence, pipeline.Limit{})
		require.NoError(t, err)
		require.Equal(t, bodies[at], string(stored[0].Body))
		require.EqualValues(t, at-len(b.quarantine(t)), b.count(t, "v"), "all before it are stored")
		info := b.consumer(t)
		require.EqualValues(t, n-at, info.NumPending+uint64(info.NumAckPending), "and acknowledged")

		other := *held
		other.Time = other.Time.Add(-time.Hour) // of a stream that was there before
		require.NoError(t, b.client.RequestSkip(t.Context(), consumer, other))
		_, err = b.iteration(t)
		require.Error(t, err)
		require.Equal(t, held, b.state(t, pipeline.DefaultMirror).Breaker.Held)
		for range 2 { // asked twice is as once
			require.NoError(t, b.client.RequestSkip(t.Context(), consumer, *held))
		}
		b.spec.IterationDuration = job.Duration(200 * time.Millisecond)
		stacktest.WaitFor(t, "the message to be skipped", func() (bool, error) {
			_, _ = b.iteration(t) //nolint:errcheck // The second message fails it.
			return b.client.Acknowledged(t.Context(), consumer, held.Sequence)
		})
		b.spec.IterationDuration = job.Duration(time.Minute)
	}
	b.spec.IterationDuration = job.Duration(200 * time.Millisecond)
	b.drain(t)
	l.check(t, b)
}

// TestOutageAfterARefusedTarget: the server refuses the first database of a batch, and is
// away when the next one is written. The mirror is down for the outage, which no message
// holds up.
func TestOutageAfterARefusedTarget(t *testing.T) {
	t.Parallel()
	b := newBench(t, "heldoutage", stacktest.Start(t))
	b.proxy.onWrite(func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.URL.Query().Get("db") == "heldoutage_closed" {
			return answer(http.StatusForbidden, "not authorized")(w, r, body)
		}
		return answer(http.StatusServiceUnavailable, "busy")(w, r, body)
	})
	b.publish(t, addressed("heldoutage_closed", "", 1), addressed(b.name, "", 2))
	stacktest.WaitFor(t, "the mirror to be down", func() (bool, error) {
		_, err := b.iteration(t)
		return err != nil, nil
	})
	breaker := b.state(t, pipeline.DefaultMirror).Breaker
	require.Equal(t, errclass.InfluxUnreachable, breaker.Class)
	require.Contains(t, breaker.Reason, "busy")
	require.Nil(t, breaker.Held)
}
