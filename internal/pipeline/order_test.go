package pipeline_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// TestFetchInOrder: another reader gets the first message, and does not answer.
func TestFetchInOrder(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.Start(t).NATS)
	subject := pipeline.PrepSubject("live", "fetchinorder")
	consumer, err := client.Consumer(t.Context(), pipeline.StreamPrepared, pipeline.ConsumerOptions{Name: "load-live-fetchinorder", Subject: subject})
	require.NoError(t, err)
	publish := func(from, to int) {
		for n := from; n < to; n++ {
			_, err := client.Publish(t.Context(), []pipeline.Outgoing{{Subject: subject, Body: fmt.Append(nil, n)}})
			require.NoError(t, err)
		}
	}
	fetch := func(n int, wait time.Duration) ([]*pipeline.Delivery, int) {
		messages, rewound, err := consumer.FetchInOrder(t.Context(), n, wait, nil)
		require.NoError(t, err)
		return messages, rewound
	}
	_, err = consumer.Rewind(t.Context())
	require.NoError(t, err)
	publish(0, 2)
	messages, rewound := fetch(2, 5*time.Second)
	require.Equal(t, []int{0, 1}, numbers(t, messages))
	require.Zero(t, rewound)
	require.NoError(t, consumer.Ack(t.Context(), messages))

	same, err := client.JetStream().Consumer(t.Context(), pipeline.StreamPrepared, "load-live-fetchinorder")
	require.NoError(t, err)
	other, err := same.Fetch(1, jetstream.FetchMaxWait(30*time.Second))
	require.NoError(t, err)
	stacktest.WaitFor(t, "the other reader to wait", func() (bool, error) {
		info, err := same.Info(t.Context())
		return err == nil && info.NumWaiting > 0, err
	})
	publish(2, 5)
	require.NotNil(t, <-other.Messages())
	messages, rewound = fetch(2, 5*time.Second)
	require.Empty(t, messages)
	require.Equal(t, 3, rewound)
	_, err = consumer.Rewind(t.Context()) // as the next lap does
	require.NoError(t, err)
	messages, rewound = fetch(3, 5*time.Second)
	require.Equal(t, []int{2, 3, 4}, numbers(t, messages))
	require.Zero(t, rewound)
	require.NoError(t, consumer.Ack(t.Context(), messages))
	messages, rewound = fetch(1, pipeline.MinFetch)
	require.Empty(t, messages)
	require.Zero(t, rewound)
}

// TestSeriesKeepsItsOrder: of an old value and its corrections, the server knows one
// correction only, and drops it.
func TestSeriesKeepsItsOrder(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.Start(t).NATS)
	subject := pipeline.PrepSubject("live", "series")
	var messages []pipeline.Outgoing
	for n := range 4 {
		messages = append(messages, pipeline.Outgoing{Subject: subject, ID: fmt.Sprintf("series %d", n), Body: fmt.Append(nil, n)})
	}
	series := client.Series()
	publish := func(messages ...pipeline.Outgoing) pipeline.Published {
		published, err := series.Publish(t.Context(), messages)
		require.NoError(t, err)
		return published
	}
	require.Equal(t, pipeline.Published{Stored: 1}, publish(messages[2]))
	series = client.Series()
	require.Equal(t, pipeline.Published{Duplicates: 1}, publish(messages[2]), "a repeat is dropped")
	require.Equal(t, pipeline.Published{Stored: 2}, publish(messages[:2]...))
	require.Equal(t, pipeline.Published{Stored: 3, Duplicates: 1}, publish(messages[2:]...), "in the next batch too")
	series = client.Series()
	require.Equal(t, pipeline.Published{Duplicates: 6}, publish(messages...), "of the order too, it is kept")

	consumer, err := client.Consumer(t.Context(), pipeline.StreamPrepared, pipeline.ConsumerOptions{Name: "load-live-series", Subject: subject})
	require.NoError(t, err)
	stored, err := consumer.Fetch(t.Context(), 6, 5*time.Second, nil)
	require.NoError(t, err)
	require.Equal(t, []int{2, 0, 1, 3, 2, 3}, numbers(t, stored))
}

// last is the number on a subject that whoever reads it in order ends with.
func last(t *testing.T, client *pipeline.Client, stream, subject string) int {
	t.Helper()
	s, err := client.JetStream().Stream(t.Context(), stream)
	require.NoError(t, err)
	message, err := s.GetLastMsgForSubject(t.Context(), subject)
	require.NoError(t, err)
	n, err := strconv.Atoi(string(message.Data))
	require.NoError(t, err)
	return n
}

