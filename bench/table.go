package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// row holds the samples of a case, for each bench.
type row struct {
	benchCase
	samples [][]sample
}

// writeTable writes the medians as a Markdown table.
func writeTable(out io.Writer, benches []*bench, rows []row) error {
	var b strings.Builder
	b.WriteString("\n| work | unit |")
	for _, bench := range benches {
		fmt.Fprintf(&b, " %s | p50 / p95 / p99 / worst |", bench.tuning)
	}
	b.WriteString(" ratio |\n|---|---|" + strings.Repeat("---|---|", len(benches)) + "---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s |", r.name, r.unit)
		medians := make([]float64, len(benches))
		for i, samples := range r.samples {
			medians[i] = median(samples, func(s sample) float64 { return s.PerSecond })
			fmt.Fprintf(&b, " %.1f | %s |", medians[i], latencies(samples))
		}
		fmt.Fprintf(&b, " %.1f |\n", medians[len(medians)-1]/medians[0])
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// latencies are the medians of the rounds, and the worst of all.
func latencies(samples []sample) string {
	p50 := median(samples, func(s sample) float64 { return float64(s.P50) })
	p95 := median(samples, func(s sample) float64 { return float64(s.P95) })
	p99 := median(samples, func(s sample) float64 { return float64(s.P99) })
	if p50 == 0 {
		return "–"
	}
	var worst time.Duration
	for _, s := range samples {
		worst = max(worst, s.Worst)
	}
	const ms = float64(time.Millisecond)
	return fmt.Sprintf("%.0f / %.0f / %.0f / %.0f ms", p50/ms, p95/ms, p99/ms, float64(worst)/ms)
}

func median(samples []sample, value func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = value(s)
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2
	}
	return values[middle]
}
