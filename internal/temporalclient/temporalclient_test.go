package temporalclient_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// TestOnlyCallsOverTLSAreCompressed reads the settings of the environment.
func TestOnlyCallsOverTLSAreCompressed(t *testing.T) {
	options, err := temporalclient.Options(temporalclient.Settings{Address: "127.0.0.1:1"})
	require.NoError(t, err)
	require.Equal(t, &client.GrpcCompressionNone{}, options.ConnectionOptions.GrpcCompression)

	t.Setenv("TEMPORAL_TLS", "true")
	options, err = temporalclient.Options(temporalclient.Settings{Address: "127.0.0.1:1"})
	require.NoError(t, err)
	require.Nil(t, options.ConnectionOptions.GrpcCompression, "the SDK compresses")
}