// TestRefusedMessageDoesNotOvertake: the stream is away when the old value is sent,
// and back when its correction is.
func TestRefusedMessageDoesNotOvertake(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.StartOwn(t, "--only", "nats").NATS)
	js, ctx := client.JetStream(), t.Context()
	subject := pipeline.RawSubject("live", "refused", "x")
	value := func(n int) pipeline.Outgoing {
		return pipeline.Outgoing{Subject: subject, ID: fmt.Sprintf("refused %d", n), Body: fmt.Append(nil, n)}
	}
	require.NoError(t, js.DeleteStream(ctx, pipeline.StreamRaw))
	old, err := client.Send(ctx, value(1))
	require.NoError(t, err)
	require.NoError(t, pipeline.Ensure(ctx, js, pipeline.StreamSettings{})) // asked for behind it, over the same connection
	correction, err := client.Send(ctx, value(2))
	require.NoError(t, err)
	ack, err := correction.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, pipeline.Ack{Stream: pipeline.StreamRaw, Sequence: 1}, ack)
	_, err = old.Wait(ctx)
	require.Equal(t, errclass.PipelineUnreachable, jobtest.FailureOf(t, err).Class)

	published, err := client.Series().Publish(ctx, []pipeline.Outgoing{value(1), value(2)})
	require.NoError(t, err)
	require.Equal(t, pipeline.Published{Stored: 2, Duplicates: 1}, published)
	require.Equal(t, 2, last(t, client, pipeline.StreamRaw, subject))
}

// limitSize has a stream refuse messages of more than so many bytes; -1 for no limit.
func limitSize(t *testing.T, client *pipeline.Client, name string, limit int32) {
	t.Helper()
	stream, err := client.JetStream().Stream(t.Context(), name)
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	config.MaxMsgSize = limit
	_, err = client.JetStream().UpdateStream(t.Context(), config)
	require.NoError(t, err)
}

// TestReplayKeepsItsOrder: the first of three items is refused, and those after it
// are not.
func TestReplayKeepsItsOrder(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.StartOwn(t, "--only", "nats").NATS)
	subject := pipeline.PrepSubject("live", "replayorder")
	var messages []pipeline.Quarantined
	for i, body := range []string{strings.Repeat("0", 1000) + "1", "2", "3"} {
		messages = append(messages, refused("replayorder", subject, uint64(1000+i), []byte(body)))
	}
	_, err := client.Quarantine(t.Context(), messages)
	require.NoError(t, err)
	ids := idsOf(itemsOf(t, client, pipeline.ItemFilter{}))
	limitSize(t, client, pipeline.StreamPrepared, 900)
	_, err = client.Replay(t.Context(), ids, nil)
	require.Equal(t, errclass.PipelineUnreachable, jobtest.FailureOf(t, err).Class)
	stream, err := client.JetStream().Stream(t.Context(), pipeline.StreamPrepared)
	require.NoError(t, err)
	stacktest.WaitFor(t, "those behind it to be stored", func() (bool, error) { // The first refusal ends a replay.
		info, err := stream.Info(t.Context())
		return err == nil && info.State.Msgs == 2, err
	})
	require.Equal(t, 3, last(t, client, pipeline.StreamPrepared, subject))
	require.Len(t, itemsOf(t, client, pipeline.ItemFilter{}), 3, "what is behind it stays with it")

	limitSize(t, client, pipeline.StreamPrepared, -1)
	counts, err := client.Replay(t.Context(), ids, nil)
	require.NoError(t, err)
	require.Equal(t, pipeline.Replayed{Published: 3}, counts)
	require.Empty(t, itemsOf(t, client, pipeline.ItemFilter{}))
	stored, _, err := client.Range(t.Context(), pipeline.StreamPrepared, 1, 100, pipeline.Limit{})
	require.NoError(t, err)
	var order []int
	for _, m := range stored {
		n, err := strconv.Atoi(string(m.Body))
		require.NoError(t, err)
		order = append(order, n)
	}
	require.Equal(t, []int{2, 3, 1, 2, 3}, order)
}

