package workers

import (
	"context"
	"errors"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/metrics"
	"github.com/dendrascience/dendra-jobs/job"
)

// outcome says how an attempt ended whose handler returned err, as a metric does.
func (r *run) outcome(err error) string {
	r.mu.Lock()
	cause := r.cause
	r.mu.Unlock()
	endedEarly := errors.Is(err, job.ErrStopped) || errors.Is(err, context.Canceled)
	switch {
	case err == nil:
		return metrics.Completed
	case errors.Is(err, errStuck):
		return metrics.Stuck
	case errors.Is(err, errLeaseLost), cause == stopLost:
		return metrics.Lost
	case endedEarly && cause == stopDraining:
		return metrics.HandedOver
	case endedEarly && cause == stopTimeout:
		return metrics.TimedOut
	case endedEarly && cause == stopCanceled:
		return metrics.Canceled
	}
	return metrics.Failed
}

func (r *run) countAttempt(err error) {
	outcome := r.outcome(err)
	metrics.Attempts.Inc(r.input.Job.Type, outcome)
	if outcome == metrics.Lost {
		metrics.LeasesLost.Inc(r.input.Job.Type)
	}
}

// runCounter counts the runs that end in a process. A run that is terminated ends in none.
type runCounter struct {
	interceptor.WorkerInterceptorBase
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (*runCounter) InterceptWorkflow(ctx workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	if workflow.GetInfo(ctx).WorkflowType.Name != contract.RunJobType {
		return next
	}
	return &countedRun{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type countedRun struct {
	interceptor.WorkflowInboundInterceptorBase
}

// ExecuteWorkflow implements interceptor.WorkflowInboundInterceptor.
func (c *countedRun) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	result, err := c.Next.ExecuteWorkflow(ctx, in)
	if len(in.Args) == 0 || workflow.IsReplaying(ctx) || workflow.IsContinueAsNewError(err) {
		return result, err
	}
	if input, ok := in.Args[0].(contract.RunInput); ok {
		metrics.Runs.Inc(input.Job.Type, runOutcome(result, err))
	}
	return result, err
}

func runOutcome(result any, err error) string {
	output, _ := result.(*contract.RunOutput)
	switch {
	case temporal.IsCanceledError(err):
		return metrics.Canceled
	case err != nil:
		return metrics.Failed
	case output != nil && (!output.HeldUntil.IsZero() || !output.SupersededBy.IsZero()):
		return metrics.HeldBack
	}
	return metrics.Completed
}

// zeroMetrics makes the counters by outcome begin with 0: an increase from nothing to 1 is
// not seen.
func zeroMetrics(jobTypes []string) {
	both := []string{metrics.Completed, metrics.Failed, metrics.Canceled}
	for _, name := range jobTypes {
		for _, outcome := range both {
			metrics.Runs.Add(0, name, outcome)
			metrics.Attempts.Add(0, name, outcome)
		}
		metrics.Runs.Add(0, name, metrics.HeldBack)
		for _, outcome := range []string{metrics.TimedOut, metrics.HandedOver, metrics.Lost, metrics.Stuck} {
			metrics.Attempts.Add(0, name, outcome)
		}
		metrics.LeasesLost.Add(0, name)
		metrics.HeartbeatFailed.Add(0, name)
		metrics.HandlersRunning.Add(0, name)
		metrics.HandlersStuck.Add(0, name)
	}
}
