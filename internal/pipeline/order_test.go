package pipeline_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestFetchInOrder: another reader gets the first message, and does not answer.
func TestFetchInOrder(t *testing.T) {
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
	fetch := func(n int, wait time.Duration) ([]jetstream.Msg, int) {
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
	require.Equal(t, pipeline.Published{Duplicates: 4}, publish(messages...))

	consumer, err := client.Consumer(t.Context(), pipeline.StreamPrepared, pipeline.ConsumerOptions{Name: "load-live-series", Subject: subject})
	require.NoError(t, err)
	stored, err := consumer.Fetch(t.Context(), 6, 5*time.Second, nil)
	require.NoError(t, err)
	require.Equal(t, []int{2, 0, 1, 3, 2, 3}, numbers(t, stored))
}
