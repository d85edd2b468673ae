package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stack"
	"github.com/dendrascience/dendra-jobs/job"
)

// serversVariable lists the processes whose time counts as the servers', separated by
// commas. soak cluster --run sets it.
const serversVariable = "SOAK_SERVER_PIDS"

// The cases of bench servers.
const (
	oneShotCallers = 20
	delayed        = 20 // recurring jobs
	delayedEvery   = 5 * time.Second
	delayedFor     = 6 * delayedEvery
)

// servers measures the product on any Temporal: one-shots, a queue and recurring jobs.
func servers(ctx context.Context, args []string, out io.Writer) (err error) {
	fs := flag.NewFlagSet("bench servers", flag.ContinueOnError)
	bin := fs.String("bin", "bin", "`folder` of the devstack binary")
	address := fs.String("temporal", "", "`address` of the Temporal to measure (default: an embedded stack)")
	runs := fs.Int("runs", 200, "one-shots, and items of the queue")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 || *runs < oneShotCallers {
		return fmt.Errorf("bench servers takes --runs of at least %d, and no arguments", oneShotCallers)
	}
	var b *jobBench
	if *address == "" {
		b, err = newJobBench(ctx, *bin, out)
	} else {
		b, err = newJobBenchOn(ctx, &bench{info: stack.Info{Temporal: *address, Namespace: "default"}}, out)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	q := &queueBench{jobBench: b}
	load := loadAverage()
	before, began := b.serverTime(), time.Now()
	if err := b.oneShots(ctx, *runs); err != nil {
		return err
	}
	oneShots := float64(*runs) / time.Since(began).Seconds()
	perRun := (b.serverTime() - before) / time.Duration(*runs)
	before = b.serverTime()
	items, err := q.runQueue(ctx, "measured", *runs)
	if err != nil {
		return err
	}
	perItem := (b.serverTime() - before) / time.Duration(*runs)
	delays, err := b.delays(ctx)
	if err != nil {
		return err
	}
	b.say("| one-shots/s, %d callers | CPU of the servers for one | queue items/s | CPU for one | delay of a schedule, p50 / p95 | load |\n|---|---|---|---|---|---|", oneShotCallers)
	b.say("| %.1f | %s | %.1f | %s | %s / %s | %s |", oneShots, perRun.Round(time.Millisecond), items.PerSecond, perItem.Round(time.Millisecond),
		roundedTime(delays[len(delays)/2]), roundedTime(delays[len(delays)*95/100]), load)
	return nil
}

// oneShots runs as many one-shots, and waits for the end of each.
func (b *jobBench) oneShots(ctx context.Context, runs int) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(oneShotCallers)
	for n := range runs {
		all.Go(func() error {
			ref, err := b.jobs.Runs.Start(ctx, newJob(fmt.Sprintf("once-%05d", n), job.Trigger{OneShot: &job.OneShot{}}), contract.StartedByHand)
			if err != nil {
				return err
			}
			return b.client.GetWorkflow(ctx, ref.WorkflowID, ref.RunID).Get(ctx, nil)
		})
	}
	return all.Wait()
}

// delays are those of the starts of recurring jobs, sorted: handlers note when they begin.
func (b *jobBench) delays(ctx context.Context) ([]time.Duration, error) {
	var jobs []job.Job
	offsets := map[string]time.Duration{}
	for n := range delayed {
		offset := job.Duration(time.Duration(n) * time.Second % delayedEvery)
		j := newJob(fmt.Sprintf("delayed-%02d", n), job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(delayedEvery), Offset: &offset}})
		jobs, offsets[j.ID] = append(jobs, j), offset.Std()
	}
	if err := b.apply(ctx, jobs); err != nil {
		return nil, err
	}
	if err := sleepUntil(ctx, time.Now().Add(delayedFor)); err != nil {
		return nil, err
	}
	lines, err := b.ledger.read(func(line noted) bool { return line.what == ledgerStart && strings.Contains(line.jobID, "delayed-") })
	if err != nil {
		return nil, err
	}
	if len(lines) < delayed {
		return nil, fmt.Errorf("%d recurring jobs had %d starts in %s", delayed, len(lines), delayedFor)
	}
	var all []time.Duration
	for _, line := range lines {
		since := line.at.Add(-offsets[line.jobID])
		all = append(all, since.Sub(since.Truncate(delayedEvery)))
	}
	slices.Sort(all)
	return all, nil
}

// serverTime is what the servers have had on the processors, with their children: those of
// PostgreSQL do its work.
func (b *jobBench) serverTime() (sum time.Duration) {
	if b.process != nil {
		return processorTime(b.process.PID())
	}
	for text := range strings.SplitSeq(os.Getenv(serversVariable), ",") {
		pid, err := strconv.Atoi(text)
		if err != nil {
			continue
		}
		sum += processorTime(pid)
		for _, child := range stack.Children(pid) {
			sum += processorTime(child)
		}
	}
	return sum
}
