package cli

import (
	"io"
	"strconv"
)

// screen is what tables and sheets are written to that fit a width.
type screen struct {
	io.Writer
	// width is how many columns there are; 0 means any.
	width int
	// note tells what was left out.
	note func(format string, args ...any)
}

// screen is the standard output for tables and sheets. They fit the terminal. Where there is
// none, they fit the variable COLUMNS, which programs such as watch set, or have any width.
func (i *invocation) screen() *screen {
	s := &screen{Writer: i.out(), note: i.note}
	if i.wide {
		return s
	}
	if s.width = i.Width(i.Stdout); s.width == 0 {
		if columns, err := strconv.Atoi(i.Getenv("COLUMNS")); err == nil && columns > 0 {
			s.width = columns
		}
	}
	return s
}

// widthOf is the width that lines for a writer have to fit, 0 for any.
func widthOf(w io.Writer) int {
	if s, ok := w.(*screen); ok {
		return s.width
	}
	return 0
}
