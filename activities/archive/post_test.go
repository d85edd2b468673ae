package archive_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

func TestSpecProblemsAreNamed(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		`spec.prefix: "/a" does not match the pattern`:        `{"prefix":"/a"}`,
		`spec.prefix: "a/../" does not match the pattern`:     `{"prefix":"a/../"}`,
		`spec.layout: "tar" is not one of batches, documents`: `{"layout":"tar"}`,
		`spec.flush_age: "PT1H" is longer than PT45M`:         `{"flush_age":"PT1H"}`,
		`spec.flush_bytes: 1 is less than 1000`:               `{"flush_bytes":1}`,
		`spec.flush_messages: 500001 is more than 500000`:     `{"flush_messages":500001}`,
		`spec.iteration_duration: "P1D" is longer than PT12H`: `{"iteration_duration":"P1D"}`,
		`spec.generation: -1 is less than 0`:                  `{"generation":-1}`,
		`unknown key "flush_weight"`:                          `{"flush_weight":1}`,
		`spec.bucket: 1 is not a string`:                      `{"bucket":1}`,
	} {
		require.ErrorContains(t, jobtest.CheckSpec(archive.PostToArchive(nil, nil), text), want, text)
	}
	const span = `"from":"2026-03-01T00:00:00Z","to":"2026-03-02T00:00:00Z"`
	for want, text := range map[string]string{
		`spec: key "organization" is missing`:                        `{"source":"csi",` + span + `}`,
		`spec.source: "A" does not match the pattern`:                `{"organization":"o","source":"A",` + span + `}`,
		`spec: key "to" is missing`:                                  `{"organization":"o","source":"csi","from":"2026-03-01T00:00:00Z"}`,
		`is not before to`:                                           `{"organization":"o","source":"csi","from":"2026-03-02T00:00:00Z","to":"2026-03-02T00:00:00Z"}`,
		`spec.operation_mode: "prod" is not one of live, test, bulk`: `{"organization":"o","source":"csi","operation_mode":"prod",` + span + `}`,
		`spec.archived_operation_mode: "other" is not one of`:        `{"organization":"o","source":"csi","archived_operation_mode":"other",` + span + `}`,
	} {
		require.ErrorContains(t, jobtest.CheckSpec(archive.ReplayArchive(nil, nil), text), want, text)
	}
}

func TestDescribeThemselvesWithoutClients(t *testing.T) {
	t.Parallel()
	require.Equal(t, []job.Mode{job.ModeContinuous}, archive.PostToArchive(nil, nil).Modes)
	require.Equal(t, []job.Mode{job.ModeOneShot, job.ModeQueued}, archive.ReplayArchive(nil, nil).Modes)
}

func TestArchiveHoldsTheStream(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.Start(t), "holds")
	b.spec.FlushMessages = 40
	b.publish(50, "live.a.csi", "live.b.hobolink", "test.a.csi")
	verbatim := []pipeline.Outgoing{
		{Subject: "dendra.raw.v1.live.a.csi", Body: []byte("not\nJSON\x00\xff")},
		{Subject: "dendra.raw.v1.live.a.csi", Body: []byte(`{"context":{"replay":true},"payload":"only says so"}`)},
		{Subject: "dendra.raw.v1.elsewhere", Body: nil, Header: map[string][]string{"X-More": {"1", "ü"}}},
	}
	_, err := b.client.Publish(t.Context(), verbatim)
	require.NoError(t, err)
	replayed, header := pipeline.MarkReplay([]byte(`{"context":{},"payload":{}}`), time.Now())
	_, err = b.client.Publish(t.Context(), []pipeline.Outgoing{
		{Subject: "dendra.raw.v1.bulk.a.csi", Body: replayed, Header: header},
		{Subject: "dendra.raw.v1.bulk.a.csi", Body: []byte(`{}`), Header: header},
	})
	require.NoError(t, err)
	counts := b.drain()
	require.EqualValues(t, 2, counts["replays"])
	b.requireArchived()
	report := b.audit(false)
	require.Empty(t, report.Findings)
	incarnation := report.Incarnations[0]
	require.EqualValues(t, 2, incarnation.Replays)
	require.Zero(t, incarnation.Live.Waiting)
	require.Equal(t, incarnation.Last, incarnation.Live.AckFloors[archive.ConsumerName("post_to_archive."+b.key(), 0)])
	require.Less(t, len(b.keys()), len(b.stream()), "not an object for each message")

	// Nothing new, nothing written.
	keys := b.keys()
	_, err = b.iteration()
	require.NoError(t, err)
	require.Equal(t, keys, b.keys())

	// Without cursor and consumer the place is found again.
	require.NoError(t, b.client.JetStream().DeleteConsumer(t.Context(), pipeline.StreamRaw, archive.ConsumerName("post_to_archive."+b.key(), 0)))
	b.last = nil
	counts = b.drain()
	require.Zero(t, counts["objects"])
	require.Equal(t, keys, b.keys())
	b.publish(3, "live.a.csi")
	b.drain()
	b.requireArchived()
}

