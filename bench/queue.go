package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules/control"
	"github.com/dendrascience/dendra-jobs/workers"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// workerVariable makes this program the worker of its own bench.
const workerVariable = "DENDRA_BENCH_WORKER"

// deepQueue is the queue that is filled, and sideQueue one beside it.
const (
	deepQueue = "deep"
	sideQueue = "side"
	benchType = "BenchNothing"
)

// queueBench is a stack, a worker process, and this process as the producer.
type queueBench struct {
	*bench
	control *control.Client
	worker  *exec.Cmd
	out     io.Writer
}

// queues measures a queue at depth, and against bare loops.
func queues(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("bench queue", flag.ContinueOnError)
	bin := fs.String("bin", "bin", "`folder` of the devstack binary")
	items := fs.Int("items", 100_000, "items to put into one queue")
	ends := fs.Int("ends", 3000, "items to run from the front, and from the end after the middle was purged")
	rounds := fs.Int("rounds", 5, "rounds of the comparison with bare loops; the medians are shown")
	messages := fs.Int("messages", 150, "items or messages in a round of the comparison")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 || *ends < 1 || *items < 2**ends || *rounds < 0 || *messages < 1 {
		return fmt.Errorf("bench queue takes --items of at least twice --ends, --rounds and --messages, and no arguments")
	}
	binary, err := filepath.Abs(filepath.Join(*bin, "devstack"))
	if err != nil {
		return err
	}
	inner, err := newBench(ctx, binary, "latency")
	if err != nil {
		return err
	}
	defer inner.close()
	b := &queueBench{bench: inner, control: control.New(inner.client, inner.info.Namespace), out: out}
	if err := b.startQueueWorker(ctx); err != nil {
		return err
	}
	defer b.stopQueueWorker()
	if *rounds > 0 {
		if err := b.compareLoops(ctx, *rounds, *messages); err != nil {
			return err
		}
	}
	if err := b.deep(ctx, *items, *ends); err != nil {
		return err
	}
	return b.memory()
}

// benchWorker serves the job type that does nothing.
func benchWorker() {
	workers.Main(workers.Program{
		Worker: "bench-queue",
		Types: func(workers.Environment) ([]job.Type, error) {
			return []job.Type{job.NewType(benchType, "bench-queue", "Does nothing.",
				func(context.Context, job.Run, struct{}) (job.Result, error) { return job.Result{}, nil })}, nil
		},
	})
}

func (b *queueBench) startQueueWorker(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b.worker = exec.CommandContext(ctx, self, "--address", b.info.Temporal, "--namespace", b.info.Namespace, "--log-level", "warn") //nolint:gosec // This program itself.
	b.worker.Env = append(os.Environ(), workerVariable+"=1")
	b.worker.Stderr = os.Stderr
	if err := b.worker.Start(); err != nil {
		return err
	}
	// The first item pays for what is set up once.
	if _, err := b.control.Enqueue(ctx, benchJob(sideQueue, "warm"), false); err != nil {
		return err
	}
	return b.control.AwaitEmpty(ctx, sideQueue, func(*workflows.QueueState) {})
}

func (b *queueBench) stopQueueWorker() {
	if err := b.worker.Process.Signal(os.Interrupt); err != nil {
		slog.Warn("the worker cannot be stopped", "error", err)
	}
	_ = b.worker.Wait() // It has been told.
}

func benchJob(queue, key string) job.Job {
	schedule := job.Schedule{Queued: &job.Queued{Queue: queue}}
	return job.Job{
		ID: job.ID(benchType, key), Type: benchType, Worker: "bench-queue", Provider: job.ProviderAPI,
		Spec: []byte("{}"), Schedule: schedule, Options: job.DefaultOptions(job.ModeQueued),
	}
}

func benchJobs(queue string, n int) []job.Job {
	jobs := make([]job.Job, n)
	for i := range jobs {
		jobs[i] = benchJob(queue, fmt.Sprintf("%s-%06d", strings.ReplaceAll(queue, "/", "-"), i))
	}
	return jobs
}

func (b *queueBench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.out, format+"\n", args...) // Progress for people.
}

// compareLoops gives the same number of messages to a queue and to bare loops, in
// turns.
func (b *queueBench) compareLoops(ctx context.Context, rounds, messages int) error {
	kinds := []struct {
		name string
		run  func(ctx context.Context, id string) (sample, error)
	}{
		{"queue, a run per item", func(ctx context.Context, id string) (sample, error) { return b.runQueue(ctx, id, messages) }},
		{"bare loop, a child workflow with one activity per message", func(ctx context.Context, id string) (sample, error) {
			return queue(messages, true)(ctx, b.client, id)
		}},
		{"bare loop, an activity per message", func(ctx context.Context, id string) (sample, error) {
			return queue(messages, false)(ctx, b.client, id)
		}},
	}
	samples := make([][]sample, len(kinds))
	for round := range rounds {
		for i := range kinds {
			if round%2 == 1 {
				i = len(kinds) - 1 - i
			}
			s, err := kinds[i].run(ctx, fmt.Sprintf("loop-%d-%d", round, i))
			if err != nil {
				return fmt.Errorf("%s: %w", kinds[i].name, err)
			}
			samples[i] = append(samples[i], s)
			b.say("  round %d  %-58s %6.1f/s", round+1, kinds[i].name, s.PerSecond)
		}
	}
	rate := func(s sample) float64 { return s.PerSecond }
	b.say("\n| work | items/s | the queue's part of it |\n|---|---|---|")
	for i, kind := range kinds {
		b.say("| %s | %.1f | %.2f |", kind.name, median(samples[i], rate), median(samples[0], rate)/median(samples[i], rate))
	}
	return nil
}

