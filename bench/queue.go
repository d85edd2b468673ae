package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// deepQueue is the queue that is filled, and sideQueue one beside it.
const (
	deepQueue = "deep"
	sideQueue = "side"
)

// queueBench works with queues, and keeps what it finds for a table.
type queueBench struct {
	*jobBench
	figures [][2]string
}

// found keeps a figure for the table, and shows it at once.
func (b *queueBench) found(what, format string, args ...any) {
	figure := fmt.Sprintf(format, args...)
	b.figures = append(b.figures, [2]string{what, figure})
	b.say("  %s: %s", what, figure)
}

// queues measures a queue at depth, and against bare loops.
func queues(ctx context.Context, args []string, out io.Writer) (err error) {
	fs := flag.NewFlagSet("bench queue", flag.ContinueOnError)
	bin := fs.String("bin", "bin", "`folder` of the devstack binary")
	items := fs.Int("items", 100_000, "items to put into one queue")
	ends := fs.Int("ends", 3000, "items to run from the front, and from the end after the middle was purged")
	rounds := fs.Int("rounds", 5, "rounds of the comparison with bare loops; the medians are shown; 0 for none")
	messages := fs.Int("messages", 150, "items or messages in a round of the comparison")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 || *ends < 1 || *items < 2**ends || *rounds < 0 || *messages < 1 {
		return fmt.Errorf("bench queue takes --items of at least twice --ends, --rounds and --messages, and no arguments")
	}
	inner, err := newJobBench(ctx, *bin, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inner.close()) }()
	b := &queueBench{jobBench: inner}
	if *rounds > 0 {
		if err := b.compareLoops(ctx, *rounds, *messages); err != nil {
			return err
		}
	}
	b.say("\nload average %s", loadAverage())
	if err := b.deep(ctx, *items, *ends); err != nil {
		return err
	}
	return b.writeFigures()
}

func (b *queueBench) writeFigures() error {
	var text strings.Builder
	text.WriteString("\n| what | figure |\n|---|---|\n")
	for _, figure := range b.figures {
		fmt.Fprintf(&text, "| %s | %s |\n", figure[0], figure[1])
	}
	_, err := io.WriteString(b.out, text.String())
	return err
}

func benchJobs(queue string, n int) []job.Job {
	jobs := make([]job.Job, n)
	for i := range jobs {
		jobs[i] = queuedJob(queue, fmt.Sprintf("%s-%06d", strings.ReplaceAll(queue, "/", "-"), i))
	}
	return jobs
}

// compareLoops gives the same number of messages to a queue and to bare loops, in
// turns.
func (b *queueBench) compareLoops(ctx context.Context, rounds, messages int) error {
	kinds := []struct {
		name string
		run  func(ctx context.Context, id string) (sample, error)
	}{
		{"job queue: a run per item", func(ctx context.Context, id string) (sample, error) { return b.runQueue(ctx, id, messages) }},
		{"bare loop, a child workflow with one activity per message", func(ctx context.Context, id string) (sample, error) {
			return queue(messages, true)(ctx, b.client, id)
		}},
		{"bare loop, an activity per message", func(ctx context.Context, id string) (sample, error) {
			return queue(messages, false)(ctx, b.client, id)
		}},
	}
	first := loadAverage()
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
	b.say("\n| %d rounds of %d, load average %s to %s | items/s | the queue's part of it |\n|---|---|---|", rounds, messages, first, loadAverage())
	for i, kind := range kinds {
		b.say("| %s | %.1f | %.2f |", kind.name, median(samples[i], rate), median(samples[0], rate)/median(samples[i], rate))
	}
	return nil
}