// TestCrashBetweenPutAndAck cuts a run off after any of its writes.
func TestCrashBetweenPutAndAck(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "nats,s3")
	random := stacktest.Random(t)
	b := newBench(t, st, "crash")
	for round := range 8 {
		b.publish(1+random.IntN(100), "live.a.csi", "live.b.csi", "live.c.csi")
		after := random.IntN(5) // record, three objects, and one that does not come
		ctx, cancel := context.WithCancel(t.Context())
		puts := 0
		b.proxy.After(func(r objectstest.Request) {
			if r.Method == http.MethodPut {
				if puts++; puts == after+1 {
					cancel()
					<-r.Left // The answer may not come first.
				}
			}
		})
		_, err := archive.PostToArchive(b.client, b.store).Handle(ctx, b.newRun())
		crashed := ctx.Err() != nil
		cancel()
		b.proxy.After(nil)
		if !crashed {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, b.audit(true).Findings, "what is under way is no loss")
		// More comes before the next run, which has to end the batch where it was recorded.
		before := len(b.proxy.Requests())
		b.publish(random.IntN(30), "live.a.csi", "live.d.csi")
		if random.IntN(2) == 0 {
			b.last = nil // the position is lost as well
		}
		b.drain()
		again := 0
		for _, r := range b.proxy.Requests()[before:] {
			if r.Method == http.MethodPut && r.Status == http.StatusPreconditionFailed {
				again++
			}
		}
		t.Logf("round %d: cut off after write %d, %d objects were found again", round, after+1, again)
		require.GreaterOrEqual(t, again, min(after, 3))
	}
	b.drain()
	b.requireArchived()
}

// TestTwoArchiversAtOnce by mistake: with one consumer, and with one each.
func TestTwoArchiversAtOnce(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "nats,s3")
	random := stacktest.Random(t)
	b := newBench(t, st, "two")
	b.spec.FlushMessages = 200
	b.spec.IterationDuration = job.Duration(time.Second)
	stop := make(chan struct{})
	var group sync.WaitGroup
	for i := range 4 {
		definition := b.definition(b.key())
		if i == 3 {
			definition = b.definition("another")
		}
		group.Go(func() {
			run := jobtest.NewRun(definition)
			for {
				_, err := archive.PostToArchive(b.client, b.store).Handle(context.WithoutCancel(t.Context()), run)
				if err != nil {
					t.Logf("archiver %d: %s", i, err)
				}
				select {
				case <-stop:
					return
				default:
					run = run.NextAttempt()
				}
			}
		})
	}
	for range 10 {
		b.publish(1+random.IntN(200), "live.a.csi", "live.b.csi")
	}
	state, err := b.client.StreamState(t.Context(), pipeline.StreamRaw)
	require.NoError(t, err)
	stacktest.WaitFor(t, "all to be acknowledged", func() (bool, error) {
		states, err := b.client.ConsumerStates(t.Context(), pipeline.StreamRaw)
		done := 0
		for _, s := range states {
			if s.AckFloor == state.Last {
				done++
			}
		}
		return done == 2, err
	})
	close(stop)
	group.Wait()
	b.requireArchived()
}

