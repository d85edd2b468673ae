package workers

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/metrics"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// minReturnGrace is the least time that a handler has to return after it was cut off.
// Then it counts as stuck. The time is half its stop grace period, within this and
// contract.MaxReturnGrace.
const minReturnGrace = 5 * time.Second

// errStuck is the error of a run whose handler was given up.
var errStuck = errors.New("its handler ignored the end of its context and was given up; it may still be at work in its process, which should be restarted")

type outcome struct {
	result job.Result
	err    error
}

// handle runs the handler, reports to the server meanwhile, and asks it to stop
// when it has to: first by closing Stopping, then by ending its context. One that
// does not return even then is given up: its run ends without it, so that a stop,
// a queue or a drain does not wait for it for ever.
func (h *host) handle(ctx context.Context, t job.Type, r *run, b *heartbeater) (job.Result, error) {
	defer b.lease.end()
	done := make(chan outcome, 1)
	h.running.Add(1)
	metrics.HandlersRunning.Add(1, t.Name)
	go func() {
		began := time.Now()
		result, err := h.call(b.lease, t, r)
		metrics.HandlerDuration.Observe(time.Since(began), t.Name)
		metrics.HandlersRunning.Add(-1, t.Name)
		h.running.Add(-1)
		done <- outcome{result, err}
	}()
	heartbeating, stopHeartbeats := context.WithCancel(context.WithoutCancel(ctx))
	var heartbeats sync.WaitGroup
	heartbeats.Go(func() { b.keep(heartbeating) })
	defer heartbeats.Wait()
	defer stopHeartbeats()

	timeout := time.NewTimer(r.input.Job.Options.RunTimeout.Std())
	defer timeout.Stop()
	cutOff, giveUp := newDeadline(), newDeadline()
	defer cutOff.Stop()
	defer giveUp.Stop()
	ended, draining, lost := ctx.Done(), activity.GetWorkerStopChannel(ctx), b.lease.Context.Done()
	ask := func(cause stopCause) {
		ended = nil
		timeout.Stop() // The grace period counts from the first request.
		r.stop(cause)
		grace, toReturn := h.gracePeriods(r.input.Job.Options, cause)
		cutOff.within(grace)
		giveUp.within(grace + toReturn)
		if cause == stopLost {
			cutOff.Stop()
			lost = nil
			b.lease.end()
		}
	}
	for {
		select {
		case o := <-done:
			if b.lease.ranOut() {
				r.stop(stopLost) // It may have noticed before this loop.
			}
			return o.result, o.err
		case cause := <-b.requests:
			if ended != nil || cause == stopLost {
				ask(cause)
			}
		case <-lost:
			ask(stopLost)
		case <-ended:
			cause := stopCauseOf(context.Cause(ctx))
			if cause == notStopped { // Longer than Temporal allows.
				cause = stopLost
			}
			ask(cause)
		case <-timeout.C:
			ask(stopTimeout)
		case <-draining:
			draining = nil
			ask(stopDraining) // Also of one that was asked before: it has less time now.
		case <-cutOff.C:
			r.logger.Warn("the handler did not end within its grace period and is cut off")
			lost = nil
			b.lease.end()
		case <-giveUp.C:
			if len(done) == 0 {
				return job.Result{}, h.giveUp(r, done)
			}
		}
	}
}

// giveUp leaves a handler to itself. Its slot stays in use and it is counted until
// it returns.
func (h *host) giveUp(r *run, done <-chan outcome) error {
	giveBack := h.slots.keep()
	stuck := h.stuckHandlers.Add(1)
	count := func(n int64) {
		metrics.HandlersStuck.Add(n, r.input.Job.Type)
		metrics.SlotsUsed.Add(n, string(h.Worker))
	}
	count(1)
	r.logger.Error("the handler ignores its context and is given up; restart this process", "class", errclass.HandlerStuck, "stuck_handlers", stuck)
	go func() {
		<-done
		h.stuckHandlers.Add(-1)
		count(-1)
		giveBack()
		r.logger.Warn("a handler that was given up has ended after all")
	}()
	return errStuck
}

// gracePeriods are the time that a handler has to stop once it is asked to, and then
// to return once it is cut off. A worker that drains has to hand the run over
// before it ends itself.
func (h *host) gracePeriods(options job.Options, cause stopCause) (grace, toReturn time.Duration) {
	grace = options.StopGracePeriod.Std()
	toReturn = min(max(grace/2, minReturnGrace), contract.MaxReturnGrace)
	switch cause {
	case stopLost:
		return 0, toReturn
	case stopDraining:
		return min(grace, h.handlerDrainTimeout()*8/10), min(toReturn, h.handlerDrainTimeout()/10)
	}
	return grace, toReturn
}

// deadline is a timer that can be brought forward but not put off.
type deadline struct {
	*time.Timer
	at time.Time
}

func newDeadline() *deadline {
	const never = 1 << 62
	return &deadline{Timer: time.NewTimer(never)}
}

func (d *deadline) within(wait time.Duration) {
	if at := time.Now().Add(wait); d.at.IsZero() || at.Before(d.at) {
		d.at = at
		d.Reset(wait)
	}
}
