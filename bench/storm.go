package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	schedulepb "go.temporal.io/api/schedule/v1"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// stormOptions are the flags of bench storm.
type stormOptions struct {
	bin     string
	jobs    int
	minutes int
}

// every is the interval of the jobs of a storm.
const every = time.Minute

// applyTime is what one job takes to be applied, on a machine that is not quiet.
const applyTime = 30 * time.Millisecond

// mostMinutes bounds a storm: a schedule tells of its latest ten starts.
const mostMinutes = 8

// storm lets many recurring jobs run every minute, and measures how late they are.
func storm(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("bench storm", flag.ContinueOnError)
	var o stormOptions
	fs.StringVar(&o.bin, "bin", "bin", "`folder` of the devstack binary")
	fs.IntVar(&o.jobs, "jobs", 2000, "recurring jobs, each every minute")
	fs.IntVar(&o.minutes, "minutes", 3, "minutes to measure")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 || o.jobs < 1 || o.minutes < 1 || o.minutes > mostMinutes {
		return fmt.Errorf("bench storm takes --jobs of at least 1, --minutes from 1 to %d, and no arguments", mostMinutes)
	}
	f, err := o.measure(ctx, out)
	if err != nil {
		return err
	}
	return writeStorm(out, o, f)
}

// measure runs a storm on a stack of its own.
func (o stormOptions) measure(ctx context.Context, out io.Writer) (f *stormFigures, err error) {
	b, err := newJobBench(ctx, o.bin, out)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	began := time.Now()
	// None starts while the others are still being applied.
	first := began.Add(every/2 + time.Duration(o.jobs)*applyTime).Truncate(time.Second)
	jobs := make([]job.Job, o.jobs)
	for n := range jobs {
		jobs[n] = newJob(fmt.Sprintf("storm-%04d", n), job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(every), StartAt: first}})
	}
	if err := b.apply(ctx, jobs); err != nil {
		return nil, err
	}
	b.say("applied %d jobs in %s", len(jobs), time.Since(began).Round(100*time.Millisecond))

	from := first
	if soon := time.Now().Add(time.Second); soon.After(from) {
		from = soon.Truncate(time.Second)
	}
	until := from.Add(time.Duration(o.minutes) * every)
	f = &stormFigures{from: from, until: until, expected: o.jobs * o.minutes}
	before, err := b.accounts(ctx, jobs)
	if err != nil {
		return nil, err
	}
	if err := sleepUntil(ctx, from); err != nil {
		return nil, err
	}
	servers, worker := b.processors()
	for at := from; at.Before(until); at = at.Add(every) {
		if err := sleepUntil(ctx, at.Add(every)); err != nil {
			return nil, err
		}
		f.loads = append(f.loads, loadAverage())
		b.say("minute %d, load average %s", len(f.loads), loadAverage())
	}
	f.servers, f.worker = b.processors()
	f.servers, f.worker = f.servers-servers, f.worker-worker
	after, err := b.collect(ctx, f, jobs)
	if err != nil {
		return nil, err
	}
	skipped, missed := notRun(before)
	f.skipped, f.missed = notRun(after)
	f.skipped, f.missed = f.skipped-skipped, f.missed-missed
	f.memory, err = b.peaks()
	return f, err
}

// processors gives the time that the servers and the worker have had on the
// processors.
func (b *jobBench) processors() (servers, worker time.Duration) {
	return processorTime(b.process.PID()), processorTime(b.worker.Process.Pid)
}

func (b *jobBench) apply(ctx context.Context, jobs []job.Job) error {
	syncer := schedules.New(b.jobs)
	plan, err := syncer.Plan(ctx, jobs, schedules.PlanOptions{Provider: benchProvider})
	if err != nil {
		return err
	}
	err = syncer.Apply(ctx, plan, func(schedules.Report) {})
	if ctx.Err() != nil {
		return ctx.Err() // Not an error for each job.
	}
	return err
}

// account is what the servers tell of the starts of a schedule: since it was
// made those that did not take place, and its latest ten that did.
type account struct {
	jobID           string
	skipped, missed int64
	actions         []*schedulepb.ScheduleActionResult
}

// accounts asks for all schedules: lists of thousands of runs would disturb what
// is measured.
func (b *jobBench) accounts(ctx context.Context, jobs []job.Job) ([]account, error) {
	all := make([]account, len(jobs))
	err := temporalclient.Each(len(jobs), 0, func(n int) error {
		live, err := b.patiently(ctx, jobs[n].ID)
		if err != nil {
			return err
		}
		info := live.Schedule.GetInfo()
		all[n] = account{jobs[n].ID, info.GetOverlapSkipped(), info.GetMissedCatchupWindow() + info.GetBufferDropped(), info.GetRecentActions()}
		return nil
	})
	return all, err
}

// patiently describes a schedule, again while the servers are too busy to answer.
func (b *jobBench) patiently(ctx context.Context, jobID string) (*client.Live, error) {
	for try := 1; ; try++ {
		live, err := b.jobs.Jobs.LiveSchedule(ctx, jobID)
		switch {
		case err == nil && live == nil:
			return nil, fmt.Errorf("job %s has no schedule", jobID)
		case err == nil:
			return live, nil
		case try == answerTries || !errors.Is(err, client.ErrSlow):
			return nil, err
		}
	}
}

func notRun(accounts []account) (skipped, missed int64) {
	for _, a := range accounts {
		skipped += a.skipped
		missed += a.missed
	}
	return skipped, missed
}

// collect waits until all runs that were due in the storm have begun, a minute at
// most, and takes their times.
func (b *jobBench) collect(ctx context.Context, f *stormFigures, jobs []job.Job) ([]account, error) {
	for deadline := time.Now().Add(every); ; {
		accounts, err := b.accounts(ctx, jobs)
		if err != nil {
			return nil, err
		}
		if err := f.take(accounts, b.ledger); err != nil {
			return nil, err
		}
		if len(f.handled) >= f.expected || time.Now().After(deadline) {
			return accounts, nil
		}
		if err := sleepUntil(ctx, time.Now().Add(5*time.Second)); err != nil {
			return nil, err
		}
	}
}

func sleepUntil(ctx context.Context, at time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(at)):
		return nil
	}
}
