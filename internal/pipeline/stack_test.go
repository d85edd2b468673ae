package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

func connect(t *testing.T, url string) *pipeline.Client {
	t.Helper()
	client, err := pipeline.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	require.NoError(t, client.Ready(t.Context()))
	return client
}

func TestEnsureLeavesWhatExists(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "nats")
	client := connect(t, st.NATS)
	js := client.JetStream()
	stream, err := js.Stream(t.Context(), pipeline.StreamRaw)
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	config.MaxAge = 7 * time.Hour // an operator's choice
	_, err = js.UpdateStream(t.Context(), config)
	require.NoError(t, err)
	_, err = client.Publish(t.Context(), []pipeline.Outgoing{{Subject: pipeline.RawSubject("live", "org", "x"), Body: []byte("{}")}})
	require.NoError(t, err)

	require.NoError(t, pipeline.Ensure(t.Context(), js, pipeline.StreamSettings{}))
	stream, err = js.Stream(t.Context(), pipeline.StreamRaw)
	require.NoError(t, err)
	require.Equal(t, 7*time.Hour, stream.CachedInfo().Config.MaxAge)
	require.EqualValues(t, 1, stream.CachedInfo().State.Msgs)

	require.NoError(t, js.DeleteStream(t.Context(), pipeline.StreamQuarantine))
	require.NoError(t, pipeline.Ensure(t.Context(), js, pipeline.StreamSettings{}))
	_, err = js.Stream(t.Context(), pipeline.StreamQuarantine)
	require.NoError(t, err, "a missing one is made")
}

// A neighbor that sends rubbish fills no disk: each stream has an age and a size by default.
func TestStreamsAreBoundedByDefault(t *testing.T) {
	t.Parallel()
	js := connect(t, stacktest.Start(t).NATS).JetStream()
	for _, name := range []string{pipeline.StreamRaw, pipeline.StreamPrepared, pipeline.StreamQuarantine, pipeline.StreamRunLogs, pipeline.StreamChanges} {
		stream, err := js.Stream(t.Context(), name)
		require.NoError(t, err)
		require.Positive(t, stream.CachedInfo().Config.MaxAge, name)
		require.Positive(t, stream.CachedInfo().Config.MaxBytes, name)
	}
}

func TestPublishConfirmsAllAndDropsRepeats(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.Start(t).NATS)
	const n = 3000 // many windows of messages on their way
	messages := make([]pipeline.Outgoing, n)
	for i := range messages {
		messages[i] = pipeline.Outgoing{
			Subject: pipeline.RawSubject("live", "publish", "x"), ID: pipeline.ID("publish", strconv.Itoa(i)), Body: []byte(strconv.Itoa(i)),
		}
	}
	published, err := client.Publish(t.Context(), messages)
	require.NoError(t, err)
	require.Equal(t, pipeline.Published{Stored: n}, published)
	published, err = client.Publish(t.Context(), messages)
	require.NoError(t, err)
	require.Equal(t, pipeline.Published{Duplicates: n}, published)

	_, err = client.Publish(t.Context(), []pipeline.Outgoing{{Subject: "dendra.raw.v1.live.publish.x", Body: make([]byte, 2<<20)}})
	require.Equal(t, errclass.MessageTooLarge, jobtest.FailureOf(t, err).Class)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = client.Publish(ctx, messages)
	require.ErrorIs(t, err, context.Canceled)
}

func TestBookmarkStaysWithTheNewestRun(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.Start(t).NATS)
	key := pipeline.BookmarkKey("extract_x.bookmark", "logger 1")
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

	none, err := client.Bookmark(t.Context(), key)
	require.NoError(t, err)
	require.Zero(t, none.Revision)
	first, err := client.Advance(t.Context(), none, noon, map[string]int{"n": 1}, "run-1")
	require.NoError(t, err)
	read, err := client.Bookmark(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, first, read)
	require.JSONEq(t, `{"n":1}`, string(read.State))

	// A second run moves it on. The first one is stale from then, whatever it
	// wants to write, and so is one that saw no bookmark at all.
	second, err := client.Advance(t.Context(), read, noon.Add(time.Hour), nil, "run-2")
	require.NoError(t, err)
	for _, stale := range []pipeline.Bookmark{first, none} {
		_, err = client.Advance(t.Context(), stale, noon.Add(9*time.Hour), nil, "run-1")
		require.Equal(t, errclass.StaleBookmark, jobtest.FailureOf(t, err).Class)
		require.ErrorContains(t, err, key)
		require.ErrorContains(t, err, client.Address())
	}
	_, err = client.Advance(t.Context(), second, noon, nil, "run-2")
	require.Equal(t, errclass.BadBookmark, jobtest.FailureOf(t, err).Class)
	require.ErrorContains(t, err, "move back")
	now, err := client.Bookmark(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, second, now)

	bucket, err := client.JetStream().KeyValue(t.Context(), pipeline.BucketBookmarks)
	require.NoError(t, err)
	_, err = bucket.PutString(t.Context(), key, "{}")
	require.NoError(t, err)
	_, err = client.Bookmark(t.Context(), key)
	require.Equal(t, errclass.BadBookmark, jobtest.FailureOf(t, err).Class)
}

