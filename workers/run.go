package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/metrics"
	"github.com/dendrascience/dendra-jobs/internal/redact"
	"github.com/dendrascience/dendra-jobs/internal/runlogs"
	"github.com/dendrascience/dendra-jobs/internal/secrets"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// execute is the activity of a job type.
func (h *host) execute(t job.Type) func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
	return func(ctx context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		r := h.newRun(ctx, in)
		metrics.SlotsUsed.Add(1, string(h.Worker))
		defer metrics.SlotsUsed.Add(-1, string(h.Worker))
		b := h.newHeartbeater(ctx, r)
		if !b.begin(ctx, h.tasks) {
			r.countAttempt(errLeaseLost)
			return contract.ActivityOutput{}, r.lost()
		}
		r.kept.Info(runlogs.AttemptBegan)
		result, err := h.handle(ctx, t, r, b)
		result = r.clean(result)
		if err == nil {
			err = checkResult(in.Job.ID, result)
		}
		r.countAttempt(err)
		r.logEnd(result, err)
		if err != nil {
			result = r.bounded(result)
		}
		result.Message = job.Cut(result.Message, maxMessageBytes)
		output := contract.ActivityOutput{
			Result:   r.withCursor(result),
			Worker:   h.identity,
			Attempts: r.attempt,

			SupersededBy: r.gaveWayTo(),
		}
		if attempts := r.eachAttempt(); len(attempts) > 1 {
			output.EachAttempt = attempts
		}
		if err != nil {
			output.Progress = r.lastProgress()
		}
		err = r.activityError(output, err)
		if temporal.IsCanceledError(err) {
			err = b.canceled(ctx, err)
		}
		return output, err
	}
}

// run is the job.Run of one attempt.
type run struct {
	input    contract.ActivityInput
	attempt  int
	secrets  secrets.Resolver
	resolved redact.Values // secrets that the handler asked for, to keep out of all that leaves the run
	jobs     job.Jobs
	logger   *slog.Logger
	kept     *slog.Logger // for the run's log alone
	identity string
	stopping chan struct{}

	mu       sync.Mutex
	progress job.Progress
	cursor   json.RawMessage
	cause    stopCause
	// supersededBy is the start of the run that this one gave way to.
	supersededBy time.Time
	attempts     attempts
}

// stopCause says why a handler was asked to stop.
type stopCause int

const (
	notStopped stopCause = iota
	stopCanceled
	stopDraining
	stopTimeout
	stopTakenBack // someone paused or reset the activity in Temporal
	stopLost      // Temporal gets no heartbeats of the run, or has given it to another worker
)

func (h *host) newRun(ctx context.Context, in contract.ActivityInput) *run {
	info := activity.GetInfo(ctx)
	r := &run{
		input:    in,
		attempt:  int(info.Attempt),
		secrets:  h.secrets,
		jobs:     h.jobs,
		identity: h.identity,
		stopping: make(chan struct{}),
		cursor:   in.Cursor,
	}
	h.setLoggers(ctx, r, info.WorkflowExecution.ID)
	var heartbeat contract.Heartbeat
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &heartbeat); err != nil {
			r.logger.Warn("the last attempt's report cannot be read; starting from the run's cursor", "error", err)
		} else if len(heartbeat.Cursor) > 0 {
			r.cursor = heartbeat.Cursor
		}
	}
	r.attempts = newAttempts(heartbeat.EachAttempt, contract.Attempt{Number: r.attempt, Worker: r.identity, Start: info.StartedTime})
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

// Jobs implements job.Run.
func (r *run) Jobs() job.Jobs { return r.jobs }

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
	metrics.Checkpoints.Inc(r.input.Job.Type)
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
func (r *run) Secret(ref job.SecretRef, destination string) (string, error) {
	definition := r.input.Job
	if definition.Provider.IsUnder(job.ProviderIntegration) && definition.Options.Owner == (job.Owner{}) {
		return "", job.Fail(errclass.SecretRefused, "job %s of an integration has no owner, and so gets no secret", definition.ID)
	}
	value, err := r.secrets.Resolve(ref, destination, definition.Options.Owner)
	if err == nil {
		r.resolved.Add(value)
	}
	return value, err
}

