package stacktest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

func TestASeedRepeatsWhatWasDrawn(t *testing.T) {
	t.Setenv("DENDRA_TEST_SEED", "7")
	first := stacktest.Random(t).Uint64()
	require.Equal(t, first, stacktest.Random(t).Uint64())
	t.Setenv("DENDRA_TEST_SEED", "")
	require.NotEqual(t, stacktest.Random(t).Uint64(), stacktest.Random(t).Uint64())
}
