package pipeline_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

func sequences(messages []pipeline.Stored) []uint64 {
	list := []uint64{}
	for _, m := range messages {
		list = append(list, m.Sequence)
	}
	return list
}

func TestRangeOfAStream(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.StartOwn(t, "--only", "nats").NATS)
	messages, all, err := client.Range(t.Context(), pipeline.StreamRaw, 1, 10, pipeline.Limit{})
	require.NoError(t, err)
	require.True(t, all)
	require.Empty(t, messages)

	const n = 5000 // more than are asked for at a time
	outgoing := make([]pipeline.Outgoing, n)
	for i := range outgoing {
		outgoing[i] = pipeline.Outgoing{Subject: pipeline.RawSubject("live", "range", "x"), Body: fmt.Append(nil, i+1)}
	}
	_, err = client.Publish(t.Context(), outgoing)
	require.NoError(t, err)
	stream, err := client.JetStream().Stream(t.Context(), pipeline.StreamRaw)
	require.NoError(t, err)
	for _, gone := range []uint64{3, 4, 10, n} {
		require.NoError(t, stream.DeleteMsg(t.Context(), gone))
	}
	for _, c := range []struct {
		first, last uint64
		limit       pipeline.Limit
		want        []uint64
		all         bool
	}{
		{1, 6, pipeline.Limit{}, []uint64{1, 2, 5, 6}, true},
		{3, 4, pipeline.Limit{}, []uint64{}, true},
		{8, 10, pipeline.Limit{}, []uint64{8, 9}, true},
		{n - 1, n + 100, pipeline.Limit{}, []uint64{n - 1}, true},
		{n, n, pipeline.Limit{}, []uint64{}, true},
		{n + 1, n + 2, pipeline.Limit{}, []uint64{}, true},
		{1, 100, pipeline.Limit{Messages: 3}, []uint64{1, 2, 5}, false},
		{11, 100, pipeline.Limit{Bytes: 5}, []uint64{11, 12, 13}, false},
		{1, 2, pipeline.Limit{Messages: 2}, []uint64{1, 2}, true},
	} {
		messages, all, err := client.Range(t.Context(), pipeline.StreamRaw, c.first, c.last, c.limit)
		require.NoError(t, err)
		require.Equal(t, c.want, sequences(messages), "%d to %d", c.first, c.last)
		require.Equal(t, c.all, all, "%d to %d", c.first, c.last)
	}
	messages, all, err = client.Range(t.Context(), pipeline.StreamRaw, 1, n, pipeline.Limit{})
	require.NoError(t, err)
	require.True(t, all)
	require.Len(t, messages, n-4)
	require.Equal(t, "7", string(messages[4].Body))
	at, found, err := client.TimeOf(t.Context(), pipeline.StreamRaw, 7)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, messages[4].Time, at)
	_, found, err = client.TimeOf(t.Context(), pipeline.StreamRaw, 4)
	require.NoError(t, err)
	require.False(t, found)
	states, err := client.ConsumerStates(t.Context(), pipeline.StreamRaw)
	require.NoError(t, err)
	require.Empty(t, states, "readers leave nothing behind")
}

// TestALookMakesNothing: whoever looks at the wrong server is told, and leaves it as
// it was.
func TestALookMakesNothing(t *testing.T) {
	t.Parallel()
	client := stacktest.StartOwn(t, "--only", "nats").Pipeline(t)
	streams := func() (names []string) { // buckets are streams too
		lister := client.JetStream().StreamNames(t.Context())
		for name := range lister.Name() {
			names = append(names, name)
		}
		require.NoError(t, lister.Err())
		return names
	}
	for _, name := range streams() {
		require.NoError(t, client.JetStream().DeleteStream(t.Context(), name))
	}
	for what, look := range map[string]func() error{
		"a stream":      func() error { _, err := client.StreamState(t.Context(), pipeline.StreamRaw); return err },
		"its consumers": func() error { _, err := client.ConsumerStates(t.Context(), pipeline.StreamRaw); return err },
		"the loads":     func() error { _, err := client.Loads(t.Context()); return err },
	} {
		err := look()
		require.ErrorIs(t, err, pipeline.ErrNoStream, what)
		require.Equal(t, errclass.PipelineUnreachable, jobtest.FailureOf(t, err).Class, what)
	}
	require.Empty(t, streams())

	// Consumers without a loader that has told anything.
	require.NoError(t, client.Ready(t.Context()))
	_, err := client.Consumer(t.Context(), pipeline.StreamPrepared, pipeline.ConsumerOptions{
		Name: pipeline.LoadConsumer(pipeline.OperationLive, "shelf", "west"), Subject: pipeline.PrepSubject(pipeline.OperationLive, "shelf"),
	})
	require.NoError(t, err)
	loads, err := client.Loads(t.Context())
	require.NoError(t, err)
	require.Len(t, loads, 1)
	require.Equal(t, "west", loads[0].Mirror)

	// Messages that nobody loads, in a flow that somebody should load.
	for operation, location := range map[pipeline.Operation]string{pipeline.OperationLive: "attic", pipeline.OperationTest: "cellar"} {
		_, err := client.JetStream().Publish(t.Context(), pipeline.PrepSubject(operation, location), []byte("{}"))
		require.NoError(t, err)
	}
	loads, err = client.Loads(t.Context())
	require.NoError(t, err)
	require.Len(t, loads, 2)
	require.Equal(t, "attic", loads[0].Location)
	require.Equal(t, pipeline.DefaultMirror, loads[0].Mirror)
	require.EqualValues(t, 1, loads[0].Waiting)
	require.WithinDuration(t, time.Now(), loads[0].Oldest, time.Minute)
}
