package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// failoverBench has workers die and shut down, and measures how long others take
// to go on.
type failoverBench struct {
	*bench
	jobs    *client.Client
	bin     string
	folder  string // of the ledgers
	out     io.Writer
	round   int
	figures []*failoverFigure
}

// failoverFigure is one thing that is measured, once in each round.
type failoverFigure struct {
	what, aim string
	took      []time.Duration
}

// failover measures the loss of workers.
func failover(ctx context.Context, args []string, out io.Writer) (err error) {
	fs := flag.NewFlagSet("bench failover", flag.ContinueOnError)
	bin := fs.String("bin", "bin", "`folder` of the binaries devstack and backend")
	rounds := fs.Int("rounds", 3, "rounds; the medians are shown")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 || *rounds < 1 {
		return errors.New("bench failover takes --rounds of at least 1, and no arguments")
	}
	folder, err := filepath.Abs(*bin)
	if err != nil {
		return err
	}
	first := loadAverage()
	b := &failoverBench{bin: folder, out: out}
	for b.round = range *rounds {
		if err := b.measure(ctx); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(out, "\nmedians of %d rounds, load average %s to %s\n", *rounds, first, loadAverage())
	return b.write()
}

// measure runs a round, on a stack of its own.
func (b *failoverBench) measure(ctx context.Context) (err error) {
	const longest = 10 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if b.bench, err = newBench(ctx, filepath.Join(b.bin, "devstack"), "latency"); err != nil {
		return err
	}
	defer b.close()
	b.jobs = client.New(b.client, b.info.Namespace)
	for _, measured := range []func(context.Context) error{b.killedPhoto, b.lastTask, b.drainOfTen, b.boundRun} {
		if err := b.withLedgers(func() error { return measured(ctx) }); err != nil {
			return fmt.Errorf("round %d: %w", b.round+1, err)
		}
	}
	return nil
}

// found keeps a figure for the table, and shows it at once.
func (b *failoverBench) found(what, aim string, took time.Duration) {
	n := slices.IndexFunc(b.figures, func(f *failoverFigure) bool { return f.what == what })
	if n < 0 {
		n = len(b.figures)
		b.figures = append(b.figures, &failoverFigure{what: what, aim: aim})
	}
	b.figures[n].took = append(b.figures[n].took, took)
	_, _ = fmt.Fprintf(b.out, "  round %d  %s: %s\n", b.round+1, what, roundedTime(took)) // Progress for people.
}

// write writes the medians as a Markdown table.
func (b *failoverBench) write() error {
	var text strings.Builder
	text.WriteString("\n| what | aim | median | each round |\n|---|---|---|---|\n")
	for _, f := range b.figures {
		each := make([]string, len(f.took))
		samples := make([]sample, len(f.took))
		for n, took := range f.took {
			each[n], samples[n].P50 = roundedTime(took), took
		}
		middle := time.Duration(median(samples, func(s sample) float64 { return float64(s.P50) }))
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", f.what, f.aim, roundedTime(middle), strings.Join(each, ", "))
	}
	_, err := io.WriteString(b.out, text.String())
	return err
}

// until waits for a condition.
func until(ctx context.Context, what string, holds func() (bool, error)) error {
	for {
		ok, err := holds()
		if ok || err != nil {
			return err
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
	}
}

// exited waits until a process has ended.
func exited(ctx context.Context, p *stack.Process) error {
	select {
	case <-p.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for process %d to end: %w", p.PID(), ctx.Err())
	}
}