func TestQuarantineKeepsOnce(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.Start(t).NATS)
	q := pipeline.Quarantined{
		Stage: pipeline.StageLoad, Operation: pipeline.OperationLive, Name: "keep", Class: "RefusedPoint",
		Reason: "field type\nconflict", Job: "load.x", Target: "http://127.0.0.1:1", Subject: "dendra.prep.v1.live.keep", Sequence: 7,
		Body: []byte("not\x00json"),
	}
	big := q
	big.Body = make([]byte, 1<<20)
	published, err := client.Quarantine(t.Context(), []pipeline.Quarantined{q, q, big})
	require.NoError(t, err)
	require.Equal(t, pipeline.Published{Stored: 2, Duplicates: 1}, published)
	published, err = client.Quarantine(t.Context(), []pipeline.Quarantined{q})
	require.NoError(t, err)
	require.Equal(t, pipeline.Published{Duplicates: 1}, published)

	consumer, err := client.Consumer(t.Context(), pipeline.StreamQuarantine,
		pipeline.ConsumerOptions{Name: "look", Subject: "dendra.quarantine.v1.load.live.keep.>"})
	require.NoError(t, err)
	messages, err := consumer.Fetch(t.Context(), 2, 5*time.Second, nil)
	require.NoError(t, err)
	require.Len(t, messages, 2)
	require.Equal(t, "not\x00json", string(messages[0].Body))
	require.Equal(t, "field type conflict", messages[0].Header.Get(pipeline.HeaderReason))
	require.Equal(t, "7", messages[0].Header.Get(pipeline.HeaderSequence))
	require.Equal(t, "dendra.prep.v1.live.keep", messages[0].Header.Get(pipeline.HeaderSubject))
}

// TestQuarantineKeepsWhatIsReadTwiceOnce: an item that is imported and prepared
// again is the same item.
func TestQuarantineKeepsWhatIsReadTwiceOnce(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.Start(t).NATS)
	put := func(sequence uint64, body string) pipeline.Published {
		published, err := client.Quarantine(t.Context(), []pipeline.Quarantined{refused("twice", pipeline.PrepSubject("live", "twice"), sequence, []byte(body))})
		require.NoError(t, err)
		return published
	}
	body := func(minute, payload string) string {
		return `{"context":{"imported_at":"2026-03-04T12:` + minute + `:00Z","org_slug":"o"},"payload":{"imported_at":` + payload + `}}`
	}
	require.Equal(t, pipeline.Published{Stored: 1}, put(1, body("00", "1")))
	require.Equal(t, pipeline.Published{Duplicates: 1}, put(1, body("00", "1")))
	require.Equal(t, pipeline.Published{Stored: 1}, put(2, body("20", "1")), "in the place of the first")
	require.Equal(t, pipeline.Published{Stored: 1}, put(3, body("20", "2")), "something else")
	items := itemsOf(t, client, pipeline.ItemFilter{Location: "twice"})
	require.Len(t, items, 2)
}

func numbers(t *testing.T, messages []*pipeline.Delivery) []int {
	t.Helper()
	out := make([]int, len(messages))
	for i, message := range messages {
		require.NoError(t, json.Unmarshal(message.Body, &out[i]))
	}
	return out
}

// TestRewindKeepsTheOrder: what one reader took and did not acknowledge comes
// before everything that follows it, at once and in order.
func TestRewindKeepsTheOrder(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	client := connect(t, st.NATS)
	subject := pipeline.PrepSubject("live", "rewind")
	var messages []pipeline.Outgoing
	for i := range 10 {
		messages = append(messages, pipeline.Outgoing{Subject: subject, Body: fmt.Append(nil, i)})
	}
	_, err := client.Publish(t.Context(), messages)
	require.NoError(t, err)
	options := pipeline.ConsumerOptions{Name: "load-live-rewind", Subject: subject}
	first, err := client.Consumer(t.Context(), pipeline.StreamPrepared, options)
	require.NoError(t, err)
	taken, err := first.Fetch(t.Context(), 6, 5*time.Second, nil)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2, 3, 4, 5}, numbers(t, taken))
	require.NoError(t, first.Ack(t.Context(), taken[:2]))
	require.NoError(t, first.Ack(t.Context(), taken[4:5])) // out of order
	require.NoError(t, taken[3].Reject())

	other := connect(t, st.NATS)
	second, err := other.Consumer(t.Context(), pipeline.StreamPrepared, options)
	require.NoError(t, err)
	rewound, err := second.Rewind(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, rewound)
	again, err := second.Fetch(t.Context(), 8, 5*time.Second, nil)
	require.NoError(t, err)
	require.Equal(t, []int{2, 3, 4, 5, 6, 7, 8, 9}, numbers(t, again))
	require.NoError(t, second.Ack(t.Context(), again))
	stacktest.WaitFor(t, "all to be acknowledged", func() (bool, error) {
		position, err := stacktest.PositionOf(t.Context(), client.JetStream(), pipeline.StreamPrepared, options.Name)
		return position.Done(), err
	})
	rewound, err = second.Rewind(t.Context())
	require.NoError(t, err)
	require.Zero(t, rewound)
}

