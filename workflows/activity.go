package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// whereProgressIs points readers of the Web UI to the progress of a run: it is in the
// heartbeats, which are not in the history.
const whereProgressIs = "see its pending activity for the progress"

// longestAttempt is when Temporal takes an attempt for lost that still sends
// heartbeats. Its worker ends it before: it may take the run timeout, then the stop
// grace period, and then what it waits for a stuck handler. The worker counts from
// when the attempt begins there, up to twice the heartbeat timeout after it was
// given out, and then reports how it ended.
func longestAttempt(options job.Options) time.Duration {
	const report = 10 * time.Second
	return options.RunTimeout.Std() + options.StopGracePeriod.Std() + contract.MaxReturnGrace + 2*options.HeartbeatTimeout.Std() + report
}

// withJobActivity sets the activity options of a job: maxAttempts 0 means no limit.
func withJobActivity(ctx workflow.Context, j job.Job, maxAttempts int) workflow.Context {
	options := j.Options
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           contract.TaskQueue(j.Worker),
		StartToCloseTimeout: longestAttempt(options),
		HeartbeatTimeout:    options.HeartbeatTimeout.Std(),
		WaitForCancellation: true,
		Summary:             j.Options.Description,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:        options.RetryBackoff.Initial.Std(),
			MaximumInterval:        options.RetryBackoff.Max.Std(),
			BackoffCoefficient:     options.RetryBackoff.Coefficient,
			MaximumAttempts:        int32(min(maxAttempts, job.MaxRetryLimit+1)), //nolint:gosec // Bounded right here.
			NonRetryableErrorTypes: []string{contract.ErrorTypeDraining},
		},
	})
}

// handedBack reports whether err is a worker's hand-over of a run it could not
// finish before it shut down, and the output so far.
func handedBack(err error) (contract.ActivityOutput, bool) {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != contract.ErrorTypeDraining {
		return contract.ActivityOutput{}, false
	}
	var output contract.ActivityOutput
	if app.HasDetails() {
		if err := app.Details(&output); err != nil {
			return contract.ActivityOutput{}, true
		}
	}
	return output, true
}

// stoppedOutput is what a handler left behind that was stopped on request.
func stoppedOutput(err error) (contract.ActivityOutput, bool) {
	var canceled *temporal.CanceledError
	if !errors.As(err, &canceled) {
		return contract.ActivityOutput{}, false
	}
	output := contract.ActivityOutput{Stopped: true}
	if canceled.HasDetails() {
		if err := canceled.Details(&output); err != nil {
			return contract.ActivityOutput{Stopped: true}, true
		}
	}
	return output, true
}

// maxText bounds each text that a workflow's state carries on: the state is the
// input of its next run, which must stay far below Temporal's 2 MiB.
const maxText = 500

// shorten cuts a text to maxText bytes.
func shorten(text string) string { return job.Cut(text, maxText) }