func (r *run) callSafely(ctx context.Context, t job.Type) (result job.Result, err error) {
	err = job.Safely(func() error {
		result, err = t.Handle(ctx, r)
		return err
	})
	if p, panicked := errors.AsType[*job.PanicError](err); panicked { // perhaps in a goroutine
		r.logger.Error("the handler panicked", "panic", r.resolved.Text(fmt.Sprint(p.Value)), "stack", r.resolved.Text(p.Stack))
		err = job.Fail(errclass.Panic, "the handler of job type %s %w", t.Name, p)
	}
	return result, err
}

func (r *run) gaveWayTo() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.supersededBy
}

// report is what a heartbeat carries at present.
func (r *run) report() contract.Heartbeat {
	r.mu.Lock()
	progress, cursor, attempts := r.progress, r.cursor, r.attempts.all
	r.mu.Unlock()
	progress.Message = r.resolved.Text(progress.Message)
	return heartbeat(progress, r.resolved.JSON(cursor), r.identity, attempts)
}

// lastProgress is that of the last checkpoint, fit for a history.
func (r *run) lastProgress() job.Progress {
	progress := r.report().Progress
	progress.Message = job.Cut(progress.Message, maxProgressMessage)
	return progress
}

// stop asks the handler to stop. The first cause counts, unless the run is lost.
func (r *run) stop(cause stopCause) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause == notStopped {
		close(r.stopping)
	}
	if r.cause == notStopped || cause == stopLost {
		r.cause = cause
	}
}

// withCursor gives a result the position of the last checkpoint, unless the
// handler returned one.
func (r *run) withCursor(result job.Result) job.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(result.Cursor) == 0 {
		result.Cursor = r.resolved.JSON(r.cursor)
	}
	return result
}

// activityError is the error of the activity for what the handler returned.
func (r *run) activityError(output contract.ActivityOutput, err error) error {
	if err == nil {
		return nil
	}
	r.mu.Lock()
	cause := r.cause
	r.mu.Unlock()
	stuck := errors.Is(err, errStuck)
	endedEarly := errors.Is(err, job.ErrStopped) || errors.Is(err, context.Canceled)
	switch {
	case cause == stopDraining && (endedEarly || stuck):
		output.Stopped = true
		return temporal.NewApplicationErrorWithOptions("the worker shuts down and hands the run over",
			contract.ErrorTypeDraining, temporal.ApplicationErrorOptions{
				NonRetryable: true, Details: []any{output},
				Category: temporal.ApplicationErrorCategoryBenign, // The SDK logs others at ERROR.
			})
	case endedEarly && cause == stopCanceled:
		output.Stopped = true
		return temporal.NewCanceledError(output)
	case endedEarly && cause == stopTimeout:
		return r.failed(output, job.Fail(errclass.RunTimeout,
			"job %s took longer than its run timeout, %s", r.input.Job.ID, r.input.Job.Options.RunTimeout))
	case endedEarly && cause == stopTakenBack:
		return r.failed(output, job.Fail(errclass.RunTakenBack, "job %s: its activity was paused or reset in Temporal", r.input.Job.ID))
	case cause == stopLost:
		return r.lost()
	case stuck:
		// A retry would run beside the handler that is still there.
		return r.failed(output, job.Fail(errclass.HandlerStuck, "job %s: %w", r.input.Job.ID, err))
	case errors.Is(err, job.ErrStopped):
		return r.failed(output, job.Fail(errclass.StoppedUnasked, "job %s: %w", r.input.Job.ID, err))
	}
	return r.failed(output, err) // The SDK logs it.
}

// lost is the error of an attempt that may not be the run's any more.
func (r *run) lost() error {
	output := contract.ActivityOutput{Worker: r.identity, Attempts: r.attempt}
	return r.failed(output, job.Fail(errclass.RunLost, "job %s: %w", r.input.Job.ID, errLeaseLost))
}

