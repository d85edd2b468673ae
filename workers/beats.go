package workers

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
)

// maxHeartbeatInterval bounds how long a run takes to hear a request to stop.
const maxHeartbeatInterval = 2 * time.Second

// beats sends the heartbeats of one attempt and knows what became of each. The
// SDK's own batch them and swallow errors, and after a second without an answer
// take the run for canceled.
type beats struct {
	run     *run
	client  client.Client
	now     clock
	token   []byte
	timeout time.Duration // the heartbeat timeout
	lease   *lease        // once the attempt has begun
	// news is what Temporal wants of the attempt, or has done with it.
	news chan stopCause
}

func (h *host) newBeats(ctx context.Context, r *run) *beats {
	info := activity.GetInfo(ctx)
	timeout := info.HeartbeatTimeout // As Temporal has it.
	if timeout <= 0 {
		timeout = r.input.Job.Options.HeartbeatTimeout.Std()
	}
	return &beats{run: r, client: h.client, now: h.now, token: info.TaskToken, timeout: timeout, news: make(chan stopCause)}
}

// begin makes the lease of the attempt. It reports false when the attempt is over
// before it has begun: the task lay about while the process or the network stood
// still, and the run is another worker's. Temporal is asked only if that is
// possible, since it costs a call.
func (b *beats) begin(ctx context.Context, tasks *tasks) bool {
	renewed, known := tasks.begin(b.token)
	if !known || b.now()-renewed > b.timeout/2 {
		sent, err := b.send(ctx, b.timeout/2)
		if !acknowledged(err) {
			return false
		}
		renewed = sent
	}
	b.lease = newLease(context.WithoutCancel(ctx), b.timeout, renewed, b.now)
	return true
}

// keep sends heartbeats until ctx ends or the run is lost.
func (b *beats) keep(ctx context.Context) {
	interval := min(b.timeout/3, maxHeartbeatInterval)
	due := min(b.now()+interval, b.lease.renewed+b.timeout/2)
	for {
		select {
		case <-time.After(due - b.now()):
		case <-ctx.Done():
			return
		}
		sent, err := b.send(ctx, b.timeout/2)
		if ctx.Err() != nil {
			return
		}
		if acknowledged(err) {
			b.lease.renew(sent)
		}
		cause := wantedBy(err)
		if cause != notStopped {
			select {
			case b.news <- cause:
			case <-ctx.Done():
				return
			}
		} else if err != nil {
			b.run.logger.Warn("a heartbeat was not acknowledged", "error", err)
		}
		if cause == stopLost {
			return
		}
		due = sent + interval
	}
}

// send reports the progress, and waits for the answer. It gives the time of
// sending by the clock.
func (b *beats) send(ctx context.Context, patience time.Duration) (sent time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	sent = b.now()
	return sent, b.client.RecordActivityHeartbeat(ctx, b.token, b.run.report())
}

// last reports the progress once more, so that the next attempt goes on from the
// last checkpoint.
func (b *beats) last(ctx context.Context) {
	const patience = time.Second
	if _, err := b.send(context.WithoutCancel(ctx), patience); !acknowledged(err) {
		b.run.logger.Warn("the last heartbeat was not acknowledged", "error", err)
	}
}

// canceled reports that the run has ended as someone asked. The SDK would refuse
// to: it does not know of requests that its own heartbeats have not brought.
func (b *beats) canceled(ctx context.Context, ended error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.timeout)
	defer cancel()
	if err := b.client.CompleteActivity(ctx, b.token, nil, ended); err != nil {
		b.run.logger.Warn("Temporal does not know that the run was stopped", "error", err)
	}
	return activity.ErrResultPending
}

// acknowledged says that Temporal has taken a heartbeat for the attempt that has
// the run. It may want something of it at the same time.
func acknowledged(err error) bool {
	return err == nil || temporal.IsCanceledError(err) ||
		errors.Is(err, activity.ErrActivityPaused) || errors.Is(err, activity.ErrActivityReset)
}

// wantedBy is what the error of a heartbeat, or the cause of the end of an
// activity's context, says of the attempt.
func wantedBy(err error) stopCause {
	var gone *serviceerror.NotFound
	switch {
	case temporal.IsCanceledError(err):
		return stopCanceled
	case errors.Is(err, activity.ErrActivityPaused), errors.Is(err, activity.ErrActivityReset):
		return stopTakenBack
	case errors.As(err, &gone): // It timed out, or its workflow has ended.
		return stopLost
	case errors.Is(err, worker.ErrWorkerShutdown):
		return stopDraining
	}
	return notStopped
}
