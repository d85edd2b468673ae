package stacktest

import (
	"bytes"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Goroutines labels the goroutine of a test, and returns a function that counts it and
// those that it and they have started since. Those of other tests do not count.
func Goroutines(t testing.TB) func() int {
	t.Helper()
	pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), pprof.Labels("test", t.Name())))
	labels := fmt.Sprintf(`# labels: {"test":%q}`, t.Name())
	return func() int {
		var profile bytes.Buffer
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
		counted, alike := 0, 0
		for line := range strings.Lines(profile.String()) {
			var n int
			if _, err := fmt.Sscanf(line, "%d @", &n); err == nil {
				alike = n // goroutines with the stack and the labels on the next lines
			}
			if strings.TrimSpace(line) == labels {
				counted += alike
			}
		}
		return counted
	}
}
