package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/dendrascience/dendra-jobs/starter/columns"
)

// table writes rows in columns, which fit the screen as [columns.Fit] says.
type table struct {
	header []string
	rows   [][]string
	spares []string
	wraps  bool // the last cells
}

func newTable(header ...string) *table { return &table{header: header} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// spare names the columns that a narrow screen does without, the least important first.
func (t *table) spare(names ...string) *table {
	t.spares = names
	return t
}

// wrapLast has the last cells go on below themselves, and not be cut.
func (t *table) wrapLast() *table {
	t.wraps = true
	return t
}

// withCure is a text and, in a line below, what helps.
func withCure(text, cure string) string {
	if cure == "" {
		return text
	}
	return text + "\n→ " + cure
}

func (t *table) write(w io.Writer) error {
	fit := columns.Fit
	if t.wraps {
		fit = columns.FitWrapped
	}
	lines, left := fit(t.header, t.rows, t.spares, widthOf(w))
	noteLeft(w, left)
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// noteLeft tells which columns the screen had no room for.
func noteLeft(w io.Writer, left []string) {
	if len(left) > 0 {
		w.(*screen).note("Left out: %s. --wide shows all columns.", strings.Join(left, ", ")) //nolint:forcetypeassert // Only a screen has a width.
	}
}

// section writes a headline and a table, if it has rows.
func (t *table) section(w io.Writer, headline string) error {
	if len(t.rows) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(w, "\n%s\n", headline); err != nil {
		return err
	}
	return t.write(w)
}

// sheet writes names and values under each other. Rows without a value are left out. Lines
// that are too long for the screen are broken between words.
type sheet struct {
	names, values []string
}

func (s *sheet) add(name, format string, args ...any) {
	if value := fmt.Sprintf(format, args...); value != "" {
		s.names, s.values = append(s.names, name), append(s.values, value)
	}
}

// leastValue is the width that values keep on a very narrow screen.
const leastValue = 20

func (s *sheet) write(w io.Writer) error {
	indent := 0
	for _, name := range s.names {
		indent = max(indent, ansi.StringWidth(name))
	}
	indent += columns.Gap
	width := widthOf(w)
	var b strings.Builder
	for n, name := range s.names {
		for line := range strings.SplitSeq(s.values[n], "\n") {
			text := clean(line)
			if room := max(width-indent, leastValue); width > 0 && ansi.StringWidth(text) > room {
				text = ansi.Hardwrap(ansi.Wordwrap(text, room, ""), room, true) // Ids may be longer.
			}
			for part := range strings.SplitSeq(text, "\n") {
				b.WriteString(name + strings.Repeat(" ", indent-ansi.StringWidth(name)) + part + "\n")
				name = ""
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
