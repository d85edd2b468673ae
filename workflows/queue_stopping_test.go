package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// watchedEnvironment has a queue whose running item was started by an earlier run
// of the workflow, and ends with an error of the given type.
func watchedEnvironment(t *testing.T, errorType string, starts *[]time.Time) (*testsuite.TestWorkflowEnvironment, contract.QueueState) {
	t.Helper()
	var env *testsuite.TestWorkflowEnvironment
	env = newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		*starts = append(*starts, env.Now())
		return contract.ActivityOutput{}, nil
	})
	env.RegisterActivityWithOptions(func(context.Context, contract.WatchRunInput) error {
		return temporal.NewNonRetryableApplicationError("it ended", errorType, nil)
	}, activity.RegisterOptions{Name: contract.WatchRunActivity})
	ended := queued("a")
	ended.Options.HeartbeatTimeout = job.Duration(20 * time.Second)
	return env, contract.QueueState{
		Name: "tables", Accepted: 2, Waiting: []contract.QueueItem{{Sequence: 2, Job: queued("b")}},
		Running: &contract.RunningItem{QueueItem: contract.QueueItem{Sequence: 1, Job: ended}, RunID: "r"},
	}
}

// The handler of a run that was terminated hears of it with its next heartbeat.
func TestJobQueueWaitsForTheHandlerOfATerminatedRun(t *testing.T) {
	t.Parallel()
	for errorType, wait := range map[string]time.Duration{"RunCutOff": 20 * time.Second, "RunFailed": 0} {
		t.Run(errorType, func(t *testing.T) {
			var starts []time.Time
			env, state := watchedEnvironment(t, errorType, &starts)
			began := env.Now()
			env.RegisterDelayedCallback(func() {
				if wait > 0 {
					require.Equal(t, "count_things.a", queueState(t, env).Stopping.JobID)
				}
			}, 10*time.Second)
			state = endQueue(t, env, time.Minute, state)
			require.Len(t, starts, 1)
			require.InDelta(t, wait.Seconds(), starts[0].Sub(began).Seconds(), 0.5)
			require.Nil(t, state.Stopping)
			require.EqualValues(t, 1, state.Failed)
			require.EqualValues(t, 1, state.Completed)
		})
	}
}

// The wait goes on where it was when the queue continues as new.
func TestJobQueueWaitsOnAfterContinueAsNew(t *testing.T) {
	t.Parallel()
	var starts []time.Time
	env, state := watchedEnvironment(t, "RunCutOff", &starts)
	state = endQueue(t, env, 5*time.Second, state)
	require.NotNil(t, state.Stopping)
	require.Empty(t, starts)

	next, _ := watchedEnvironment(t, "", &starts)
	next.SetStartTime(state.Stopping.Until.Add(-15 * time.Second))
	state = endQueue(t, next, time.Minute, state)
	require.Len(t, starts, 1)
	require.Nil(t, state.Stopping)
	require.EqualValues(t, 1, state.Completed)
}
