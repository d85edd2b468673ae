package main

import (
	"fmt"
	"io"
	"sync"
)

// terminal shows the lines of several processes without mixing them.
type terminal struct {
	mu sync.Mutex
	w  io.Writer
}

func newTerminal(w io.Writer) *terminal { return &terminal{w: w} }

// say shows a line of this program's own.
func (t *terminal) say(format string, args ...any) {
	t.line("dev", fmt.Sprintf(format, args...))
}

// line shows a line under the name of its source.
func (t *terminal) line(source, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintf(t.w, "%-11s | %s\n", source, text)
}