// TestReplayIntoStreamMadeAnew: what follows goes out once, though it has lower numbers
// than what was replayed before.
func TestReplayIntoStreamMadeAnew(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.StartOwn(t, "--only", "nats").NATS)
	subject := pipeline.PrepSubject("live", "replayanew")
	var messages []pipeline.Quarantined
	for i := range 40 {
		messages = append(messages, refused("replayanew", subject, uint64(1000+i), fmt.Append(nil, i)))
	}
	_, err := client.Quarantine(t.Context(), messages)
	require.NoError(t, err)
	replaced := 0
	counts, err := client.Replay(t.Context(), idsOf(itemsOf(t, client, pipeline.ItemFilter{})), func(so pipeline.Replayed) {
		if replaced == 0 {
			replaced = so.Published
			require.NoError(t, client.JetStream().DeleteStream(t.Context(), pipeline.StreamPrepared))
			require.NoError(t, pipeline.Ensure(t.Context(), client.JetStream(), pipeline.StreamSettings{}))
		}
	})
	require.NoError(t, err)
	require.Equal(t, pipeline.Replayed{Published: 40}, counts)
	require.Less(t, replaced, 40)
	stored, _, err := client.Range(t.Context(), pipeline.StreamPrepared, 1, 1000, pipeline.Limit{})
	require.NoError(t, err)
	require.Len(t, stored, 40-replaced, "each once")
	for i, m := range stored {
		require.Equal(t, strconv.Itoa(replaced+i), string(m.Body))
	}
}

// TestNothingIsSentAfterTheEnd: also not in the second part of a series.
func TestNothingIsSentAfterTheEnd(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.StartOwn(t, "--only", "nats").NATS)
	subject := pipeline.RawSubject("live", "ended", "x")
	var messages []pipeline.Outgoing
	for n := range 10 {
		messages = append(messages, pipeline.Outgoing{Subject: subject, ID: fmt.Sprintf("ended %d", n), Body: fmt.Append(nil, n)})
	}
	stored := func() int {
		stream, err := client.JetStream().Stream(t.Context(), pipeline.StreamRaw)
		require.NoError(t, err)
		return int(stream.CachedInfo().State.Msgs)
	}
	ended := stacktest.EndsWhenAsked(t.Context(), func() bool { return true })
	_, err := client.Publish(ended, messages)
	require.ErrorIs(t, err, context.Canceled)
	_, err = client.Send(ended, messages[0])
	require.ErrorIs(t, err, context.Canceled)
	_, err = client.Quarantine(ended, []pipeline.Quarantined{refused("ended", subject, 1, []byte("x"))})
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, stored())
	require.Empty(t, itemsOf(t, client, pipeline.ItemFilter{}))

	_, err = client.Publish(t.Context(), messages[9:]) // what the others have to come before
	require.NoError(t, err)
	_, err = client.Series().Publish(stacktest.EndsWhenAsked(t.Context(), func() bool { return stored() == 10 }), messages)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 10, stored())
}

// TestWhatIsRemovedIsMadeAgain: by the next who tries.
func TestWhatIsRemovedIsMadeAgain(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.StartOwn(t, "--only", "nats").NATS)
	js, ctx := client.JetStream(), t.Context()
	message := []pipeline.Outgoing{{Subject: pipeline.RawSubject("live", "removed", "x"), Body: []byte("{}")}}
	for what, c := range map[string]struct {
		remove func() error
		use    func() error
	}{
		"stream": {
			func() error { return js.DeleteStream(ctx, pipeline.StreamRaw) },
			func() error { _, err := client.Publish(ctx, message); return err },
		},
		"stream that is asked for a message": {
			func() error { return js.DeleteStream(ctx, pipeline.StreamPrepared) },
			func() error { _, _, err := client.TimeOf(ctx, pipeline.StreamPrepared, 1); return err },
		},
		"stream that is read": {
			func() error { return js.DeleteStream(ctx, pipeline.StreamPrepared) },
			func() error {
				_, err := client.Consumer(ctx, pipeline.StreamPrepared, pipeline.ConsumerOptions{Name: "removed", Subject: pipeline.PrepSubject("live", "removed")})
				return err
			},
		},
		"bucket of rates": {
			func() error { return js.DeleteKeyValue(ctx, pipeline.BucketRates) },
			func() error { _, _, err := client.Rates().Load(ctx, "key"); return err },
		},
		"bucket": {
			func() error { return js.DeleteKeyValue(ctx, pipeline.BucketBookmarks) },
			func() error { _, err := client.Bookmark(ctx, "key"); return err },
		},
	} {
		require.NoError(t, c.use(), what)
		require.NoError(t, c.remove(), what)
		require.Equal(t, errclass.PipelineUnreachable, jobtest.FailureOf(t, c.use()).Class, what)
		require.NoError(t, c.use(), what)
	}
}
