package pipeline_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// TestLoginsThatAreWrong: each variable is named, and no seed is told.
func TestLoginsThatAreWrong(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("SUhunter2\n"), 0o600))
	for name, test := range map[string]struct {
		env  map[string]string
		want []string
	}{
		"no file":  {map[string]string{pipeline.EnvCreds: "/none", pipeline.EnvCA: "/none"}, []string{"DENDRA_NATS_CREDS: open /none", "DENDRA_NATS_CA: open /none"}},
		"two":      {map[string]string{pipeline.EnvCreds: file, pipeline.EnvNKey: file}, []string{"DENDRA_NATS_CREDS and DENDRA_NATS_NKEY are both set"}},
		"no key":   {map[string]string{pipeline.EnvCert: file}, []string{"DENDRA_NATS_CERT and DENDRA_NATS_KEY are set together"}},
		"no seed":  {map[string]string{pipeline.EnvNKey: file}, []string{"DENDRA_NATS_NKEY: " + file + " has no seed of an NKEY"}},
		"no pair":  {map[string]string{pipeline.EnvCert: file, pipeline.EnvKey: file}, []string{"nats://127.0.0.1:1"}},
		"replicas": {map[string]string{pipeline.EnvReplicas: "2"}, []string{"DENDRA_NATS_REPLICAS"}},
	} {
		_, err := pipeline.Connect(t.Context(), "nats://127.0.0.1:1", pipeline.FromEnv(func(name string) string { return test.env[name] }))
		for _, part := range test.want {
			require.ErrorContains(t, err, part, name)
		}
		require.NotContains(t, err.Error(), "hunter2", name)
	}
}