// runQueue puts items into a queue of their own and waits until all have run.
func (b *queueBench) runQueue(ctx context.Context, name string, items int) (sample, error) {
	began := time.Now()
	if _, err := b.control.EnqueueAll(ctx, benchJobs(name, items), false, func(int) {}); err != nil {
		return sample{}, err
	}
	state, err := b.await(ctx, name, int64(items))
	if err != nil {
		return sample{}, err
	}
	last := state.Recent[len(state.Recent)-1].Ended
	return sample{PerSecond: float64(items) / last.Sub(began).Seconds()}, nil
}

// await waits until so many items of a queue have completed.
func (b *queueBench) await(ctx context.Context, name string, completed int64) (*workflows.QueueState, error) {
	for {
		state, err := b.control.QueueState(ctx, name)
		if err != nil {
			return nil, err
		}
		if state.Failed+state.Skipped > 0 {
			return nil, fmt.Errorf("queue %s: %d items failed, %d were skipped", name, state.Failed, state.Skipped)
		}
		if state.Completed >= completed {
			return state, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// deep fills a queue, runs its front, purges its middle and runs its end.
func (b *queueBench) deep(ctx context.Context, items, ends int) error {
	if _, err := b.control.SetOnFailure(ctx, deepQueue, job.OnFailureContinue); err != nil {
		return err
	}
	if _, err := b.control.PauseQueue(ctx, deepQueue, "bench"); err != nil {
		return err
	}
	began := time.Now()
	step := time.Now()
	_, err := b.control.EnqueueAll(ctx, benchJobs(deepQueue, items), false, func(done int) {
		if time.Since(step) > 10*time.Second {
			step = time.Now()
			b.say("  %d enqueued", done)
		}
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	b.say("\nenqueued %d items in %s: %.0f/s", items, took.Round(time.Second), float64(items)/took.Seconds())
	began = time.Now()
	fresh := control.New(b.client, b.info.Namespace) // It knows nothing of the pages yet.
	receipt, err := fresh.Enqueue(ctx, benchJob(deepQueue, fmt.Sprintf("%s-%06d", deepQueue, items/2)), false)
	if err != nil {
		return err
	}
	b.say("the middle item once more, by another caller: known as number %d, %d ahead, in %s", receipt.Sequence, receipt.Ahead, time.Since(began).Round(time.Millisecond))
	b.say("memory at full depth:")
	if err := b.memory(); err != nil {
		return err
	}
	if err := b.drainPart(ctx, "the first", int64(ends)); err != nil {
		return err
	}
	if _, err := b.control.PauseQueue(ctx, deepQueue, "bench"); err != nil {
		return err
	}
	if err := b.purgeMiddle(ctx, ends); err != nil {
		return err
	}
	state, err := b.control.QueueState(ctx, deepQueue)
	if err != nil {
		return err
	}
	if err := b.drainPart(ctx, "the last", int64(state.Depth())); err != nil {
		return err
	}
	return b.histories(ctx)
}

func (b *queueBench) purgeMiddle(ctx context.Context, ends int) error {
	state, err := b.control.QueueState(ctx, deepQueue)
	if err != nil {
		return err
	}
	began := time.Now()
	removed, err := b.control.Purge(ctx, deepQueue, 1, state.Accepted-int64(ends))
	if err != nil {
		return err
	}
	b.say("purged %d items in %s", removed, time.Since(began).Round(time.Millisecond))
	for { // Until the pages have been told to end.
		if state, err = b.control.QueueState(ctx, deepQueue); err != nil {
			return err
		}
		if len(state.Parked.Released) == 0 {
			b.say("all pages of the middle were released after %s", time.Since(began).Round(time.Second))
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// drainPart resumes the queue and waits until so many more items have completed,
// while items in another queue are timed.
func (b *queueBench) drainPart(ctx context.Context, which string, items int64) error {
	before, err := b.control.QueueState(ctx, deepQueue)
	if err != nil {
		return err
	}
	side, stop := context.WithCancel(ctx)
	sideTook := make(chan []time.Duration, 1)
	go func() { sideTook <- b.timeSide(side, which) }()
	began := time.Now()
	if _, err := b.control.ResumeQueue(ctx, deepQueue); err != nil {
		stop()
		return err
	}
	state, err := b.await(ctx, deepQueue, before.Completed+items)
	stop()
	if err != nil {
		return err
	}
	took := time.Since(began)
	b.say("%s %d items in %s: %.1f/s; an item in another queue meanwhile took %s",
		which, state.Completed-before.Completed, took.Round(time.Second),
		float64(state.Completed-before.Completed)/took.Seconds(), spread(<-sideTook))
	return nil
}

// timeSide puts an item into another queue every second, and gives how long each
// took from then until it had run.
func (b *queueBench) timeSide(ctx context.Context, which string) []time.Duration {
	var took []time.Duration
	for n := 0; ; n++ {
		began := time.Now()
		receipt, err := b.control.Enqueue(ctx, benchJob(sideQueue, fmt.Sprintf("%s-%04d", strings.ReplaceAll(which, " ", "-"), n)), false)
		if err != nil {
			return took
		}
		for ended := false; !ended; {
			state, err := b.control.QueueState(ctx, sideQueue)
			if err != nil {
				return took
			}
			if last := len(state.Recent) - 1; last >= 0 && state.Recent[last].Sequence == receipt.Sequence {
				took = append(took, state.Recent[last].Ended.Sub(began))
				ended = true
			}
		}
		select {
		case <-ctx.Done():
			return took
		case <-time.After(time.Second):
		}
	}
}
