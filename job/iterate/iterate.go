// Package iterate runs the iterations of handlers of continuous jobs. It watches over
// the stop, the deadline, the counts and the checkpoints, so that a handler is one step:
//
//	it := iterate.New(run, spec.IterationDuration.Std(), nil)
//	err := it.Loop(ctx, func(ctx context.Context) (iterate.Next, error) {
//		n, err := copyMore(ctx)
//		it.Count("messages", n)
//		return iterate.More, err
//	})
//	return job.Result{Counts: it.Counts()}, err
package iterate

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// Next is what a step wants to happen after it.
type Next int

// What can happen after a step.
const (
	// Done ends the iteration: there is nothing more to do.
	Done Next = iota
	// More takes another step, unless the iteration is over.
	More
	// Unfinished takes another step also after the deadline, because work is under way
	// that has to be finished. A stop ends the iteration all the same.
	Unfinished
)

// Report gives what a checkpoint says: the progress, and a cursor unless that is nil.
type Report func(counts map[string]int64) (progress job.Progress, cursor any)

// Iteration is one iteration of a continuous job, with what a handler sees of its run.
// Its methods may be called from several goroutines.
type Iteration struct {
	job.Run

	duration time.Duration
	end      time.Time
	report   Report

	mu     sync.Mutex
	counts map[string]int64
}

// New makes an iteration of a run. It takes no new work when the duration is over, which
// begins anew with [Iteration.Loop]: what a handler does before counts for nothing. Each
// checkpoint says what report gives; nil makes no checkpoints.
func New(run job.Run, duration time.Duration, report Report) *Iteration {
	return &Iteration{Run: run, duration: duration, end: time.Now().Add(duration), report: report, counts: map[string]int64{}}
}

// End is the deadline: when the iteration takes no more new work.
func (it *Iteration) End() time.Time { return it.end }

// Left is the time to the deadline, 0 after it.
func (it *Iteration) Left() time.Duration { return max(0, time.Until(it.end)) }

// Stopped reports whether the run was asked to stop.
func (it *Iteration) Stopped() bool { return job.Stopped(it.Run) }

// Over reports whether no new work should be taken: after the deadline or a stop.
func (it *Iteration) Over() bool { return it.Stopped() || !time.Now().Before(it.end) }

// Count adds to a count of the result.
func (it *Iteration) Count(name string, n int64) {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.counts[name] += n
}

// Counted is a count of the result so far.
func (it *Iteration) Counted(name string) int64 {
	it.mu.Lock()
	defer it.mu.Unlock()
	return it.counts[name]
}

// Counts are the counts so far.
func (it *Iteration) Counts() map[string]int64 {
	it.mu.Lock()
	defer it.mu.Unlock()
	return maps.Clone(it.counts)
}

// Save makes a checkpoint of what is done so far.
func (it *Iteration) Save() {
	if it.report != nil {
		it.Checkpoint(it.report(it.Counts()))
	}
}

// Wait waits, and reports false if the iteration is over, or ctx ends, before.
func (it *Iteration) Wait(ctx context.Context, wait time.Duration) bool {
	if it.Over() || ctx.Err() != nil {
		return false
	}
	enough, deadline := time.NewTimer(wait), time.NewTimer(it.Left())
	defer enough.Stop()
	defer deadline.Stop()
	select {
	case <-enough.C:
		return true
	case <-deadline.C:
	case <-it.Stopping():
	case <-ctx.Done():
	}
	return false
}

// Loop takes one step after another until one is [Done] or fails, or the iteration is
// over, and makes a checkpoint after each, also after one that fails. It takes no step
// when ctx has ended, and then returns its error. A stop is no error: the position is
// saved, and the next iteration goes on from there.
func (it *Iteration) Loop(ctx context.Context, step func(context.Context) (Next, error)) error {
	it.end = time.Now().Add(it.duration)
	for next := More; ; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if it.Stopped() || (next != Unfinished && it.Over()) {
			return nil
		}
		var err error
		next, err = step(ctx)
		it.Save()
		if err != nil || next == Done {
			return err
		}
	}
}
