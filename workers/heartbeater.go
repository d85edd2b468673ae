package workers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/metrics"
)

// maxHeartbeatInterval bounds how long a request to stop takes to reach a run.
const maxHeartbeatInterval = 2 * time.Second

// maxHeartbeatWait bounds how many heartbeats of an attempt are under way at
// once, whatever the heartbeat timeout: no answer is waited for longer.
const maxHeartbeatWait = time.Minute

// heartbeater sends the heartbeats of one attempt and knows what became of each. The
// SDK batches heartbeats, swallows errors, and takes the run for canceled after a second
// without an answer. Its client gives a call up after half the time that it was given.
type heartbeater struct {
	run     *run
	client  client.Client
	now     clock
	token   []byte
	timeout time.Duration // the heartbeat timeout
	lease   *lease        // once the attempt has begun
	// record makes the call, and waits for the answer until ctx ends.
	record func(context.Context, contract.Heartbeat) error
	// requests are why the attempt has to stop, as the answers to its heartbeats say.
	requests chan stopCause
}

func (h *host) newHeartbeater(ctx context.Context, r *run) *heartbeater {
	info := activity.GetInfo(ctx)
	timeout := info.HeartbeatTimeout // As Temporal has it.
	if timeout <= 0 {
		timeout = r.input.Job.Options.HeartbeatTimeout.Std()
	}
	return &heartbeater{
		run: r, client: h.client, now: h.now, token: info.TaskToken, timeout: timeout, requests: make(chan stopCause),
		record: func(ctx context.Context, report contract.Heartbeat) error {
			details, err := converter.GetDefaultDataConverter().ToPayloads(report)
			if err != nil {
				return fmt.Errorf("encode a heartbeat: %w", err)
			}
			answer, err := h.client.WorkflowService().RecordActivityTaskHeartbeat(ctx, &workflowservice.RecordActivityTaskHeartbeatRequest{
				Namespace: info.Namespace, TaskToken: info.TaskToken, Details: details, Identity: h.identity,
			})
			switch {
			case err != nil:
				return err
			case answer.GetCancelRequested():
				return temporal.NewCanceledError()
			case answer.GetActivityPaused():
				return activity.ErrActivityPaused
			case answer.GetActivityReset():
				return activity.ErrActivityReset
			}
			return nil
		},
	}
}

// begin makes the lease of the attempt. It reports false when the attempt is over
// before it has begun: the task was delayed while the process or the network stood
// still, and the run is another worker's. Temporal is asked only if that is
// possible, since it costs a call.
func (b *heartbeater) begin(ctx context.Context, tasks *tasks) bool {
	renewed, known := tasks.begin(b.token)
	if !known || b.now()-renewed > b.timeout/2 {
		var ours bool
		if renewed, ours = b.check(ctx); !ours {
			return false
		}
	}
	b.lease = newLease(context.WithoutCancel(ctx), b.timeout, renewed, b.now)
	return true
}

// check asks Temporal whether the attempt still has the run until it says so, and
// gives the sending time of the heartbeat that it took. That there is no answer
// means nothing, until Temporal must have timed out an attempt of which it has
// heard nothing.
func (b *heartbeater) check(ctx context.Context) (renewed time.Duration, ours bool) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	b.heartbeat(ctx, b.now(), func(sent time.Duration, err error) (enough bool) {
		renewed, ours = sent, acknowledged(err)
		return ours || stopCauseOf(err) == stopLost
	})
	return renewed, ours
}

// keep sends heartbeats until ctx ends or the run is lost.
func (b *heartbeater) keep(ctx context.Context) {
	first := min(b.now()+b.interval(), b.lease.renewed+b.timeout/2)
	b.heartbeat(ctx, first, func(sent time.Duration, err error) (enough bool) {
		if acknowledged(err) {
			b.lease.renew(sent)
		}
		cause := stopCauseOf(err)
		if cause == notStopped {
			return false
		}
		select {
		case b.requests <- cause:
		case <-ctx.Done():
		}
		return cause == stopLost
	})
}

// interval is the time from one heartbeat to the next.
func (b *heartbeater) interval() time.Duration { return min(b.timeout/3, maxHeartbeatInterval) }

// heartbeat sends heartbeats, the first at a time by the clock, until ctx ends or
// onAnswer has had enough. They do not wait for each other's answers: a server that is
// slow has as long for each as its acknowledgement is worth something, and one
// that was lost on its way holds up no other. Should one overtake another, the
// position that the next attempt goes on from is that of an interval before.
func (b *heartbeater) heartbeat(ctx context.Context, first time.Duration, onAnswer func(sent time.Duration, err error) (enough bool)) {
	type answer struct {
		sent time.Duration
		err  error
	}
	answers := make(chan answer)
	var inFlight sync.WaitGroup
	defer inFlight.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	interval, timeout := b.interval(), min(leaseLength(b.timeout), maxHeartbeatWait)
	due := first
	next := time.NewTimer(due - b.now())
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
			sent := b.now()
			inFlight.Go(func() {
				a := answer{sent, b.send(ctx, timeout)}
				select {
				case answers <- a:
				case <-ctx.Done():
				}
			})
			due = sent + interval
			next.Reset(interval)
		case a := <-answers:
			if ctx.Err() != nil || onAnswer(a.sent, a.err) {
				return
			}
			if stopCauseOf(a.err) != notStopped || a.err == nil {
				continue
			}
			b.run.logger.Warn("a heartbeat was not acknowledged", "error", a.err)
			metrics.HeartbeatFailed.Inc(b.run.input.Job.Type)
			if again := b.now() + interval/2; again < due {
				due = again
				next.Reset(interval / 2)
			}
		}
	}
}

// send reports the progress, and waits for the answer.
func (b *heartbeater) send(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return b.record(ctx, b.run.report())
}

// canceled reports that the run has ended as someone asked. The SDK would refuse
// to: it does not know of requests that its own heartbeats have not brought.
func (b *heartbeater) canceled(ctx context.Context, ended error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.timeout)
	defer cancel()
	if err := b.client.CompleteActivity(ctx, b.token, nil, ended); err != nil {
		b.run.logger.Warn("Temporal does not know that the run was stopped", "error", err)
	}
	return activity.ErrResultPending
}

// acknowledged reports whether Temporal has taken a heartbeat for the attempt that has
// the run. The answer may ask the attempt to stop at the same time.
func acknowledged(err error) bool {
	return err == nil || temporal.IsCanceledError(err) ||
		errors.Is(err, activity.ErrActivityPaused) || errors.Is(err, activity.ErrActivityReset)
}

// stopCauseOf is why the attempt has to stop by the error of a heartbeat, or by the
// cause of the end of an activity's context.
func stopCauseOf(err error) stopCause {
	var notFound *serviceerror.NotFound
	switch {
	case temporal.IsCanceledError(err):
		return stopCanceled
	case errors.Is(err, activity.ErrActivityPaused), errors.Is(err, activity.ErrActivityReset):
		return stopTakenBack
	case errors.As(err, &notFound): // It timed out, or its workflow has ended.
		return stopLost
	case errors.Is(err, worker.ErrWorkerShutdown):
		return stopDraining
	}
	return notStopped
}