// TestChangedObjectIsNotOverwritten while a batch is completed after a crash.
func TestChangedObjectIsNotOverwritten(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t, "--only", "nats,s3"), "changed")
	b.publish(10, "live.a.csi")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	key := ""
	b.proxy.After(func(r objectstest.Request) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.Path, ".zst") {
			key = strings.TrimPrefix(r.Path, "/archive/")
			cancel()
			<-r.Left // The answer may not come first.
		}
	})
	_, err := archive.PostToArchive(b.client, b.store).Handle(ctx, b.newRun())
	require.ErrorIs(t, err, context.Canceled)
	b.proxy.After(nil)
	other := objects.Object{Bucket: "archive", Key: key, Data: []byte("something else"), ContentType: "application/zstd"}
	_, err = b.archive.Store.Put(t.Context(), other)
	require.NoError(t, err)

	var log bytes.Buffer
	result, err := b.iteration(jobtest.WithLogger(newLogger(&log)))
	failure := jobtest.FailureOf(t, err)
	require.Equal(t, errclass.ArchiveConflict, failure.Class)
	require.False(t, failure.Kind.Final(), "the archive goes on")
	require.ErrorContains(t, err, key)
	require.EqualValues(t, 1, result.Counts["conflicts"])
	require.Contains(t, log.String(), "was not overwritten")
	data, _, err := b.archive.Store.Get(t.Context(), "archive", key, 1000)
	require.NoError(t, err)
	require.Equal(t, other.Data, data)
	require.EqualValues(t, 10, b.ackFloor(), "what the stream has is kept")
	_, err = b.iteration()
	require.NoError(t, err, "the alarm is raised once")

	kinds := map[archive.Kind]int{}
	for _, f := range b.audit(false).Findings {
		kinds[f.Kind]++
		t.Log(f.Text)
	}
	require.Equal(t, map[archive.Kind]int{archive.KindConflict: 1, archive.KindDamaged: 1}, kinds)

	// Its content put back, and the copy removed, all is well.
	kept := ""
	for _, k := range b.keys() {
		if strings.Contains(k, "/conflicts/") {
			kept = k
		}
	}
	good, info, err := b.archive.Store.Get(t.Context(), "archive", kept, 1<<20)
	require.NoError(t, err)
	_, err = b.archive.Store.Put(t.Context(), objects.Object{Bucket: "archive", Key: key, Data: good, ContentType: info.ContentType})
	require.NoError(t, err)
	findings := b.audit(true).Findings
	require.Len(t, findings, 1)
	require.Equal(t, archive.KindConflict, findings[0].Kind)
}

func TestStoreAwayForAWhile(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t, "--only", "nats,s3"), "away")
	b.publish(20, "live.a.csi", "live.b.csi")
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request) bool{
		errclass.StoreUnreachable: objectstest.Cut,
		errclass.AccessDenied: func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>", http.StatusForbidden)
			return true
		},
	} {
		b.proxy.Before(answer)
		_, err := b.iteration()
		failure := jobtest.FailureOf(t, err)
		require.Equal(t, name, failure.Class)
		require.False(t, failure.Kind.Final(), "the messages wait")
		require.NotContains(t, err.Error(), "\n")
		require.Zero(t, b.ackFloor())
	}
	b.proxy.Before(nil)
	b.publish(20, "live.a.csi", "live.b.csi")
	b.drain()
	b.requireArchived()
}

func TestServersDieAndComeBack(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "nats,s3")
	random := stacktest.Random(t)
	b := newBench(t, st, "servers")
	b.spec.FlushMessages = 100
	for range 3 {
		b.publish(100+random.IntN(200), "live.a.csi", "live.b.csi")
		after := random.IntN(8)
		kill := sync.OnceFunc(st.Kill)
		requests := 0
		b.proxy.After(func(objectstest.Request) {
			if requests++; requests == after+1 {
				kill()
			}
		})
		_, err := b.iteration()
		b.proxy.After(nil)
		kill() // The iteration may have needed fewer requests.
		t.Logf("killed after at most %d requests: %v", after+1, err)
		st.Restart(t)
		stacktest.WaitFor(t, "the client to be back", func() (bool, error) {
			_, err := b.client.StreamState(t.Context(), pipeline.StreamRaw)
			return err == nil, err
		})
		b.drain()
	}
	b.requireArchived()
}

