package pipeline_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/pipeline/pipelinetest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestSeriesKnowsWhoIsBehind publishes more than an eighth of a stream on a subject, for
// consumers of this subject, of all subjects, and of another one.
func TestSeriesKnowsWhoIsBehind(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.StartOwn(t, "--only", "nats").NATS)
	pipelinetest.Shrink(t, client, pipeline.StreamRaw, 1<<20)
	subject := pipeline.RawSubject(pipeline.OperationBulk, "meadow", "csi")
	series := client.Series()
	body := bytes.Repeat([]byte("x"), 1000)
	publish := func(n int) string {
		messages := make([]pipeline.Outgoing, n)
		for i := range messages {
			messages[i] = pipeline.Outgoing{Subject: subject, Body: body}
		}
		_, err := series.Publish(t.Context(), messages)
		require.NoError(t, err)
		behind, err := series.Behind(t.Context())
		require.NoError(t, err)
		return behind
	}
	require.Empty(t, publish(200), "nobody consumes the subject")
	for name, of := range map[string]string{"other": pipeline.RawSubject(pipeline.OperationBulk, "ridge", "csi"), "own": subject, "all": pipeline.RawSubjects} {
		consumer, err := client.Consumer(t.Context(), pipeline.StreamRaw, pipeline.ConsumerOptions{Name: name, Subject: of, InOrder: true})
		require.NoError(t, err)
		if name == "other" {
			require.Empty(t, publish(20), name)
			continue
		}
		require.Regexp(t, "^consumer "+name+" of stream RAW, which is [0-9]+ messages behind$", publish(20))
		messages, err := consumer.Fetch(t.Context(), 1000, pipeline.MinFetch, nil)
		require.NoError(t, err)
		require.NotEmpty(t, messages)
		require.NoError(t, consumer.Ack(t.Context(), messages))
		behind, err := series.Behind(t.Context())
		require.NoError(t, err)
		require.Empty(t, behind)
		require.NoError(t, client.RemoveConsumer(t.Context(), pipeline.StreamRaw, name))
	}
}
