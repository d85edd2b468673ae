package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// mostGrowth is more than some batches of points and what Go keeps besides, and far
// less than a million messages.
const mostGrowth mebibytes = 128

// stall lets messages wait for a mirror that takes connections and never answers,
// beside one that works, and tells what memory the worker needs.
func (b *loader) stall(ctx context.Context, messages int) error {
	silent, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = silent.Close() }()
	location := b.location()
	began := time.Now()
	if err := b.publish(ctx, location, messages, 1); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "  %d messages published in %s\n", messages, time.Since(began).Round(time.Second))
	worker, err := b.startWorker()
	if err != nil {
		return err
	}
	defer worker.Kill()
	spec := fmt.Sprintf("mirrors = [\n  { name = \"good\", influx_url = %q },\n  { name = \"stalled\", influx_url = \"http://%s\" },\n]\n", b.info.Influx, silent.Addr())
	if err := pause(ctx, 3*time.Second); err != nil {
		return err
	}
	idle, err := b.sayMemory("idle, before the job", worker)
	if err != nil {
		return err
	}
	if err := b.apply(ctx, location, spec); err != nil {
		return err
	}
	began = time.Now()
	if _, err := waitAcknowledged(ctx, messages, messages, b.consumerOf(ctx, location, "good")); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "  the good mirror has all after %s\n", time.Since(began).Round(100*time.Millisecond))
	if _, err := b.sayMemory("all waits for the stalled mirror, the good one has it", worker); err != nil {
		return err
	}
	for {
		state, err := b.pipeline.LoadState(ctx, pipeline.OperationLive, location, "stalled")
		if err != nil {
			return err
		}
		if state.Breaker.State == pipeline.BreakerOpen {
			break
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	if _, err := b.sayMemory(fmt.Sprintf("its breaker opened after %s", time.Since(began).Round(time.Second)), worker); err != nil {
		return err
	}
	peak := idle
	for range 3 {
		if err := pause(ctx, 15*time.Second); err != nil {
			return err
		}
		if peak, err = b.sayMemory("15 s later", worker); err != nil {
			return err
		}
	}
	loads, err := b.pipeline.Loads(ctx)
	if err != nil {
		return err
	}
	for _, l := range loads {
		fmt.Fprintf(b.out, "  %s: %d messages wait, breaker %s\n", l.Consumer(), l.Waiting, l.Breaker.State)
	}
	if peak-idle > mostGrowth {
		return fmt.Errorf("the memory of the worker grew by %s under %d messages that wait, more than %s", peak-idle, messages, mostGrowth)
	}
	return nil
}

// sayMemory gives the most that the worker has needed so far.
func (b *loader) sayMemory(when string, worker *stack.Process) (mebibytes, error) {
	peak, err := peakMemory(worker.PID())
	if err != nil {
		return 0, err
	}
	now, err := residentMemory(worker.PID())
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(b.out, "  memory of the worker: %s now, %s at most (%s)\n", now, peak, when)
	return peak, nil
}
