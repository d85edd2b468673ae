package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// loader takes prepared messages of a location, and refuses those with a body that
// begins with "bad".
type loader struct {
	client   *pipeline.Client
	consumer *pipeline.Consumer
	location string
	accepted []string
	seen     uint64 // number of the last message in the stream
}

func newLoader(t *testing.T, client *pipeline.Client, location string) *loader {
	t.Helper()
	consumer, err := client.Consumer(t.Context(), pipeline.StreamPrepared,
		pipeline.ConsumerOptions{Name: "load-live-" + location, Subject: pipeline.PrepSubject("live", location)})
	require.NoError(t, err)
	return &loader{client: client, consumer: consumer, location: location}
}

// load deals with everything that waits: up to the last message of the stream, since
// what a consumer tells of the number that waits is a moment behind.
func (l *loader) load(t *testing.T) {
	t.Helper()
	stream, err := l.client.JetStream().Stream(t.Context(), pipeline.StreamPrepared)
	require.NoError(t, err)
	last, err := stream.GetLastMsgForSubject(t.Context(), pipeline.PrepSubject("live", l.location))
	require.NoError(t, err)
	for l.seen < last.Sequence {
		messages, err := l.consumer.Fetch(t.Context(), 1, 30*time.Second, nil)
		require.NoError(t, err)
		require.Len(t, messages, 1)
		l.seen = messages[0].Sequence
		for _, message := range messages {
			if !strings.HasPrefix(string(message.Body), "bad") {
				l.accepted = append(l.accepted, string(message.Body))
				continue
			}
			_, err := l.client.Quarantine(t.Context(), []pipeline.Quarantined{refused(l.location, message.Subject, message.Sequence, message.Body)})
			require.NoError(t, err)
		}
		require.NoError(t, l.consumer.Ack(t.Context(), messages))
	}
}

func refused(location, subject string, sequence uint64, body []byte) pipeline.Quarantined {
	return pipeline.Quarantined{
		Stage: pipeline.StageLoad, Operation: pipeline.OperationLive, Name: location, Class: "RefusedPoint", Reason: "field type conflict",
		Job: "load." + location, Target: "http://127.0.0.1:1", Subject: subject, Sequence: sequence, Body: body,
	}
}

func publish(t *testing.T, client *pipeline.Client, location string, bodies ...string) {
	t.Helper()
	var messages []pipeline.Outgoing
	for _, body := range bodies {
		subject := pipeline.PrepSubject("live", location)
		messages = append(messages, pipeline.Outgoing{Subject: subject, ID: pipeline.ID(subject, body), Body: []byte(body)})
	}
	_, err := client.Publish(t.Context(), messages)
	require.NoError(t, err)
}

func itemsOf(t *testing.T, client *pipeline.Client, filter pipeline.ItemFilter) []pipeline.Item {
	t.Helper()
	var items []pipeline.Item
	require.NoError(t, client.Items(t.Context(), filter, func(item pipeline.Item) error {
		items = append(items, item)
		return nil
	}))
	return items
}

func idsOf(items []pipeline.Item) []uint64 {
	ids := make([]uint64, len(items))
	for n, item := range items {
		ids[n] = item.ID
	}
	return ids
}

