package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// grown is what a number of jobs cost.
type grown struct {
	jobs  int
	steps []step
}

// writePlanTables writes the steps, and how they grow with jobs, as Markdown.
func writePlanTables(out io.Writer, steps []step, growth []grown) error {
	var b strings.Builder
	b.WriteString("\n| step | time | peak memory | calls | by method |\n|---|---|---|---|---|\n")
	for _, s := range steps {
		fmt.Fprintf(&b, "| %s | %s | %d MB | %d | %s |\n", s.name, seconds(s.took), s.peak>>20, total(s.calls), callsText(s.calls))
	}
	if len(growth) > 0 {
		b.WriteString("\n| jobs |")
		for _, s := range growth[0].steps {
			fmt.Fprintf(&b, " %s | calls | memory |", s.name)
		}
		b.WriteString("\n|---|" + strings.Repeat("---|---|---|", len(growth[0].steps)) + "\n")
		for _, g := range growth {
			fmt.Fprintf(&b, "| %d |", g.jobs)
			for _, s := range g.steps {
				fmt.Fprintf(&b, " %s | %d | %d MB |", seconds(s.took), total(s.calls), s.peak>>20)
			}
			b.WriteString("\n")
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func total(calls map[string]int) int {
	n := 0
	for _, count := range calls {
		n += count
	}
	return n
}

// callsText lists calls by method, the most frequent first.
func callsText(calls map[string]int) string {
	methods := slices.SortedFunc(maps.Keys(calls), func(a, b string) int {
		return cmp.Or(cmp.Compare(calls[b], calls[a]), cmp.Compare(a, b))
	})
	texts := make([]string, len(methods))
	for n, method := range methods {
		texts[n] = fmt.Sprintf("%s %d", method, calls[method])
	}
	return strings.Join(texts, ", ")
}
