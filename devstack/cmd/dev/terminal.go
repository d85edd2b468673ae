package main

import (
	"bytes"
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
	t.line("dev", fmt.Appendf(nil, format, args...))
}

func (t *terminal) line(source string, text []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintf(t.w, "%-8s| %s\n", source, text)
}

// prefixed returns a writer whose lines are shown under the name of their source.
func (t *terminal) prefixed(source string) *prefixed {
	return &prefixed{to: t, source: source}
}

// prefixed holds back what is not a whole line yet.
type prefixed struct {
	to     *terminal
	source string

	mu   sync.Mutex
	held bool
	rest []byte
}

// Write shows the whole lines in b.
func (p *prefixed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = append(p.rest, b...)
	if !p.held {
		p.show()
	}
	return len(b), nil
}

// hold keeps all lines back until release.
func (p *prefixed) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = true
}

// release shows the lines that were kept back.
func (p *prefixed) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = false
	p.show()
}

func (p *prefixed) show() {
	for {
		line, rest, whole := bytes.Cut(p.rest, []byte("\n"))
		if !whole {
			return
		}
		p.to.line(p.source, bytes.TrimRight(line, "\r"))
		p.rest = rest
	}
}
