package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// latency compares the settings of the embedded Temporal server. All stacks run
// at the same time and take turns, so that what else the machine does hits all
// of them.
func latency(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("bench latency", flag.ContinueOnError)
	bin := fs.String("bin", "bin", "`folder` of the devstack binary")
	rounds := fs.Int("rounds", 5, "rounds per case; the medians are shown")
	scale := fs.Int("scale", 5, "size of a round: 20, 60, 40 and 8 times this many workflows or messages")
	tunings := fs.String("tunings", "stock,latency", "`settings` to compare, of devstack's --temporal-tuning; the ratio is the last over the first")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *rounds < 1 || *scale < 1 || fs.NArg() > 0 {
		return fmt.Errorf("bench latency takes --rounds and --scale of at least 1, and no arguments")
	}
	binary, err := filepath.Abs(filepath.Join(*bin, "devstack"))
	if err != nil {
		return err
	}
	var benches []*bench
	defer func() {
		for _, b := range benches {
			b.close()
		}
	}()
	for _, tuning := range strings.Split(*tunings, ",") {
		b, err := newBench(ctx, binary, tuning)
		if err != nil {
			return fmt.Errorf("%s: %w", tuning, err)
		}
		benches = append(benches, b)
		_, _ = fmt.Fprintf(out, "%s settings: Temporal %s on %s\n", tuning, b.info.Versions["temporal"], b.info.Temporal)
	}
	return compare(ctx, benches, benchCases(*scale), *rounds, out)
}

// compare runs each case in turns and shows the medians side by side.
func compare(ctx context.Context, benches []*bench, cases []benchCase, rounds int, out io.Writer) error {
	first := loadAverage()
	var rows []row
	for n, bc := range cases {
		r := row{benchCase: bc, samples: make([][]sample, len(benches))}
		for round := range rounds {
			for i := range benches {
				// Every other round in reverse order: no one is always the first.
				if round%2 == 1 {
					i = len(benches) - 1 - i
				}
				b := benches[i]
				s, err := bc.run(ctx, b.client, fmt.Sprintf("bench/%d/%d", n, round))
				if err != nil {
					return fmt.Errorf("%s, %s settings: %w", bc.name, b.tuning, err)
				}
				r.samples[i] = append(r.samples[i], s)
				_, _ = fmt.Fprintf(out, "  %-44s round %d  %-8s %8.1f %s\n", bc.name, round+1, b.tuning, s.PerSecond, bc.unit)
			}
		}
		rows = append(rows, r)
	}
	_, _ = fmt.Fprintf(out, "\nmedians of %d rounds, load average %s to %s\n", rounds, first, loadAverage())
	return writeTable(out, benches, rows)
}

// bench is a stack with a worker in this process.
type bench struct {
	tuning  string
	info    stack.Info
	process *stack.Process
	client  client.Client
	worker  worker.Worker
}

// newBench starts a stack and the worker of the bare loops.
func newBench(ctx context.Context, binary, tuning string) (*bench, error) {
	start, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	info, process, err := stack.Launch(start, binary, []string{"--ephemeral", "--free-ports", "--temporal-tuning", tuning}, io.Discard)
	if err != nil {
		return nil, err
	}
	b := &bench{tuning: tuning, info: info, process: process}
	if err := b.startWorker(ctx); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bench) startWorker(ctx context.Context) (err error) {
	b.client, err = client.DialContext(ctx, client.Options{
		HostPort:  b.info.Temporal,
		Namespace: b.info.Namespace,
		Logger:    log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return err
	}
	w := worker.New(b.client, taskQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(single, workflow.RegisterOptions{Name: singleWorkflow})
	w.RegisterWorkflowWithOptions(serial, workflow.RegisterOptions{Name: serialWorkflow})
	w.RegisterWorkflowWithOptions(timers, workflow.RegisterOptions{Name: timersWorkflow})
	w.RegisterActivityWithOptions(noop, activity.RegisterOptions{Name: noopActivity})
	if err := w.Start(); err != nil {
		return err
	}
	b.worker = w
	// The first workflow pays for what is set up once.
	_, err = callOnce(ctx, b.client, "bench/warm")
	return err
}

func (b *bench) close() {
	if b.worker != nil {
		b.worker.Stop()
	}
	if b.client != nil {
		b.client.Close()
	}
	if b.process != nil { // It is not of a server that was there.
		b.process.Stop(stack.StopGrace)
	}
}
