package stacktest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// seedVariable repeats what a test has drawn.
const seedVariable = "DENDRA_TEST_SEED"

// Random is a source of random numbers whose seed is in the output of the test.
func Random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Logf("%s=%d", seedVariable, seed)
	return rand.New(rand.NewPCG(seed, 0))
}