// TestWhatWentElsewhereIsAcknowledged: another reader takes messages and never answers. They
// are archived, and acknowledged within the iteration.
func TestWhatWentElsewhereIsAcknowledged(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t, "--only", "nats,s3"), "elsewhere")
	b.publish(1, "live.a.csi")
	b.drain()
	consumer, err := b.client.JetStream().Consumer(t.Context(), pipeline.StreamRaw, archive.ConsumerName("post_to_archive."+b.key(), b.spec.Generation))
	require.NoError(t, err)

	b.spec.IterationDuration, b.spec.FlushAge = job.Duration(time.Hour), job.Duration(time.Second)
	b.last = nil
	run := b.newRun()
	ended := make(chan error, 1)
	go func() {
		_, err := archive.PostToArchive(b.client, b.store).Handle(t.Context(), run)
		ended <- err
	}()
	tries := 0
	take := func() {
		t.Helper()
		stacktest.WaitFor(t, "the other reader to have the last message", func() (bool, error) {
			tries++
			batch, err := consumer.Fetch(1, jetstream.FetchMaxWait(time.Second))
			if err != nil {
				return false, err
			}
			b.publish(1+tries%3, "live.a.csi")
			state, err := b.client.StreamState(t.Context(), pipeline.StreamRaw)
			if err != nil {
				return false, err
			}
			last := false
			for message := range batch.Messages() {
				metadata, err := message.Metadata()
				if err != nil {
					return false, err
				}
				last = metadata.Sequence.Stream == state.Last
			}
			return last, batch.Error()
		})
	}
	acknowledged := func() {
		t.Helper()
		stacktest.WaitFor(t, "all to be acknowledged", func() (bool, error) {
			state, err := b.client.StreamState(t.Context(), pipeline.StreamRaw)
			return b.ackFloor() == state.Last, err
		})
	}
	take()
	b.publish(10, "live.a.csi")
	acknowledged()
	take() // Nothing comes after it.
	acknowledged()
	run.Stop()
	require.NoError(t, <-ended)
	b.requireArchived()
}

// TestWhatTheStreamDoesNotHoldIsRecorded, and told apart from a loss.
func TestWhatTheStreamDoesNotHoldIsRecorded(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t, "--only", "nats,s3"), "gone")
	stream, err := b.client.JetStream().Stream(t.Context(), pipeline.StreamRaw)
	require.NoError(t, err)
	b.publish(50, "live.a.csi")
	require.NoError(t, stream.Purge(t.Context(), purgeUpTo(11))) // as if expired
	require.NoError(t, stream.DeleteMsg(t.Context(), 20))
	require.NoError(t, stream.DeleteMsg(t.Context(), 21))
	counts := b.drain()
	require.EqualValues(t, 12, counts["gone"])
	b.requireArchived()
	require.Equal(t, []archive.Range{{First: 1, Last: 10}, {First: 20, Last: 21}}, b.audit(false).Incarnations[0].Gone)

	// What goes after it was archived is no matter.
	require.NoError(t, stream.Purge(t.Context()))
	b.publish(5, "live.a.csi")
	b.drain()
	report := b.audit(true)
	require.Empty(t, report.Findings)
	require.EqualValues(t, 55, report.Incarnations[0].Last)
	require.Len(t, report.Incarnations[0].Gone, 2)

	// A batch that is not there is a loss.
	batch := b.archive.Prefix + fmt.Sprintf("raw/v1/batches/%s/%020d.json", report.Incarnations[0].Incarnation, 1)
	other := b.archive
	other.Prefix = "partly/"
	for _, key := range b.keys() {
		if key == batch {
			continue
		}
		data, info, err := b.archive.Store.Get(t.Context(), "archive", key, 1<<20)
		require.NoError(t, err)
		_, err = b.archive.Store.Put(t.Context(), objects.Object{
			Bucket: "archive", Key: strings.Replace(key, "gone/", "partly/", 1), Data: data, ContentType: info.ContentType, Metadata: info.Metadata,
		})
		require.NoError(t, err)
	}
	report, err = other.Audit(t.Context(), archive.AuditOptions{})
	require.NoError(t, err)
	require.Len(t, report.Findings, 2)
	require.Equal(t, archive.KindMissing, report.Findings[0].Kind)
	require.Equal(t, &archive.Range{First: 1, Last: 50}, report.Findings[0].Numbers)
	require.Equal(t, archive.KindStray, report.Findings[1].Kind)
}

