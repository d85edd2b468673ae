package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// table writes rows in columns. An empty cell is shown as "-". Where the table is too wide
// for the screen, it gives way: times become spans of time, ids are shortened in the middle
// and texts at the end, and columns are left out.
type table struct {
	header []string
	rows   [][]string
	spares []string
}

func newTable(header ...string) *table { return &table{header: header} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// spare names the columns that a narrow screen does without, the least important first.
func (t *table) spare(names ...string) *table {
	t.spares = names
	return t
}

// columnGap is the space between two columns.
const columnGap = 2

// Widths that columns keep that give way.
const (
	leastID   = 24 // the longest ids differ at their ends
	leastRun  = 13
	leastText = 16
	leastWhy  = 24
)

// giving are the columns that may be cut, by their headings.
var giving = map[string]struct {
	least int
	id    bool
}{
	"JOB": {leastID, true}, "QUEUE": {leastID, true}, "SERVICE": {leastID, true}, "OBJECT": {leastID, true}, "KEY": {leastID, true},
	"ID": {leastRun, true}, "RUN ID": {leastRun, true}, "WORKER": {leastRun, true}, "RUNNING": {leastRun, true},
	"NOTE": {leastText, false}, "RESULT": {leastWhy, false}, "ERROR": {leastWhy, false}, "REASON": {leastText, false},
	"DETAIL": {leastText, false}, "TEXT": {leastText, false}, "MESSAGE": {leastText, false}, "DESCRIPTION": {leastText, false},
	"COUNTS": {leastText, false}, "TAGS": {leastText, false}, "WHY": {leastText, false}, "FIELDS": {leastText, false},
	"NAME": {leastText, true}, "JOB TYPE": {leastText, true}, "BELONGS TO": {leastText, true}, "OWNER": {leastText, true},
}

// columns are those of a table that is being fitted.
type columns struct {
	list  []*column
	width int
}

type column struct {
	name  string
	cells []string
	width int // of the widest cell
}

func (c *column) measure() {
	c.width = ansi.StringWidth(c.name)
	for _, cell := range c.cells {
		c.width = max(c.width, ansi.StringWidth(cell))
	}
}

// least is the width that the column keeps.
func (c *column) least() int {
	if g, gives := giving[c.name]; gives {
		return min(c.width, max(g.least, ansi.StringWidth(c.name)))
	}
	return c.width
}

// empty says that no row has anything there.
func (c *column) empty() bool {
	return !slices.ContainsFunc(c.cells, func(cell string) bool { return cell != "-" })
}

// inShort makes times with spans of time, "12:00:00 (2 min ago)", spans alone.
func (c *column) inShort() {
	for n, cell := range c.cells {
		_, span, ok := strings.Cut(strings.TrimSuffix(cell, ")"), " (")
		if ok && strings.HasSuffix(cell, ")") && (strings.HasSuffix(span, " ago") || strings.HasPrefix(span, "in ")) {
			c.cells[n] = span
		}
	}
	c.measure()
}

// cutTo shortens the cells to a width.
func (c *column) cutTo(width int) {
	for n, cell := range c.cells {
		if giving[c.name].id {
			c.cells[n] = shortenedID(cell, width)
		} else {
			c.cells[n] = ansi.Truncate(cell, width, "…")
		}
	}
	c.name = ansi.Truncate(c.name, width, "…")
	c.width = width
}

// shortenedID leaves out the middle of an id: its beginning and its end tell most.
func shortenedID(id string, width int) string {
	have := ansi.StringWidth(id)
	if have <= width || width < 3 {
		return ansi.Truncate(id, width, "")
	}
	end := (width - 1) / 2
	return ansi.Truncate(id, width-1-end, "") + "…" + ansi.TruncateLeft(id, have-end, "")
}

func (cs *columns) sum(of func(*column) int) int {
	sum := columnGap * (len(cs.list) - 1)
	for _, c := range cs.list {
		sum += of(c)
	}
	return sum
}

func natural(c *column) int { return c.width }

// fit makes the columns as narrow as the width asks for, and gives the names of those that
// were left out though they have something to say.
func (cs *columns) fit(spares []string) (left []string) {
	fits := func() bool { return cs.sum(natural) <= cs.width }
	drop := func(c *column) { cs.list = slices.DeleteFunc(cs.list, func(other *column) bool { return other == c }) }
	if cs.width == 0 || fits() {
		return nil
	}
	for _, c := range slices.Clone(cs.list) {
		if slices.Contains(spares, c.name) && c.empty() {
			drop(c)
		}
	}
	for _, c := range cs.list {
		if !fits() {
			c.inShort()
		}
	}
	for _, name := range spares {
		if cs.sum((*column).least) <= cs.width {
			break
		}
		if n := slices.IndexFunc(cs.list, func(c *column) bool { return c.name == name }); n >= 0 {
			left = append(left, name)
			drop(cs.list[n])
		}
	}
	for !fits() && cs.narrow((*column).least) {
	}
	// A very narrow screen cuts everything.
	for !fits() && cs.narrow(func(*column) int { return 1 }) {
	}
	return left
}

// narrow cuts the widest column that may be cut, down to the next widest or as far as there
// is need. It reports false if there is none.
func (cs *columns) narrow(least func(*column) int) bool {
	var widest *column
	next := 0
	for _, c := range cs.list {
		switch {
		case least(c) >= c.width:
		case widest == nil || c.width > widest.width:
			if widest != nil {
				next = widest.width
			}
			widest = c
		default:
			next = max(next, c.width)
		}
	}
	if widest == nil {
		return false
	}
	over := cs.sum(natural) - cs.width
	widest.cutTo(max(least(widest), widest.width-over, min(widest.width-1, next)))
	return true
}

func (t *table) write(w io.Writer) error {
	cs := columns{width: widthOf(w)}
	for n, name := range t.header {
		c := &column{name: name}
		for _, row := range t.rows {
			cell := ""
			if n < len(row) {
				cell = clean(row[n])
			}
			if cell == "" {
				cell = "-"
			}
			c.cells = append(c.cells, cell)
		}
		c.measure()
		cs.list = append(cs.list, c)
	}
	if left := cs.fit(t.spares); len(left) > 0 {
		w.(*screen).note("Left out: %s. --wide shows all columns.", strings.Join(left, ", ")) //nolint:forcetypeassert // Only a screen has a width.
	}
	var b strings.Builder
	for row := -1; row < len(t.rows); row++ {
		for n, c := range cs.list {
			cell := c.name
			if row >= 0 {
				cell = c.cells[row]
			}
			b.WriteString(cell)
			if n < len(cs.list)-1 {
				b.WriteString(strings.Repeat(" ", c.width-ansi.StringWidth(cell)+columnGap))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
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
	indent += columnGap
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