func TestItemsAreFoundByWhatTheyAre(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.StartOwn(t, "--only", "nats").NATS)
	require.Empty(t, itemsOf(t, client, pipeline.ItemFilter{}))
	before := time.Now().Truncate(time.Second)
	put := func(stage pipeline.Stage, operation pipeline.Operation, name, class, body string) {
		q := pipeline.Quarantined{Stage: stage, Operation: operation, Name: name, Class: class, Reason: "r " + body, Job: "j", Body: []byte(body)}
		if stage == pipeline.StageLoad {
			q.Subject, q.Sequence, q.Target = pipeline.PrepSubject(operation, name), 7, "http://x"
		}
		_, err := client.Quarantine(t.Context(), []pipeline.Quarantined{q})
		require.NoError(t, err)
	}
	put(pipeline.StageLoad, "live", "common1", "RefusedPoint", "a")
	put(pipeline.StageLoad, "test", "common1", "BadMessage", "b")
	put(pipeline.StageLoad, "live", "ucnrs", "RefusedPoint", "c")
	put(pipeline.StageExtract, "live", "ucnrs.csi", "BadRecord", "d")
	put(pipeline.StagePrepare, "live", "ucnrs.csi", "BadValue", "e")
	put(pipeline.StagePrepare, "live", "demo.csi", "BadValue", "f")
	// What is not ours is left alone.
	_, err := client.JetStream().Publish(t.Context(), "dendra.quarantine.v1.else.x", []byte("?"))
	require.NoError(t, err)

	for name, c := range map[string]struct {
		filter pipeline.ItemFilter
		want   string
	}{
		"all":                      {pipeline.ItemFilter{}, "abcdef"},
		"stage":                    {pipeline.ItemFilter{Stage: "load"}, "abc"},
		"operation":                {pipeline.ItemFilter{Operation: "live"}, "acdef"},
		"location":                 {pipeline.ItemFilter{Location: "common1"}, "ab"},
		"location and operation":   {pipeline.ItemFilter{Location: "common1", Operation: "test"}, "b"},
		"organization":             {pipeline.ItemFilter{Organization: "ucnrs"}, "de"},
		"organization and stage":   {pipeline.ItemFilter{Organization: "ucnrs", Stage: "prepare"}, "e"},
		"class":                    {pipeline.ItemFilter{Class: "BadValue"}, "ef"},
		"since then":               {pipeline.ItemFilter{Since: before}, "abcdef"},
		"since an hour from now":   {pipeline.ItemFilter{Since: before.Add(time.Hour)}, ""},
		"before the third":         {pipeline.ItemFilter{Before: 3}, "ab"},
		"a location that is none":  {pipeline.ItemFilter{Location: "nowhere"}, ""},
		"a class that nothing has": {pipeline.ItemFilter{Class: "Nothing"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			for _, item := range itemsOf(t, client, c.filter) {
				got.WriteString(strings.TrimPrefix(item.Reason, "r "))
				require.Empty(t, item.Body)
				require.Equal(t, 1, item.Kept)
			}
			require.Equal(t, c.want, got.String())
		})
	}
	for _, bad := range []pipeline.ItemFilter{
		{Stage: "x"}, {Operation: "x"}, {Organization: "*"}, {Location: "a.b"}, {Organization: "a", Location: "b"},
		{Stage: "load", Organization: "a"}, {Stage: "prepare", Location: "a"},
	} {
		require.Error(t, client.Items(t.Context(), bad, nil), "%+v", bad)
	}

	first, err := client.Item(t.Context(), 1)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), first.Time, time.Hour)
	require.Equal(t, "a", string(first.Body))
	require.Equal(t, "http://x", first.Target)
	require.EqualValues(t, 7, first.OriginSequence)
	require.Equal(t, "dendra.prep.v1.live.common1", first.OriginSubject)
	for _, id := range []uint64{7, 8, 100} {
		_, err = client.Item(t.Context(), id)
		require.ErrorIs(t, err, pipeline.ErrNoItem)
	}
	n, err := client.Drop(t.Context(), []uint64{1, 1, 3, 100}, nil)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, []uint64{2, 4, 5, 6}, idsOf(itemsOf(t, client, pipeline.ItemFilter{})))

	stop := errors.New("enough")
	require.ErrorIs(t, client.Items(t.Context(), pipeline.ItemFilter{}, func(pipeline.Item) error { return stop }), stop)
}

// TestReplayReturns replays a message that is refused again, as often as one likes,
// with the loader at work between the moment at which the stream has it and that at
// which the item is removed, before, and after: it always comes back, as one item.
func TestReplayReturns(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.Start(t).NATS)
	l := newLoader(t, client, "returns")
	publish(t, client, "returns", "bad1", "good1")
	l.load(t)
	var ids []uint64
	for round := range 4 {
		items := itemsOf(t, client, pipeline.ItemFilter{Location: "returns"})
		require.Len(t, items, 1, "round %d", round)
		require.NotContains(t, ids, items[0].ID)
		ids = append(ids, items[0].ID)
		counts, err := client.Replay(t.Context(), idsOf(items), nil)
		require.NoError(t, err)
		require.Equal(t, pipeline.Replayed{Published: 1}, counts)
		if round%2 == 0 {
			require.Empty(t, itemsOf(t, client, pipeline.ItemFilter{Location: "returns"}))
		}
		l.load(t)
	}
	require.Equal(t, []string{"good1"}, l.accepted)

	// As if the replay had been cut off before it removed the item, and the loader
	// was faster: what came back stands for the item.
	item := itemsOf(t, client, pipeline.ItemFilter{Location: "returns"})[0]
	ack, err := client.JetStream().Publish(t.Context(), item.OriginSubject, []byte("bad1"))
	require.NoError(t, err)
	l.load(t)
	items := itemsOf(t, client, pipeline.ItemFilter{Location: "returns"})
	require.Len(t, items, 1)
	require.NotEqual(t, item.ID, items[0].ID)
	require.Equal(t, ack.Sequence, items[0].OriginSequence)
	counts, err := client.Replay(t.Context(), []uint64{item.ID}, nil)
	require.NoError(t, err)
	require.Equal(t, pipeline.Replayed{Missing: 1}, counts)
	require.Len(t, itemsOf(t, client, pipeline.ItemFilter{Location: "returns"}), 1, "removing the old item does not remove the new one")
}

