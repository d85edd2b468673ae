package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/internal/secrets"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// Classes of errors that the host itself raises.
const (
	classTimeout  = "RunTimeout"     // the handler took longer than run_timeout
	classTooLarge = "ResultTooLarge" // the result does not belong into a history
	classStopped  = "StoppedUnasked" // the handler returned ErrStopped without being asked
	classLost     = "RunLost"        // the run may have been given to another worker
)

// execute is the activity of a job type.
func (h *host) execute(t job.Type) func(context.Context, workflows.ActivityInput) (workflows.ActivityOutput, error) {
	return func(ctx context.Context, in workflows.ActivityInput) (workflows.ActivityOutput, error) {
		r := h.newRun(ctx, in)
		if h.stale(ctx, r) {
			return workflows.ActivityOutput{}, r.lost()
		}
		h.running.Add(1)
		defer h.running.Add(-1)
		result, err := r.handle(ctx, t)
		if err == nil {
			err = checkResult(in.Job.ID, result)
		}
		result.Message = cut(result.Message, maxMessageBytes)
		output := workflows.ActivityOutput{
			Result:   r.withCursor(result),
			Worker:   h.identity,
			Attempts: int(activity.GetInfo(ctx).Attempt),
		}
		if err != nil {
			r.beat(ctx) // So that a retry starts from the last checkpoint.
		}
		return output, r.verdict(output, err)
	}
}

// stale says that the attempt is over before it has begun: the task lay about
// while the process or the network stood still, and the run is another worker's.
// Temporal is asked only if that is possible, since it costs a call.
func (h *host) stale(ctx context.Context, r *run) bool {
	old := time.Since(activity.GetInfo(ctx).StartedTime) > r.input.Job.Options.HeartbeatTimeout.Std()/2
	if !old && !h.pulse.pausedLately() {
		return false
	}
	r.beat(ctx) // The first heartbeat is sent at once, and its answer waited for.
	return ctx.Err() != nil && whyCanceled(ctx) == stopLost
}

// run is the job.Run of one attempt.
type run struct {
	input    workflows.ActivityInput
	attempt  int
	secrets  secrets.Resolver
	logger   *slog.Logger
	identity string
	stopping chan struct{}
	// drainTimeout is how long the worker takes to drain.
	drainTimeout time.Duration

	mu       sync.Mutex
	progress job.Progress
	cursor   json.RawMessage
	resolved []string // values of secrets, to keep out of errors
	cause    stopCause
}

// stopCause says why a handler was asked to stop.
type stopCause int

const (
	notStopped stopCause = iota
	stopCanceled
	stopDraining
	stopTimeout
	stopLost // Temporal does not hear from the run, or has given it to another worker
)

func (h *host) newRun(ctx context.Context, in workflows.ActivityInput) *run {
	info := activity.GetInfo(ctx)
	r := &run{
		input:        in,
		attempt:      int(info.Attempt),
		secrets:      h.secrets,
		identity:     h.identity,
		stopping:     make(chan struct{}),
		drainTimeout: h.DrainTimeout,
		cursor:       in.Cursor,
		logger: h.logger.With("job", in.Job.ID, "type", in.Job.Type,
			"workflow", info.WorkflowExecution.ID, "run", info.WorkflowExecution.RunID, "attempt", info.Attempt),
	}
	if activity.HasHeartbeatDetails(ctx) {
		var beat workflows.Heartbeat
		if err := activity.GetHeartbeatDetails(ctx, &beat); err != nil {
			r.logger.Warn("the last attempt's report cannot be read; starting from the run's cursor", "error", err)
		} else if len(beat.Cursor) > 0 {
			r.cursor = beat.Cursor
		}
	}
	return r
}

// Job implements job.Run.
func (r *run) Job() job.Job { return r.input.Job }

// Attempt implements job.Run.
func (r *run) Attempt() int { return r.attempt }

// ID implements job.Run.
func (r *run) ID() string { return r.input.RunID }

// Stopping implements job.Run.
func (r *run) Stopping() <-chan struct{} { return r.stopping }

// Logger implements job.Run.
func (r *run) Logger() *slog.Logger { return r.logger }

// Cursor implements job.Run.
func (r *run) Cursor(into any) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.cursor) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(r.cursor, into); err != nil {
		return false, fmt.Errorf("the cursor of job %s is not readable: %w", r.input.Job.ID, err)
	}
	return true, nil
}