// failed carries a handler's error to the history, with its class and without the
// values of secrets, and with what the handler had counted and the position of the
// last checkpoint: heartbeats are gone once a run has failed. A position that came
// with the error is not taken, since an attempt that follows does not know it.
func (r *run) failed(output contract.ActivityOutput, err error) error {
	output.Result = r.withCursor(job.Result{
		Message: output.Result.Message, Counts: output.Result.Counts,
	})
	class, options := errclass.Unclassified, temporal.ApplicationErrorOptions{}
	if failure, ok := errors.AsType[*job.Failure](err); ok {
		class, output.Kind = failure.Class, failure.Kind
		options.NonRetryable = failure.Kind.Final()
		options.NextRetryDelay = failure.RetryAfter
	}
	text := job.Cut(r.resolved.Text(err.Error()), maxErrorBytes)
	output.EachAttempt = r.endAttempt(class, text, options.NextRetryDelay)
	options.Details = []any{output}
	return temporal.NewApplicationErrorWithOptions(text, class, options)
}

// Bounds of what a run leaves in histories and in the states of workflows.
const (
	maxErrorBytes      = 4 << 10
	maxMessageBytes    = 1 << 10
	maxProgressMessage = 500
	maxCursorBytes     = 32 << 10
	maxOutputBytes     = 64 << 10
	maxCounts          = 100
	maxCountName       = 80
)

// checkResult refuses a result that does not belong into a history.
func checkResult(jobID string, result job.Result) error {
	switch {
	case len(result.Output) > maxOutputBytes:
		return job.Fail(errclass.ResultTooLarge, "job %s: its result has an output of %d bytes, more than %d", jobID, len(result.Output), maxOutputBytes)
	case len(result.Cursor) > maxCursorBytes:
		return job.Fail(errclass.ResultTooLarge, "job %s: its cursor has %d bytes, more than %d", jobID, len(result.Cursor), maxCursorBytes)
	case longCount(result.Counts) != "":
		return job.Fail(errclass.ResultTooLarge, "job %s: its result has the count %.80q, whose name is longer than %d bytes",
			jobID, longCount(result.Counts), maxCountName)
	case len(result.Counts) > maxCounts:
		return job.Fail(errclass.ResultTooLarge, "job %s: its result has %d counts, more than %d", jobID, len(result.Counts), maxCounts)
	}
	return nil
}

// bounded leaves out of the result of a handler that did not succeed what does not
// belong into a history. Unlike a run that succeeds it must not fail for that: it was
// asked to stop, or failed for a reason of its own.
func (r *run) bounded(result job.Result) job.Result {
	if n := len(result.Cursor); n > maxCursorBytes {
		r.logger.Warn("the cursor of a handler that did not succeed is too large: that of its last checkpoint is kept",
			"bytes", n, "most", maxCursorBytes)
		result.Cursor = nil
	}
	if n := len(result.Output); n > maxOutputBytes {
		r.logger.Warn("the output of a handler that did not succeed is too large and is not kept", "bytes", n, "most", maxOutputBytes)
		result.Output = nil
	}
	kept := map[string]int64{}
	for _, name := range slices.Sorted(maps.Keys(result.Counts)) {
		if len(name) <= maxCountName && len(kept) < maxCounts {
			kept[name] = result.Counts[name]
		}
	}
	if left := len(result.Counts) - len(kept); left > 0 {
		r.logger.Warn("a handler that did not succeed has too many counts, or too long names of counts: not all are kept",
			"left_out", left, "most", maxCounts)
		result.Counts = kept
	}
	return result
}

// clean takes secrets out of a result, before anything of it is cut.
func (r *run) clean(result job.Result) job.Result {
	result.Message = r.resolved.Text(result.Message)
	result.Output, result.Cursor = r.resolved.JSON(result.Output), r.resolved.JSON(result.Cursor)
	counts := make(map[string]int64, len(result.Counts))
	for name, n := range result.Counts {
		counts[r.resolved.Text(name)] += n
	}
	if len(counts) > 0 {
		result.Counts = counts
	}
	return result
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
