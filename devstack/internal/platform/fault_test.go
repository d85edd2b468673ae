package platform_test

import (
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	reference "github.com/dendrascience/dendra-jobs/devstack/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
)

// TestAFaultOfTheFeed: shares of the changes are dropped and doubled, the same ones for a
// stream that is resumed, and after a restart. A snapshot is whole.
func TestAFaultOfTheFeed(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{})
	const count = 1000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := a.stream(t, now())
	_, token := s.checkpoint(t)
	s.end()
	require.NoError(t, platformtest.Fault(t.Context(), a.Config, 0.3, 0.1, seed))
	for n := range count {
		a.put(t, organization(n))
	}
	// ids are those of the changes since the token, as they are sent.
	ids := func() (ids []string) {
		changes, _ := a.stream(t, resume(token)).checkpoint(t)
		for _, change := range changes {
			ids = append(ids, change.GetId())
		}
		return ids
	}
	sent := ids()
	times := map[string]int{}
	for _, id := range sent {
		times[id]++
	}
	twice := len(sent) - len(times)
	require.InDelta(t, 0.3*count, count-len(times), 0.08*count)
	require.InDelta(t, 0.1*count, twice, 0.06*count)
	a.restart(t)
	require.Equal(t, sent, ids())
	changes, _ := a.stream(t, snapshot()).checkpoint(t)
	require.Len(t, changes, count)

	require.NoError(t, platformtest.Fault(t.Context(), a.Config, 0, 0, 0))
	require.Len(t, ids(), count)
	require.NoError(t, platformtest.Fault(t.Context(), a.Config, 1, 0, 0))
	require.Empty(t, ids())
	for _, wrong := range [][2]float64{{-0.1, 0}, {0.6, 0.5}} {
		err := platformtest.Fault(t.Context(), a.Config, wrong[0], wrong[1], 0)
		var refused *platformtest.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, http.StatusBadRequest, refused.Status)
		require.ErrorContains(t, err, "drop and double are shares")
	}
}