// Checkpoint implements job.Run.
func (r *run) Checkpoint(progress job.Progress, cursor any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = progress
	if cursor == nil {
		return
	}
	if encoded := job.EncodeJSON(cursor); len(encoded) <= maxCursorBytes {
		r.cursor = encoded
	} else {
		r.logger.Warn("a cursor is too large and is not kept", "bytes", len(encoded), "most", maxCursorBytes)
	}
}

// Secret implements job.Run.
func (r *run) Secret(ref job.SecretRef) (string, error) {
	value, err := r.secrets.Resolve(ref)
	if err == nil {
		r.mu.Lock()
		r.resolved = append(r.resolved, value)
		r.mu.Unlock()
	}
	return value, err
}

// handle runs the handler, reports to the server meanwhile, and asks it to stop
// when it has to: first by closing Stopping, then by canceling its context.
func (r *run) handle(ctx context.Context, t job.Type) (job.Result, error) {
	options := r.input.Job.Options
	handlerCtx := newLease(context.WithoutCancel(ctx), options.HeartbeatTimeout.Std())
	cancel := func() { handlerCtx.cancel(context.Canceled) }
	defer cancel()
	type outcome struct {
		result job.Result
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := r.callSafely(handlerCtx, t)
		done <- outcome{result, err}
	}()

	beats := time.NewTicker(min(options.HeartbeatTimeout.Std()/3, maxHeartbeatInterval))
	defer beats.Stop()
	timeout := time.NewTimer(options.RunTimeout.Std())
	defer timeout.Stop()
	due, canceled, draining := beats.C, ctx.Done(), activity.GetWorkerStopChannel(ctx)
	var graceOver <-chan time.Time
	ask := func(cause stopCause) {
		canceled, draining = nil, nil
		timeout.Stop() // The grace period counts from the first request.
		r.stop(cause)
		grace := time.NewTimer(r.gracePeriod(cause))
		context.AfterFunc(handlerCtx, func() { grace.Stop() })
		graceOver = grace.C
	}
	for {
		select {
		case o := <-done:
			return o.result, o.err
		case <-due:
			if !handlerCtx.renew() {
				due = nil
				ask(stopLost)
				continue
			}
			r.beat(ctx)
		case <-timeout.C:
			ask(stopTimeout)
		case <-canceled:
			cause := whyCanceled(ctx)
			ask(cause)
			if cause == stopLost {
				cancel()
			}
		case <-draining:
			ask(stopDraining)
		case <-graceOver:
			r.logger.Warn("the handler did not end within its grace period and is cut off")
			cancel()
			graceOver = nil
		}
	}
}

// whyCanceled tells a request to stop from the news that the run is not this
// attempt's any more: it timed out, or its workflow has ended.
func whyCanceled(ctx context.Context) stopCause {
	var notFound *serviceerror.NotFound
	if errors.As(context.Cause(ctx), &notFound) {
		return stopLost
	}
	return stopCanceled
}

// gracePeriod is the time a handler has once it was asked to stop. A worker that
// drains has to hand the run over before it ends itself.
func (r *run) gracePeriod(cause stopCause) time.Duration {
	grace := r.input.Job.Options.StopGracePeriod.Std()
	if cause == stopDraining {
		return min(grace, r.drainTimeout-r.drainTimeout/10)
	}
	return grace
}

// maxHeartbeatInterval bounds how long a run takes to hear a request to stop.
const maxHeartbeatInterval = 2 * time.Second

func (r *run) callSafely(ctx context.Context, t job.Type) (result job.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.logger.Error("the handler panicked", "panic", r.redact(fmt.Sprint(p)), "stack", r.redact(string(debug.Stack())))
			err = job.Final(job.ClassPanic, "the handler of job type %s panicked: %v", t.Name, p)
		}
	}()
	return t.Handle(ctx, r)
}

// beat reports the progress. The context may be canceled already: a run that
// was asked to stop must go on reporting until it has ended.
func (r *run) beat(ctx context.Context) {
	r.mu.Lock()
	beat := workflows.Heartbeat{Progress: r.progress, Cursor: r.cursor, Worker: r.identity}
	if beat.Progress != (job.Progress{}) {
		beat.Text = beat.Progress.String()
	}
	r.mu.Unlock()
	activity.RecordHeartbeat(context.WithoutCancel(ctx), beat)
}

