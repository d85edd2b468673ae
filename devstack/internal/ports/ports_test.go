package ports_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/devstack/internal/ports"
)

// A stack that is down for a moment finds its ports free when it comes back: stacks that start
// meanwhile pick others.
func TestPortsAreNotPickedAgainSoon(t *testing.T) {
	t.Parallel()
	wants := make([]ports.Want, 11)
	first, err := ports.Reserve(wants)
	require.NoError(t, err)
	given := map[int]bool{}
	for n := range wants {
		given[first.Port(n)] = true
	}
	require.Len(t, given, len(wants))
	first.Done()
	for range 50 {
		later, err := ports.Reserve(wants)
		require.NoError(t, err)
		for n := range wants {
			require.False(t, given[later.Port(n)], "port %d", later.Port(n))
		}
		later.Done()
	}
}
