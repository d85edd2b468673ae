package pipeline_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

func TestStreamSettingsFromEnv(t *testing.T) {
	t.Parallel()
	env := map[string]string{}
	read := func() (pipeline.StreamSettings, error) {
		return pipeline.StreamSettingsFromEnv(func(name string) string { return env[name] })
	}
	settings, err := read()
	require.NoError(t, err)
	require.Equal(t, pipeline.StreamSettings{}, settings)

	env = map[string]string{
		pipeline.EnvReplicas: "3", pipeline.EnvCluster: "east", pipeline.EnvTags: "disk:ssd, zone:a",
		pipeline.EnvRawMaxAge: "P400D", pipeline.EnvRawMaxBytes: "1000000000",
		pipeline.EnvPreparedMaxAge: "PT48H", pipeline.EnvPreparedMaxBytes: "5000000",
		pipeline.EnvQuarantineMaxAge: "P10D", pipeline.EnvQuarantineMaxBytes: "6000000",
	}
	settings, err = read()
	require.NoError(t, err)
	require.Equal(t, pipeline.StreamSettings{
		Replicas: 3, Cluster: "east", Tags: []string{"disk:ssd", "zone:a"},
		RawMaxAge: 400 * 24 * time.Hour, RawMaxBytes: 1_000_000_000,
		PreparedMaxAge: 48 * time.Hour, PreparedMaxBytes: 5_000_000,
		QuarantineMaxAge: 240 * time.Hour, QuarantineMaxBytes: 6_000_000,
	}, settings)

	for name, value := range map[string]string{
		pipeline.EnvReplicas: "2", pipeline.EnvRawMaxAge: "PT1M", pipeline.EnvPreparedMaxAge: "long",
		pipeline.EnvRawMaxBytes: "1G", pipeline.EnvPreparedMaxBytes: "0",
	} {
		env = map[string]string{name: value}
		_, err := read()
		require.ErrorContains(t, err, name+` "`+value+`" is not`)
	}
}