// runQueue puts items into a queue of their own and waits until all have run.
func (b *queueBench) runQueue(ctx context.Context, name string, items int) (sample, error) {
	began := time.Now()
	if _, err := b.jobs.Queues.EnqueueAll(ctx, benchJobs(name, items), client.EnqueueOptions{}, func(int) {}); err != nil {
		return sample{}, err
	}
	state, err := b.await(ctx, name, int64(items))
	if err != nil {
		return sample{}, err
	}
	last := state.Recent[len(state.Recent)-1].Ended
	return sample{PerSecond: float64(items) / last.Sub(began).Seconds()}, nil
}

// state asks a queue for its state, again while a busy machine keeps the worker
// from answering in time.
func (b *queueBench) state(ctx context.Context, name string) (*contract.QueueState, error) {
	for try := 1; ; try++ {
		state, err := b.jobs.Queues.State(ctx, name)
		if try == answerTries || !errors.Is(err, client.ErrNoWorker) || ctx.Err() != nil {
			return state, err
		}
	}
}

// answerTries bounds how often a queue is asked; each try takes ten seconds.
const answerTries = 6

// await waits until so many items of a queue have completed.
func (b *queueBench) await(ctx context.Context, name string, completed int64) (*contract.QueueState, error) {
	for {
		state, err := b.state(ctx, name)
		if err != nil {
			return nil, err
		}
		if state.Failed+state.Skipped > 0 {
			return nil, fmt.Errorf("queue %s: %d items failed, %d were skipped", name, state.Failed, state.Skipped)
		}
		if state.Completed >= completed {
			return state, nil
		}
		if err := sleepUntil(ctx, time.Now().Add(100*time.Millisecond)); err != nil {
			return nil, err
		}
	}
}

// deep fills a queue, runs its front, purges its middle and runs its end.
func (b *queueBench) deep(ctx context.Context, items, ends int) error {
	if _, err := b.jobs.Queues.SetOnFailure(ctx, deepQueue, job.OnFailureContinue); err != nil {
		return err
	}
	if _, err := b.jobs.Queues.Pause(ctx, deepQueue, "bench"); err != nil {
		return err
	}
	jobs, err := b.fill(ctx, benchJobs(deepQueue, items))
	if err != nil {
		return err
	}
	peaks, err := b.peaks()
	if err != nil {
		return err
	}
	b.found("peak memory at full depth", "%s", peaks)
	if err := b.sideAlone(ctx); err != nil {
		return err
	}
	ran, err := b.drainPart(ctx, "the first", jobs, ends)
	if err != nil {
		return err
	}
	if err := b.purgeMiddle(ctx, ran, ends); err != nil {
		return err
	}
	if _, err := b.drainPart(ctx, "the last", jobs[len(jobs)-ends:], ends); err != nil {
		return err
	}
	if err := b.histories(ctx); err != nil {
		return err
	}
	if peaks, err = b.peaks(); err != nil {
		return err
	}
	b.found("peak memory at the end, after all histories were read", "%s", peaks)
	return nil
}

// fill puts the jobs into the paused queue, and one of them once more. It gives the jobs of
// the items: the repeat has a number of its own if its earlier item is in an overflow page by
// then, and runs, since that item is purged.
func (b *queueBench) fill(ctx context.Context, jobs []job.Job) ([]job.Job, error) {
	began := time.Now()
	step := time.Now()
	_, err := b.jobs.Queues.EnqueueAll(ctx, jobs, client.EnqueueOptions{}, func(done int) {
		if time.Since(step) > 10*time.Second {
			step = time.Now()
			b.say("  %d enqueued", done)
		}
	})
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	b.found(fmt.Sprintf("enqueue %d items, one producer", len(jobs)), "%.0f/s, load average %s", float64(len(jobs))/took.Seconds(), loadAverage())
	began = time.Now()
	fresh := client.New(b.client, b.info.Namespace) // It knows nothing of the pages yet.
	repeated := jobs[len(jobs)/2]
	receipt, err := fresh.Queues.Enqueue(ctx, repeated, client.EnqueueOptions{})
	if err != nil {
		return nil, err
	}
	b.found("put in the middle item again, by another caller", "number %d, %d ahead, a repeat of the queue itself: %t, in %s",
		receipt.Sequence, receipt.Ahead, receipt.Duplicate, time.Since(began).Round(time.Millisecond))
	if !receipt.Duplicate {
		jobs = append(jobs, repeated)
	}
	return jobs, nil
}