// TestStreamThatDropsWhatWasBegun: a run dies within a batch, and before the next one
// the stream has dropped messages of it.
func TestStreamThatDropsWhatWasBegun(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t, "--only", "nats,s3"), "begun")
	stream, err := b.client.JetStream().Stream(t.Context(), pipeline.StreamRaw)
	require.NoError(t, err)
	const each = 10 // messages of three organizations in turns: 1, 4, …; 2, 5, …; 3, 6, …
	// crashAfter is how many writes the run that dies has made: the record, and objects.
	begin := func(crashAfter int) (first uint64) {
		t.Helper()
		state, err := b.client.StreamState(t.Context(), pipeline.StreamRaw)
		require.NoError(t, err)
		b.publish(each, "live.a.csi", "live.b.csi", "live.c.csi")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		puts := 0
		b.proxy.After(func(r objectstest.Request) {
			if r.Method == http.MethodPut && r.Status == http.StatusOK {
				if puts++; puts == crashAfter {
					cancel()
					<-r.Left // The answer may not come first.
				}
			}
		})
		usual := b.spec
		b.spec.FlushMessages, b.spec.FlushAge, b.spec.IterationDuration = 3*each, job.Duration(30*time.Minute), job.Duration(time.Hour)
		b.last = nil
		_, err = archive.PostToArchive(b.client, b.store).Handle(ctx, b.newRun())
		b.spec, b.last = usual, nil
		b.proxy.After(nil)
		require.ErrorIs(t, err, context.Canceled)
		return state.Last + 1
	}
	drop := func(numbers ...uint64) {
		t.Helper()
		for _, n := range numbers {
			require.NoError(t, stream.DeleteMsg(t.Context(), n))
		}
	}
	kinds := func() map[archive.Kind][]string {
		t.Helper()
		found := map[archive.Kind][]string{}
		for _, f := range b.audit(true).Findings {
			found[f.Kind] = append(found[f.Kind], f.Key)
		}
		return found
	}

	// All of its objects were written: nothing is lost.
	first := begin(4)
	drop(first, first+2, first+5)
	result, err := b.iteration()
	require.NoError(t, err)
	require.Zero(t, result.Counts["incomplete"])
	require.Empty(t, kinds())

	// None was: of one organization a message is gone, of another all are.
	first = begin(1)
	drop(first)
	for n := range uint64(each) {
		drop(first + 2 + 3*n)
	}
	var log bytes.Buffer
	result, err = b.iteration(jobtest.WithLogger(newLogger(&log)))
	failure := jobtest.FailureOf(t, err)
	require.Equal(t, errclass.ArchiveIncomplete, failure.Class)
	require.False(t, failure.Kind.Final(), "the archive goes on")
	require.ErrorContains(t, err, "org=a/")
	require.ErrorContains(t, err, "what is left is kept as begun/raw/v1/conflicts/")
	require.NotContains(t, err.Error(), "\n")
	require.EqualValues(t, 2, result.Counts["incomplete"])
	require.EqualValues(t, each, result.Counts["messages"], "the organization that lost none")
	require.Contains(t, log.String(), "org=c/")
	require.Contains(t, log.String(), "none of them is left")
	require.EqualValues(t, first+3*each-2, b.ackFloor(), "the last one that is there")

	_, err = b.iteration()
	require.NoError(t, err, "the alarm is raised once")
	b.publish(5, "live.a.csi")
	b.drain()
	found := kinds()
	require.Len(t, found, 2)
	require.Len(t, found[archive.KindObject], 2, "the audit shows them for good")
	require.Len(t, found[archive.KindConflict], 1)
	kept := strings.TrimPrefix(found[archive.KindConflict][0], b.archive.Prefix)
	content, err := b.archive.Read(t.Context(), kept)
	require.NoError(t, err)
	require.Equal(t, each-1, bytes.Count(content, []byte("\n")))
}

// TestStreamThatLostItsTail gives numbers twice: what it gives them to now must
// not be taken for what is archived.
func TestStreamThatLostItsTail(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t, "--only", "nats,s3"), "tail")
	b.publish(10, "live.a.csi")
	b.drain()
	incarnation := b.audit(false).Incarnations[0].Incarnation

	// A cursor of an archive that goes beyond the stream, and one whose last message
	// is another.
	for _, place := range []map[string]any{
		{"incarnation": incarnation, "next": 21, "before": time.Now()},
		{"incarnation": incarnation, "next": 10, "before": time.Now()},
	} {
		b.last = nil
		place["bucket"], place["prefix"] = b.archive.Bucket, b.archive.Prefix
		_, err := archive.PostToArchive(b.client, b.store).Handle(t.Context(), jobtest.NewRun(b.definition(b.key()), jobtest.WithCursor(place)))
		failure := jobtest.FailureOf(t, err)
		require.Equal(t, errclass.StreamWentBack, failure.Class, "%s", err)
		require.False(t, failure.Kind.Final())
		require.ErrorContains(t, err, "generation is raised")
	}
	b.spec.Generation = 1
	b.last = nil
	b.publish(5, "live.a.csi")
	b.drain()
	report := b.audit(true)
	require.Empty(t, report.Findings)
	require.Len(t, report.Incarnations, 2)
	require.EqualValues(t, 15, report.Incarnations[1].Messages)
	require.EqualValues(t, 15, report.Incarnations[1].Live.Last)
	require.Nil(t, report.Incarnations[0].Live)
}

