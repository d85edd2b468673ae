// Package columns fits tables to the width of a screen.
package columns

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/dendrascience/dendra-jobs/api/plantext"
)

// Fit makes a table as wide as a screen, of any width if that is 0: the lines of the header
// and of the rows. An empty cell is shown as "-". A table that is too wide gives way: times
// become spans of time, ids are shortened in the middle and texts at the end, and spare
// columns are left out, the least important first. Fit gives the names of those that had
// something to say.
func Fit(header []string, rows [][]string, spares []string, width int) (lines, left []string) {
	return fit(header, rows, spares, width, false)
}

// FitWrapped is Fit for a table whose last cells are wrapped where the screen ends, and never
// cut. They may have several lines.
func FitWrapped(header []string, rows [][]string, spares []string, width int) (lines, left []string) {
	return fit(header, rows, spares, width, true)
}

func fit(header []string, rows [][]string, spares []string, width int, wrapLast bool) (lines, left []string) {
	cs := fitted{width: width}
	for n, name := range header {
		c := &column{name: name, title: name, wraps: wrapLast && n == len(header)-1}
		for _, row := range rows {
			cell := ""
			if n < len(row) {
				cell = c.clean(row[n])
			}
			if cell == "" {
				cell = "-"
			}
			c.cells = append(c.cells, cell)
		}
		c.measure()
		cs.list = append(cs.list, c)
	}
	left = cs.fit(spares)
	lines = append(lines, cs.line(func(c *column) string { return c.title }))
	for row := range rows {
		lines = append(lines, cs.line(func(c *column) string { return c.cells[row] }))
	}
	return lines, left
}

func (c *column) clean(cell string) string {
	if !c.wraps {
		return plantext.Clean(cell)
	}
	lines := strings.Split(cell, "\n")
	for n := range lines {
		lines[n] = plantext.Clean(lines[n])
	}
	return strings.Join(lines, "\n")
}

// line is a line of one cell of each column, and those that go on below.
func (cs *fitted) line(of func(*column) string) string {
	var b strings.Builder
	for n, c := range cs.list {
		cell := of(c)
		if c.wraps {
			indent := cs.sum(natural) - c.width
			cell = strings.ReplaceAll(ansi.Wrap(cell, c.width, ""), "\n", "\n"+strings.Repeat(" ", indent))
		}
		b.WriteString(cell)
		if n < len(cs.list)-1 {
			b.WriteString(strings.Repeat(" ", c.width-ansi.StringWidth(cell)+Gap))
		}
	}
	return b.String()
}

// Gap is the space between two columns.
const Gap = 2

// Widths that columns keep that give way.
const (
	leastID   = 24 // the longest ids differ at their ends
	leastRun  = 13
	leastText = 16
	leastWhy  = 24
	leastLine = 30
)

// giving are the columns that may be cut, by their headings.
var giving = map[string]struct {
	least int
	cut   func(text string, width int) string
}{
	"JOB": {leastID, withoutMiddle}, "QUEUE": {leastID, withoutMiddle}, "SERVICE": {leastID, withoutMiddle},
	"OBJECT": {leastID, withoutMiddle}, "KEY": {leastID, withoutMiddle}, "LOAD": {leastID, withoutMiddle}, "CONFIG": {leastID, withoutMiddle},
	"ID": {leastRun, withoutMiddle}, "RUN ID": {leastRun, withoutMiddle}, "WORKER": {leastRun, withoutMiddle}, "RUNNING": {leastRun, withoutMiddle},
	"LOCATION": {leastRun, withoutMiddle}, "MIRROR": {leastRun, withoutMiddle}, "STATION": {leastRun, withoutMiddle}, "ORGANIZATION": {leastRun, withoutMiddle},
	"NAME": {leastText, withoutMiddle}, "JOB TYPE": {leastText, withoutMiddle}, "BELONGS TO": {leastText, withoutMiddle}, "OWNER": {leastText, withoutMiddle},
	"TYPE": {leastText, withoutMiddle}, "SOURCE": {leastText, withoutMiddle},
	"NOTE": {leastText, withoutEnd}, "RESULT": {leastWhy, withoutEnd}, "ERROR": {leastWhy, withoutEnd}, "REASON": {leastText, withoutEnd},
	"DETAIL": {leastText, withoutEnd}, "TEXT": {leastText, withoutEnd}, "MESSAGE": {leastText, withoutEnd}, "DESCRIPTION": {leastText, withoutEnd},
	"COUNTS": {leastText, withoutEnd}, "TAGS": {leastText, withoutEnd}, "WHY": {leastText, withoutEnd}, "FIELDS": {leastText, withoutEnd},
	"WHAT": {leastWhy, withoutEnd}, "HELPS": {leastText, withoutEnd},
	"LATEST RUNS": {leastRun, withoutBeginning},
}

// fitted are the columns of a table that is being fitted.
type fitted struct {
	list  []*column
	width int
}

type column struct {
	name  string
	title string // the name, as far as there is room for it
	cells []string
	wraps bool // a cell goes on below itself, and is not cut
	width int  // of the widest cell
}

func (c *column) measure() {
	c.width = ansi.StringWidth(c.name)
	for _, cell := range c.cells {
		for line := range strings.SplitSeq(cell, "\n") {
			c.width = max(c.width, ansi.StringWidth(line))
		}
	}
}

// least is the width that the column keeps.
func (c *column) least() int {
	if c.wraps {
		return min(c.width, leastLine)
	}
	if g, gives := giving[c.name]; gives {
		return min(c.width, max(g.least, ansi.StringWidth(c.name)))
	}
	return c.width
}

// empty reports whether no row has anything there, or all have nothing but zero.
func (c *column) empty() bool {
	return !slices.ContainsFunc(c.cells, func(cell string) bool { return cell != "-" && cell != "0" })
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
	c.title, c.width = withoutEnd(c.name, width), width
	if c.wraps {
		return
	}
	for n, cell := range c.cells {
		cut := withoutEnd // A very narrow screen cuts all columns.
		if g, gives := giving[c.name]; gives {
			cut = g.cut
		}
		c.cells[n] = cut(cell, width)
	}
}

func withoutEnd(text string, width int) string { return ansi.Truncate(text, width, "…") }

// withoutBeginning leaves out what is oldest.
func withoutBeginning(text string, width int) string {
	return ansi.TruncateLeft(text, max(0, ansi.StringWidth(text)-width), "")
}

// withoutMiddle leaves out the middle of an id: its beginning and its end tell most.
func withoutMiddle(id string, width int) string {
	have := ansi.StringWidth(id)
	if have <= width || width < 3 {
		return ansi.Truncate(id, width, "")
	}
	end := (width - 1) / 2
	return ansi.Truncate(id, width-1-end, "") + "…" + ansi.TruncateLeft(id, have-end, "")
}

func (cs *fitted) sum(of func(*column) int) int {
	sum := Gap * (len(cs.list) - 1)
	for _, c := range cs.list {
		sum += of(c)
	}
	return sum
}

func natural(c *column) int { return c.width }

// fit makes the columns as narrow as the width asks for, and gives the names of those that
// were left out though they have something to say.
func (cs *fitted) fit(spares []string) (left []string) {
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
func (cs *fitted) narrow(least func(*column) int) bool {
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
