package top

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// Widths of columns in characters.
const (
	columnGap = 2
	// A column that has to give way keeps at least this much.
	leastWidth = 8
)

// columnWidths are the widths of columns that fit into a line. Columns that do not fit at
// all have width 0: the last ones go first. A width of 0 or less means any.
func columnWidths(header []string, rows []row, width int) []int {
	widths := make([]int, len(header))
	for n, title := range header {
		widths[n] = ansi.StringWidth(title)
	}
	for _, r := range rows {
		for n, cell := range r.cells {
			widths[n] = max(widths[n], ansi.StringWidth(printable(cell)))
		}
	}
	if width <= 0 {
		return widths
	}
	for over := lineWidth(widths) - width; over > 0; over = lineWidth(widths) - width {
		widest := slices.Index(widths, slices.Max(widths))
		if widths[widest] > leastWidth {
			// It gives way to the next widest, and no further.
			widths[widest] = max(leastWidth, widths[widest]-over, min(widths[widest]-1, secondWidest(widths)))
			continue
		}
		last := len(widths) - 1
		for last > 0 && widths[last] == 0 {
			last--
		}
		if last == 0 {
			widths[0] = width
			break
		}
		widths[last] = 0
	}
	return widths
}

func secondWidest(widths []int) int {
	sorted := slices.Sorted(slices.Values(widths))
	if len(sorted) < 2 {
		return 0
	}
	return sorted[len(sorted)-2]
}

func lineWidth(widths []int) int {
	total := -columnGap
	for _, width := range widths {
		if width > 0 {
			total += width + columnGap
		}
	}
	return total
}

// line is one line of a table.
func line(cells []string, widths []int) string {
	var b strings.Builder
	for n, cell := range cells {
		if widths[n] == 0 {
			continue
		}
		text := cut(printable(cell), widths[n])
		if b.Len() > 0 {
			b.WriteString(strings.Repeat(" ", columnGap))
		}
		b.WriteString(text)
		b.WriteString(strings.Repeat(" ", widths[n]-ansi.StringWidth(text)))
	}
	return strings.TrimRight(b.String(), " ")
}

// cut shortens a text to a width. Its end goes.
func cut(text string, width int) string { return ansi.Truncate(text, width, "…") }

// printable replaces what would control a terminal: texts come from jobs.
func printable(text string) string {
	if text == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, text)
}
