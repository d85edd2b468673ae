package stacktest

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
)

var discard = slog.New(slog.DiscardHandler)

// output collects what a process writes.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// dumpOnFailure shows the last of the output when the test has failed.
func dumpOnFailure(t testing.TB, name string, o *output) {
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