// TestAuditAgainstAnotherServer must not take an archive for complete.
func TestAuditAgainstAnotherServer(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t, "--only", "nats,s3"), "moved")
	b.publish(10, "live.a.csi")
	b.drain()
	require.Empty(t, b.audit(false).Findings)

	home := b.client
	other := stacktest.StartOwn(t, "--only", "nats").Pipeline(t)
	require.NoError(t, other.JetStream().DeleteStream(t.Context(), pipeline.StreamRaw))
	_, err := b.archive.Audit(t.Context(), archive.AuditOptions{Stream: other})
	require.ErrorIs(t, err, pipeline.ErrNoStream)
	made := func(c *pipeline.Client) time.Time {
		stream, err := c.JetStream().Stream(t.Context(), pipeline.StreamRaw)
		require.NoError(t, err)
		return stream.CachedInfo().Created.Truncate(time.Second)
	}
	first := made(home)
	makeLater := func(c *pipeline.Client) {
		t.Helper()
		stacktest.WaitFor(t, "a stream that is made in another second", func() (bool, error) {
			require.NoError(t, pipeline.Ensure(t.Context(), c.JetStream(), pipeline.StreamSettings{}))
			if !made(c).Equal(first) {
				return true, nil
			}
			return false, c.JetStream().DeleteStream(t.Context(), pipeline.StreamRaw)
		})
	}
	makeLater(other)
	require.NoError(t, other.Ready(t.Context()))
	b.client = other
	requireOther := func() {
		t.Helper()
		report := b.audit(false)
		require.Len(t, report.Findings, 1)
		require.Equal(t, archive.KindOtherStream, report.Findings[0].Kind)
		require.Contains(t, report.Findings[0].Text, "on "+b.client.Address())
		require.Len(t, report.Incarnations, 2)
	}
	requireOther()

	// The right server, which lost the stream: until the new one is archived, too.
	b.client = home
	require.NoError(t, home.JetStream().DeleteStream(t.Context(), pipeline.StreamRaw))
	_, err = b.archive.Audit(t.Context(), archive.AuditOptions{Stream: home})
	require.ErrorIs(t, err, pipeline.ErrNoStream)
	makeLater(home)
	requireOther()
	b.publish(1, "live.a.csi")
	b.drain()
	require.Empty(t, b.audit(true).Findings)
}

func TestStopLeavesWhatIsBuffered(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t, "--only", "nats,s3"), "stops")
	b.spec.FlushAge, b.spec.IterationDuration = job.Duration(30*time.Minute), job.Duration(time.Hour)
	b.publish(5, "live.a.csi")
	done := make(chan error, 1)
	run := b.newRun()
	go func() {
		_, err := archive.PostToArchive(b.client, b.store).Handle(t.Context(), run)
		done <- err
	}()
	stacktest.WaitFor(t, "the messages to be buffered", func() (bool, error) {
		states, err := b.client.ConsumerStates(t.Context(), pipeline.StreamRaw)
		return len(states) == 1 && b.consumer().NumAckPending == 5, err
	})
	run.Stop()
	require.NoError(t, <-done)
	require.Empty(t, b.keys())
	b.spec.FlushAge, b.spec.IterationDuration = job.Duration(time.Millisecond), job.Duration(time.Second)
	b.last = nil
	b.drain()
	b.requireArchived()
}

// TestAnArchiveElsewhereBeginsAnew changes where a job's batches go: the new place
// gets all that the stream holds, though the cursor of the old one is further.
func TestAnArchiveElsewhereBeginsAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t, "--only", "nats,s3"), "before")
	b.publish(50, "live.a.csi")
	b.drain()
	last, err := b.iteration()
	require.NoError(t, err)

	key := b.key()
	b.spec.Prefix = "after/"
	b.archive = archive.Archive{Store: b.archive.Store, Bucket: b.archive.Bucket, Prefix: "after/"}
	b.publish(5, "live.a.csi")
	stacktest.WaitFor(t, "the new archive to be whole", func() (bool, error) {
		run := jobtest.NewRun(b.definition(key), jobtest.WithCursor(last.Cursor))
		if last, err = archive.PostToArchive(b.client, b.store).Handle(t.Context(), run); err != nil {
			return false, err
		}
		return len(b.archived()) == len(b.stream()), nil
	})
	require.Empty(t, b.audit(true).Findings)
}
