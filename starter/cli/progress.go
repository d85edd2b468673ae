package cli

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// progressLine shows the progress of a wait on standard error: on a terminal in one line
// that is overwritten, otherwise as a line for every change.
type progressLine struct {
	i        *invocation
	terminal bool
	shown    string
}

func (i *invocation) newProgress() *progressLine {
	return &progressLine{i: i, terminal: i.IsTerminal(i.Stderr)}
}

const eraseLine = "\r\x1b[K"

func (l *progressLine) show(text string, since time.Duration) {
	text = clean(text)
	if !l.terminal {
		if text != l.shown {
			l.i.note("%s", text)
		}
		l.shown = text
		return
	}
	l.shown = text
	line := []rune(fmt.Sprintf("%s  %s", since.Round(time.Second), text))
	if width := l.width(); len(line) > width {
		line = append(line[:width-1], '…')
	}
	_, _ = fmt.Fprint(l.i.Stderr, eraseLine, string(line)) // Its error is harmless.
}

// clear erases the line before other output.
func (l *progressLine) clear() {
	if l.terminal && l.shown != "" {
		_, _ = fmt.Fprint(l.i.Stderr, eraseLine)
	}
	l.shown = ""
}

func (l *progressLine) width() int {
	const usual = 80
	if file, ok := l.i.Stderr.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 1 {
			return width - 1
		}
	}
	return usual
}