// purgeMiddle removes all but the last items of a queue of which so many have run.
func (b *queueBench) purgeMiddle(ctx context.Context, ran, ends int) error {
	state, err := b.state(ctx, deepQueue)
	if err != nil {
		return err
	}
	began := time.Now()
	removed, err := b.jobs.Queues.Purge(ctx, deepQueue, 1, state.Accepted-int64(ends))
	if err != nil {
		return err
	}
	answered := time.Since(began)
	if int64(removed) != state.Accepted-int64(ran)-int64(ends) {
		return fmt.Errorf("%d items were purged of %d, of which %d had run and %d were to stay", removed, state.Accepted, ran, ends)
	}
	for { // Until the pages have been told to end.
		if state, err = b.state(ctx, deepQueue); err != nil {
			return err
		}
		if len(state.Overflow.Released) == 0 {
			b.found(fmt.Sprintf("purge of %d items", removed), "%s until it is answered; their pages end within the next %s",
				answered.Round(time.Millisecond), time.Since(began).Round(time.Second))
			return nil
		}
		if err := sleepUntil(ctx, time.Now().Add(200*time.Millisecond)); err != nil {
			return err
		}
	}
}

// drainPart resumes the queue, waits until so many more items have completed, and
// pauses it, while items in another queue are timed. It checks by the ledger that
// what ran are the first of the jobs, in order, each once and one at a time, and
// gives how many these were.
func (b *queueBench) drainPart(ctx context.Context, which string, jobs []job.Job, items int) (int, error) {
	before, err := b.state(ctx, deepQueue)
	if err != nil {
		return 0, err
	}
	book, err := b.ledger.read(ofQueue(deepQueue))
	if err != nil {
		return 0, err
	}
	side := b.startSide(ctx, strings.ReplaceAll(which, " ", "-"))
	began := time.Now()
	_, err = b.jobs.Queues.Resume(ctx, deepQueue)
	if err == nil {
		_, err = b.await(ctx, deepQueue, before.Completed+int64(items))
	}
	took := time.Since(began)
	delays, sideErr := side.stop(ctx, b.ledger)
	if err := errors.Join(err, sideErr); err != nil {
		return 0, err
	}
	state, err := b.restQueue(ctx)
	if err != nil {
		return 0, err
	}
	ran := int(state.Completed - before.Completed)
	lines, err := b.ledger.read(ofQueue(deepQueue))
	if err != nil {
		return 0, err
	}
	if err := checkSerial(lines[len(book):], jobs[:ran]); err != nil {
		return 0, err
	}
	b.found(fmt.Sprintf("%s %d items", which, items), "%.1f/s, load average %s; by the ledger of their handlers all %d in order, each once, one at a time",
		float64(items)/took.Seconds(), loadAverage(), ran)
	b.foundDelays("meanwhile", delays)
	return ran, nil
}

// restQueue pauses the queue and waits until nothing of it runs.
func (b *queueBench) restQueue(ctx context.Context) (*contract.QueueState, error) {
	if _, err := b.jobs.Queues.Pause(ctx, deepQueue, "bench"); err != nil {
		return nil, err
	}
	for {
		state, err := b.state(ctx, deepQueue)
		if err != nil || state.Running == nil {
			return state, err
		}
		if err := sleepUntil(ctx, time.Now().Add(50*time.Millisecond)); err != nil {
			return nil, err
		}
	}
}

// ofQueue keeps the lines of a queue's items.
func ofQueue(queue string) func(noted) bool {
	prefix := job.ID(benchType, queue+"-")
	return func(n noted) bool { return strings.HasPrefix(n.jobID, prefix) }
}