func (r *run) stop(cause stopCause) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause == notStopped {
		r.cause = cause
		close(r.stopping)
	}
}

// withCursor gives a result the position of the last checkpoint, unless the
// handler returned one.
func (r *run) withCursor(result job.Result) job.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(result.Cursor) == 0 {
		result.Cursor = r.cursor
	}
	return result
}

// verdict turns what the handler returned into what Temporal should do.
func (r *run) verdict(output workflows.ActivityOutput, err error) error {
	if err == nil {
		return nil
	}
	r.mu.Lock()
	cause := r.cause
	r.mu.Unlock()
	endedEarly := errors.Is(err, job.ErrStopped) || errors.Is(err, context.Canceled)
	switch {
	case endedEarly && cause == stopDraining:
		output.Stopped = true
		return temporal.NewApplicationErrorWithOptions("the worker shuts down and hands the run over",
			workflows.ErrorTypeDraining, temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{output}})
	case endedEarly && cause == stopCanceled:
		output.Stopped = true
		return temporal.NewCanceledError(output)
	case endedEarly && cause == stopTimeout:
		return r.applicationError(job.Retryable(classTimeout, 0,
			"job %s took longer than its run timeout, %s", r.input.Job.ID, r.input.Job.Options.RunTimeout))
	case cause == stopLost:
		return r.lost()
	case errors.Is(err, job.ErrStopped):
		return r.applicationError(job.Retryable(classStopped, 0, "job %s: %w", r.input.Job.ID, err))
	}
	return r.applicationError(err) // The SDK logs it.
}

// lost is the error of an attempt that may not be the run's any more.
func (r *run) lost() error {
	return r.applicationError(job.Retryable(classLost, 0, "job %s: %w", r.input.Job.ID, errLeaseLost))
}

// applicationError carries a handler's error to the history, with its class and
// without the values of secrets, and with the position of the last checkpoint:
// heartbeats are gone once a run has failed.
func (r *run) applicationError(err error) error {
	options := temporal.ApplicationErrorOptions{Details: []any{workflows.ActivityOutput{
		Result: r.withCursor(job.Result{}), Worker: r.identity, Attempts: r.attempt,
	}}}
	class := "Error"
	var failure *job.Failure
	if errors.As(err, &failure) {
		class = failure.Class
		options.NonRetryable = failure.Final
		options.NextRetryDelay = failure.RetryAfter
	}
	return temporal.NewApplicationErrorWithOptions(cut(r.redact(err.Error()), maxErrorBytes), class, options)
}

// Bounds of what a run leaves in histories and in the states of workflows.
const (
	maxErrorBytes   = 4 << 10
	maxMessageBytes = 1 << 10
	maxCursorBytes  = 32 << 10
	maxOutputBytes  = 64 << 10
	maxCounts       = 100
	maxCountName    = 80
)

// checkResult refuses a result that does not belong into a history.
func checkResult(jobID string, result job.Result) error {
	switch {
	case len(result.Output) > maxOutputBytes:
		return job.Final(classTooLarge, "job %s: its result has an output of %d bytes, more than %d", jobID, len(result.Output), maxOutputBytes)
	case len(result.Cursor) > maxCursorBytes:
		return job.Final(classTooLarge, "job %s: its cursor has %d bytes, more than %d", jobID, len(result.Cursor), maxCursorBytes)
	case longCount(result.Counts) != "":
		return job.Final(classTooLarge, "job %s: its result has the count %.80q, whose name is longer than %d bytes",
			jobID, longCount(result.Counts), maxCountName)
	case len(result.Counts) > maxCounts:
		return job.Final(classTooLarge, "job %s: its result has %d counts, more than %d", jobID, len(result.Counts), maxCounts)
	}
	return nil
}

// cut shortens a text to at most n bytes.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(text[:n-len(ellipsis)], "") + ellipsis
}

func (r *run) redact(text string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, value := range r.resolved {
		if value != "" {
			text = strings.ReplaceAll(text, value, "[secret]")
		}
	}
	return text
}

// longCount is a count whose name is too long, "" if there is none.
func longCount(counts map[string]int64) string {
	for name := range counts {
		if len(name) > maxCountName {
			return name
		}
	}
	return ""
}