// TestRefusalOfALaterMessageTakesThePlace: the same refusal twice is one item, that of a later
// message with the same content takes its place.
func TestRefusalOfALaterMessageTakesThePlace(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.Start(t).NATS)
	subject := pipeline.PrepSubject("live", "place")
	put := func(sequences ...uint64) pipeline.Published {
		var messages []pipeline.Quarantined
		for _, sequence := range sequences {
			messages = append(messages, refused("place", subject, sequence, []byte("bad")))
		}
		published, err := client.Quarantine(t.Context(), messages)
		require.NoError(t, err)
		return published
	}
	require.Equal(t, pipeline.Published{Stored: 1, Duplicates: 2}, put(5, 5, 5))
	require.Equal(t, pipeline.Published{Stored: 1}, put(9))
	require.Equal(t, pipeline.Published{Duplicates: 1}, put(9))
	items := itemsOf(t, client, pipeline.ItemFilter{Location: "place"})
	require.Len(t, items, 1)
	require.EqualValues(t, 9, items[0].OriginSequence)

	// Several at once, of which each may be first: one stays, and none is lost.
	done := make(chan error, 8)
	for n := range cap(done) {
		go func() {
			_, err := client.Quarantine(t.Context(), []pipeline.Quarantined{refused("place", subject, uint64(10+n), []byte("bad"))})
			done <- err
		}()
	}
	for range cap(done) {
		require.NoError(t, <-done)
	}
	require.Len(t, itemsOf(t, client, pipeline.ItemFilter{Location: "place"}), 1)
}

func TestReplayKeepsOrderAndCanBeCutOff(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.Start(t).NATS)
	l := newLoader(t, client, "order")
	const n = 200 // several windows
	var bodies, want []string
	for i := range n {
		bodies = append(bodies, fmt.Sprintf("bad%03d", i))
	}
	publish(t, client, "order", bodies...)
	l.load(t)
	ids := idsOf(itemsOf(t, client, pipeline.ItemFilter{Location: "order"}))
	require.Len(t, ids, n)

	// The first is cut off in the middle, and what it has left is replayed by two at
	// once: everything is in the stream, in order, and quarantine is empty.
	ctx, cancel := context.WithCancel(t.Context())
	counts, err := client.Replay(ctx, ids, func(counts pipeline.Replayed) {
		if counts.Published >= n/2 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.GreaterOrEqual(t, counts.Published, n/2)
	left := idsOf(itemsOf(t, client, pipeline.ItemFilter{Location: "order"}))
	require.Len(t, left, n-counts.Published)
	type outcome struct {
		counts pipeline.Replayed
		err    error
	}
	second := make(chan outcome, 1)
	go func() {
		counts, err := connect(t, client.Address()).Replay(t.Context(), left, nil)
		second <- outcome{counts, err}
	}()
	third, err := client.Replay(t.Context(), left, nil)
	require.NoError(t, err)
	other := <-second
	require.NoError(t, other.err)
	require.GreaterOrEqual(t, third.Published+other.counts.Published, len(left))
	require.Empty(t, itemsOf(t, client, pipeline.ItemFilter{Location: "order"}))

	messages, err := l.consumer.Fetch(t.Context(), n, 5*time.Second, nil)
	require.NoError(t, err)
	require.Len(t, messages, n)
	stream, err := client.JetStream().Stream(t.Context(), pipeline.StreamPrepared)
	require.NoError(t, err)
	newest, err := stream.GetLastMsgForSubject(t.Context(), pipeline.PrepSubject("live", "order"))
	require.NoError(t, err)
	require.Equal(t, newest.Sequence, messages[n-1].Sequence, "nothing twice")
	var got []string
	for _, message := range messages {
		require.NotEmpty(t, message.Header.Get("Dendra-Replay"))
		got = append(got, string(message.Body))
	}
	want = slices.Clone(got)
	slices.Sort(want)
	require.Equal(t, bodies, want)
	require.Equal(t, bodies[:counts.Published], got[:counts.Published], "in order")
}

func TestWhatCannotBeReplayed(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.StartOwn(t, "--only", "nats").NATS)
	prep := pipeline.PrepSubject("live", "cannot")
	record := pipeline.Quarantined{
		Stage: pipeline.StageExtract, Operation: "live", Name: "o.csi", Class: "BadRecord", Subject: pipeline.RawSubject("live", "o", "csi"), Body: []byte("<record"),
	}
	cut := refused("cannot", prep, 42, make([]byte, 1<<20))
	nowhere := refused("cannot", "dendra.else.x", 43, []byte("bad"))
	_, err := client.Quarantine(t.Context(), []pipeline.Quarantined{record, cut, nowhere})
	require.NoError(t, err)
	items := itemsOf(t, client, pipeline.ItemFilter{})
	require.Len(t, items, 3)
	for n, want := range []string{
		"item 1 is what a vendor sent and not a message",
		"item 2 holds only the first 1044480 of 1048576 bytes; the whole is message 42 on dendra.prep.v1.live.cannot",
		`item 3 names no subject of the pipeline that it came from ("dendra.else.x")`,
	} {
		require.ErrorIs(t, items[n].Replayable(), pipeline.ErrNotReplayable)
		require.ErrorContains(t, items[n].Replayable(), want)
	}
	counts, err := client.Replay(t.Context(), []uint64{1, 2, 3, 4}, nil)
	require.NoError(t, err)
	require.Equal(t, pipeline.Replayed{Refused: 3, Missing: 1}, counts)
	require.Len(t, itemsOf(t, client, pipeline.ItemFilter{}), 3)
}

