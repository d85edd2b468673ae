package stacktest

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
)

var discard = slog.New(slog.DiscardHandler)

// Output collects what a process or several goroutines write, and is read meanwhile.
type Output struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

// String is what was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// dumpOnFailure shows the last of the output when the test has failed.
func dumpOnFailure(t testing.TB, name string, o *Output) {
	const most = 20_000 // bytes
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		text := o.String()
		if len(text) > most {
			text = "…" + text[len(text)-most:]
		}
		t.Logf("output of %s:\n%s", name, text)
	})
}
