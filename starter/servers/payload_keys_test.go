package servers_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/payloadcodec/payloadcodectest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/starter/servers"
)

// Nothing is asked of a Temporal whose payloads could not be read.
func TestDoctorSaysThatTheFileOfPayloadKeysIsOpen(t *testing.T) {
	t.Parallel()
	file := payloadcodectest.File(t, "one")
	require.NoError(t, os.Chmod(file, 0o644)) //nolint:gosec // That is what is wrong.
	found := servers.Check(t.Context(), servers.Site{
		Temporal: temporalclient.Settings{Address: "127.0.0.1:1", PayloadKeys: file}, Getenv: func(string) string { return "" }, Only: []string{"temporal"},
	})
	require.Len(t, found, 1)
	require.Equal(t, []string{"payload keys", string(servers.StateWrong)}, []string{found[0].Check, string(found[0].State)})
	require.Contains(t, found[0].Found, file+" has mode 0644")
	require.NotEmpty(t, found[0].Cure)
}
