package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// closedPort is an address that nothing listens on.
func closedPort(t *testing.T) string {
	t.Helper()
	return "127.0.0.1:" + stacktest.FreePort(t)
}

func TestUnreachableServerIsNamedAndRetryable(t *testing.T) {
	t.Parallel()
	address := closedPort(t)
	client, err := pipeline.Connect(t.Context(), "nats://user:hidden@"+address)
	require.NoError(t, err, "a worker starts before its servers")
	defer client.Close()

	_, err = client.Publish(t.Context(), []pipeline.Outgoing{{Subject: "dendra.raw.v1.live.a.b", Body: []byte("{}")}})
	require.ErrorContains(t, err, address)
	require.NotContains(t, err.Error(), "hidden")
	failure := jobtest.FailureOf(t, err)
	require.False(t, failure.Kind.Final())
	require.Equal(t, errclass.PipelineUnreachable, failure.Class)
}

func TestCredentialsAreNotShown(t *testing.T) {
	t.Parallel()
	address := closedPort(t)
	for _, credentials := range []string{"s3cr3t", "user:s3cr3t", ":s3cr3t", "s3cr3t:"} {
		client, err := pipeline.Connect(t.Context(), "nats://"+credentials+"@"+address)
		require.NoError(t, err)
		t.Cleanup(client.Close)
		require.Contains(t, client.Address(), address)
		require.NotContains(t, client.Address(), "s3cr3t", credentials)
	}
}

func TestBadURL(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "127.0.0.1", "nats://", "nats://a:secret@%zz"} {
		_, err := pipeline.Connect(t.Context(), bad)
		require.ErrorContains(t, err, pipeline.EnvURL, bad)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestURLFromEnv(t *testing.T) {
	t.Parallel()
	for value, url := range map[string]string{"": "nats://127.0.0.1:4222", "nats://127.0.0.1:5": "nats://127.0.0.1:5"} {
		require.Equal(t, url, pipeline.URLFromEnv(func(name string) string { return map[string]string{pipeline.EnvURL: value}[name] }))
	}
}