// TestFetchEndsWithItsContext: also in the middle of a long wait. What it has taken
// is not acknowledged, and comes again.
func TestFetchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.Start(t).NATS)
	subject := pipeline.PrepSubject("live", "fetchends")
	_, err := client.Publish(t.Context(), []pipeline.Outgoing{{Subject: subject, Body: []byte("0")}})
	require.NoError(t, err)
	consumer, err := client.Consumer(t.Context(), pipeline.StreamPrepared, pipeline.ConsumerOptions{Name: "load-live-fetchends", Subject: subject})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := consumer.Fetch(ctx, 2, 30*time.Second, nil)
		done <- err
	}()
	stacktest.WaitFor(t, "the message to be taken", func() (bool, error) {
		info, err := client.JetStream().Consumer(t.Context(), pipeline.StreamPrepared, "load-live-fetchends")
		return err == nil && info.CachedInfo().NumAckPending == 1, err
	})
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)

	_, err = consumer.Fetch(ctx, 1, 30*time.Second, nil)
	require.ErrorIs(t, err, context.Canceled)
	rewound, err := consumer.Rewind(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, rewound)
	again, err := consumer.Fetch(t.Context(), 1, 5*time.Second, nil)
	require.NoError(t, err)
	require.Equal(t, []int{0}, numbers(t, again))
	require.NoError(t, consumer.Ack(t.Context(), again))
}

// TestFetchOfLostMessagesEnds: the server says that it has sent a message, which got lost.
// A stop and the end of the context end the wait for it, which goes on without them.
func TestFetchOfLostMessagesEnds(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	client := connect(t, st.NATS)
	subject := pipeline.PrepSubject("live", "lost")
	_, err := client.Publish(t.Context(), []pipeline.Outgoing{{Subject: subject, Body: []byte("0")}})
	require.NoError(t, err)
	lossy := connect(t, startProxy(t, st.NATS, proxy{fromServer: without(subject)}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	fetch := func(ctx context.Context, name string, wait time.Duration, stop <-chan struct{}) <-chan error {
		consumer, err := lossy.Consumer(t.Context(), pipeline.StreamPrepared, pipeline.ConsumerOptions{Name: name, Subject: subject})
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() {
			messages, err := consumer.Fetch(ctx, 2, wait, stop)
			if len(messages) > 0 {
				err = fmt.Errorf("%d messages came", len(messages))
			}
			done <- err
		}()
		stacktest.WaitFor(t, "the message to be sent", func() (bool, error) {
			info, err := client.JetStream().Consumer(t.Context(), pipeline.StreamPrepared, name)
			return err == nil && info.CachedInfo().NumAckPending == 1, err
		})
		return done
	}
	stop := make(chan struct{})
	waiting := fetch(t.Context(), "load-live-lost-waiting", 100*time.Millisecond, nil)
	stopped := fetch(t.Context(), "load-live-lost-stopped", time.Minute, stop)
	canceled := fetch(ctx, "load-live-lost-canceled", time.Minute, nil)
	close(stop)
	cancel()
	for range 2 {
		select {
		case err := <-stopped:
			require.NoError(t, err)
			stopped = nil
		case err := <-canceled:
			require.ErrorIs(t, err, context.Canceled)
			canceled = nil
		case err := <-waiting:
			require.NoError(t, err)
			require.Fail(t, "one waits as long as the one that nobody ended", "stopped %t, canceled %t", stopped == nil, canceled == nil)
		}
	}
}

func TestClientOutlivesItsServer(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "nats")
	client := connect(t, st.NATS)
	message := func(i int) []pipeline.Outgoing {
		return []pipeline.Outgoing{{Subject: pipeline.RawSubject("live", "outlive", "x"), ID: strconv.Itoa(i), Body: []byte("{}")}}
	}
	_, err := client.Publish(t.Context(), message(1))
	require.NoError(t, err)
	st.Kill()
	_, err = client.Publish(t.Context(), message(2))
	require.Equal(t, errclass.PipelineUnreachable, jobtest.FailureOf(t, err).Class)
	require.ErrorContains(t, err, st.NATS)
	st.Restart(t)
	stacktest.WaitFor(t, "the client to be back", func() (bool, error) {
		_, err := client.Publish(t.Context(), message(2))
		return err == nil, err
	})
	stream, err := client.JetStream().Stream(t.Context(), pipeline.StreamRaw)
	require.NoError(t, err)
	require.EqualValues(t, 2, stream.CachedInfo().State.Msgs)
}