// TestReplayIntoAStreamMadeAnew: the copy gets the number that the item's origin
// had in the stream of before, and still does not pass for the item.
func TestReplayIntoAStreamMadeAnew(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.StartOwn(t, "--only", "nats").NATS)
	publish(t, client, "anew", "bad")
	newLoader(t, client, "anew").load(t)
	item := itemsOf(t, client, pipeline.ItemFilter{})[0]
	require.EqualValues(t, 1, item.OriginSequence)
	require.NoError(t, client.JetStream().DeleteStream(t.Context(), pipeline.StreamPrepared))
	_, err := client.Replay(t.Context(), []uint64{item.ID}, nil)
	require.Error(t, err, "nothing takes it")
	require.Len(t, itemsOf(t, client, pipeline.ItemFilter{}), 1)

	require.NoError(t, pipeline.Ensure(t.Context(), client.JetStream(), pipeline.StreamSettings{}))
	l := newLoader(t, client, "anew")
	replayed, err := client.Replay(t.Context(), []uint64{item.ID}, nil)
	require.NoError(t, err)
	require.Equal(t, 1, replayed.Published)
	l.load(t)
	require.Len(t, itemsOf(t, client, pipeline.ItemFilter{}), 1)
}

// TestServerDiesUnderAReplay kills the server in the middle of replays: what was
// refused is in the stream or in quarantine then, and at last all of it is stored.
func TestServerDiesUnderAReplay(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "nats")
	client := connect(t, st.NATS)
	const n = 300
	var messages []pipeline.Quarantined
	for i := range n {
		messages = append(messages, refused("dies", pipeline.PrepSubject("live", "dies"), uint64(10_000+i), []byte(strconv.Itoa(i))))
	}
	_, err := client.Quarantine(t.Context(), messages)
	require.NoError(t, err)
	ids := idsOf(itemsOf(t, client, pipeline.ItemFilter{}))
	killed := false
	_, err = client.Replay(t.Context(), ids, func(counts pipeline.Replayed) {
		if counts.Published >= n/3 && !killed {
			killed = true
			go st.Kill()
		}
	})
	if err == nil {
		t.Log("the replay was over before the server")
	}
	st.Kill()
	st.Restart(t)
	stacktest.WaitFor(t, "the replay of the rest", func() (bool, error) {
		_, err := client.Replay(t.Context(), ids, nil)
		return err == nil, err
	})
	require.Empty(t, itemsOf(t, client, pipeline.ItemFilter{}))
	consumer, err := client.JetStream().CreateConsumer(t.Context(), pipeline.StreamPrepared, jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy})
	require.NoError(t, err)
	batch, err := consumer.Fetch(int(consumer.CachedInfo().NumPending), jetstream.FetchMaxWait(10*time.Second))
	require.NoError(t, err)
	seen := map[string]bool{}
	for message := range batch.Messages() {
		seen[string(message.Data())] = true
	}
	require.Len(t, seen, n)
}
