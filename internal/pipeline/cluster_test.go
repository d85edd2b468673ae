package pipeline_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// connectCluster makes a client of a cluster, and waits until it has its streams.
func connectCluster(t *testing.T, nodes stacktest.Nodes) *pipeline.Client {
	t.Helper()
	client, err := pipeline.Connect(t.Context(), nodes.URL(), pipeline.WithStreams(pipeline.StreamSettings{Replicas: 3}))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	stacktest.WaitFor(t, "the streams", func() (bool, error) {
		err := client.Ready(t.Context())
		return err == nil, err
	})
	return client
}

// TestCluster goes on with what is there, in streams with three replicas.
func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := stacktest.StartNATSCluster(t)
	client := connectCluster(t, nodes)
	t.Run("fetch", func(t *testing.T) { fetchFromReplicas(t, client) })
	t.Run("ready", func(t *testing.T) { readyWithoutAStream(t, nodes, client) })
}

// fetchFromReplicas: the server's word that a request is over overtakes the messages
// before it, where those wait for a quorum.
func fetchFromReplicas(t *testing.T, client *pipeline.Client) {
	stream, err := client.JetStream().Stream(t.Context(), pipeline.StreamPrepared)
	require.NoError(t, err)
	require.Equal(t, 3, stream.CachedInfo().Config.Replicas)

	const batch, batches = 100, 20
	subject := pipeline.PrepSubject("live", "replicas")
	var messages []pipeline.Outgoing
	for n := range batch * batches {
		messages = append(messages, pipeline.Outgoing{Subject: subject, ID: fmt.Sprint("replicas ", n), Body: fmt.Append(nil, n)})
	}
	_, err = client.Publish(t.Context(), messages)
	require.NoError(t, err)
	for name, limit := range map[string]int{
		"as many as asked for": 4 << 20,
		"as much as asked for": batch * 60, // a message has some 100 bytes
	} {
		consumer, err := client.Consumer(t.Context(), pipeline.StreamPrepared, pipeline.ConsumerOptions{
			Name: fmt.Sprint("load-live-replicas=", limit), Subject: subject, InOrder: true,
		})
		require.NoError(t, err, name)
		_, err = consumer.Rewind(t.Context())
		require.NoError(t, err, name)
		order := consumer.Order()
		for n := 0; n < batch*batches; {
			taken, err := consumer.FetchBytes(t.Context(), batch, limit, 30*time.Second, nil)
			require.NoError(t, err, name)
			require.NotEmpty(t, taken, name)
			require.True(t, order.Follows(taken), name)
			require.Equal(t, n, numbers(t, taken[:1])[0], name)
			require.NoError(t, consumer.Ack(t.Context(), taken), name)
			noted, err := consumer.AckNoted(t.Context(), taken[len(taken)-1])
			require.NoError(t, err, name)
			require.True(t, noted, name)
			n += len(taken)
		}
	}
}

// readyWithoutAStream: a client does not wait for a stream that it does not need, and
// that cannot answer.
func readyWithoutAStream(t *testing.T, nodes stacktest.Nodes, client *pipeline.Client) {
	require.NoError(t, client.JetStream().DeleteStream(t.Context(), pipeline.StreamQuarantine))
	stream, err := client.JetStream().CreateStream(t.Context(), jetstream.StreamConfig{
		Name: pipeline.StreamQuarantine, Subjects: []string{"dendra.quarantine.v1.>"}, Replicas: 1,
	})
	require.NoError(t, err)
	killed := 0
	for _, node := range nodes {
		nc, err := nats.Connect(node.NATS)
		require.NoError(t, err)
		if nc.ConnectedServerName() == stream.CachedInfo().Cluster.Leader {
			node.Kill()
			killed++
		}
		nc.Close()
	}
	require.Equal(t, 1, killed)

	another := connectCluster(t, nodes)
	message := []pipeline.Outgoing{{Subject: pipeline.RawSubject("live", "ready", "x"), Body: []byte("{}")}}
	stacktest.WaitFor(t, "the raw stream to take a message", func() (bool, error) {
		_, err := another.Publish(t.Context(), message)
		return err == nil, err
	})
}
