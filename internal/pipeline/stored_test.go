package pipeline_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

func sequences(messages []pipeline.Stored) []uint64 {
	list := []uint64{}
	for _, m := range messages {
		list = append(list, m.Sequence)
	}
	return list
}

func TestRangeOfAStream(t *testing.T) {
	client := connect(t, stacktest.StartOwn(t).NATS)
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
