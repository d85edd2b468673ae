package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestSamplesOutliveNATS: what was kept is there after NATS was killed. The last one to write wins.
func TestSamplesOutliveNATS(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "nats")
	one, other := pipeline.NewSamples(st.Pipeline(t)), pipeline.NewSamples(st.Pipeline(t))
	none, err := one.Load(t.Context())
	require.NoError(t, err, "there is no bucket yet")
	require.Empty(t, none)
	const name = "queue/photos of ridge.*>" // It is no valid key of NATS.
	require.NoError(t, one.Save(t.Context(), name, []byte("first")))
	require.NoError(t, other.Save(t.Context(), name, []byte("second")))
	require.NoError(t, one.Save(t.Context(), "load/main", []byte("third")))

	st.Kill()
	st.Restart(t)
	kept := map[string][]byte{name: []byte("second"), "load/main": []byte("third")}
	stacktest.WaitFor(t, "what was kept", func() (bool, error) {
		all, err := one.Load(t.Context())
		if err != nil {
			return false, err
		}
		require.Equal(t, kept, all)
		return true, nil
	})
	require.NoError(t, other.Save(t.Context(), name, []byte("fourth")), "both go on")
}
