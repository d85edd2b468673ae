package stacktest

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// connection is in the stack of what serves an HTTP connection, at either end.
var connection = regexp.MustCompile(`net/http\.\(\*(persistConn|conn|connReader)\)\.`)

// Goroutines labels the goroutine of a test, and returns a function that counts it and
// those that it and they have started since. Those of other tests do not count, and
// those of HTTP connections neither: a pool keeps some for a while.
func Goroutines(t testing.TB) func() int {
	t.Helper()
	pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), pprof.Labels("test", t.Name())))
	labels := fmt.Sprintf(`# labels: {"test":%q}`, t.Name())
	return func() int {
		var profile bytes.Buffer
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
		counted, alike, own := 0, 0, false
		for line := range strings.Lines(profile.String()) {
			var n int
			if _, err := fmt.Sscanf(line, "%d @", &n); err == nil {
				alike, own = n, false // goroutines with the labels and the stack on the next lines
			}
			switch {
			case strings.TrimSpace(line) == labels:
				counted += alike
				own = true
			case own && connection.MatchString(line):
				counted -= alike
				own = false
			}
		}
		return counted
	}
}
