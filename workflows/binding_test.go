package workflows_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// TestBoundRunGoesToItsService looks at the task queues that activities go to.
func TestBoundRunGoesToItsService(t *testing.T) {
	t.Parallel()
	queues := map[string]string{}
	env := newEnvironment(t, func(ctx context.Context, _ contract.ActivityInput) (contract.ActivityOutput, error) {
		info := activity.GetInfo(ctx)
		queues[info.ActivityType.Name] = info.TaskQueue
		return contract.ActivityOutput{Worker: "w", Attempts: 1}, nil
	})
	env.RegisterActivityWithOptions(func(ctx context.Context, in contract.ChooseServiceInput) (contract.ServiceChoice, error) {
		queues[activity.GetInfo(ctx).ActivityType.Name] = activity.GetInfo(ctx).TaskQueue
		require.Equal(t, map[string]string{"zone": "north"}, in.Bind)
		return contract.ServiceChoice{Service: "b"}, nil
	}, activity.RegisterOptions{Name: contract.ChooseServiceActivity})
	j := newJob("a", job.Trigger{OneShot: &job.OneShot{}})
	j.Options.Bind = map[string]string{"zone": "north"}
	env.ExecuteWorkflow(contract.RunJobType, contract.RunInput{Job: j})
	require.NoError(t, env.GetWorkflowError())
	var out contract.RunOutput
	require.NoError(t, env.GetWorkflowResult(&out))
	require.Equal(t, map[string]string{testType: "counting@b", contract.ChooseServiceActivity: contract.QueuesTaskQueue}, queues)
	require.Equal(t, "b", out.Binding.Service)
	require.Empty(t, out.Binding.Rebinds)
}

// TestBoundRunCountsTheAttemptsOfLostServices has every service die in the middle of
// an attempt, and not return.
func TestBoundRunCountsTheAttemptsOfLostServices(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before   error // what ended the attempt before the one that no service took
		notTaken int
	}{
		"died":   {silent("1"), 3},
		"failed": {temporal.NewApplicationError("away", "Away", contract.ActivityOutput{Worker: "w1", Attempts: 3}), 1},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
				if calls++; calls <= c.notTaken {
					return contract.ActivityOutput{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, c.before)
				}
				return contract.ActivityOutput{}, silent("1") // The last attempt.
			})
			env.RegisterActivityWithOptions(func(context.Context, contract.ChooseServiceInput) (contract.ServiceChoice, error) {
				return contract.ServiceChoice{Service: "a"}, nil
			}, activity.RegisterOptions{Name: contract.ChooseServiceActivity})
			j := oneShot("a")
			j.Options.MaxRetryCount = 3
			j.Options.Bind = map[string]string{"zone": "north"}
			env.ExecuteWorkflow(contract.RunJobType, contract.RunInput{Job: j})
			require.Error(t, env.GetWorkflowError())
			require.Equal(t, c.notTaken+1+5, calls)
		})
	}
}

// A service that fell silent is waited for from its last heartbeat, so that the heartbeat
// timeout does not come on top of failover_after.
func TestFailoverCountsFromTheLastHeartbeat(t *testing.T) {
	t.Parallel()
	notTaken := func(before error) error {
		return temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, before)
	}
	failed := temporal.NewApplicationError("away", "Away", contract.ActivityOutput{Worker: "w1", Attempts: 1})
	type look struct {
		after    time.Duration
		freeSlot bool
	}
	for name, c := range map[string]struct {
		heartbeat time.Duration
		moves     bool // to another service each time
		ends      []error
		looks     []look
	}{
		"in an attempt that is not the last": {15 * time.Second, false, []error{notTaken(silent("1"))}, []look{{0, true}}},
		"in the last attempt":                {10 * time.Second, false, []error{silent("1")}, []look{{20 * time.Second, false}}},
		"in the last attempt, and seems to live": {
			15 * time.Second, false, []error{silent("1"), notTaken(nil), notTaken(nil)},
			[]look{{15 * time.Second, false}, {0, true}, {0, true}},
		},
		"in the last attempt, and another does not take it": {
			10 * time.Second, true, []error{silent("1"), notTaken(nil)},
			[]look{{20 * time.Second, false}, {10 * time.Second, true}},
		},
		"without an attempt":        {10 * time.Second, false, []error{notTaken(nil)}, []look{{10 * time.Second, true}}},
		"after a failed attempt":    {10 * time.Second, false, []error{notTaken(failed)}, []look{{10 * time.Second, true}}},
		"for long, in an attempt":   {time.Minute, false, []error{notTaken(silent("1"))}, []look{{0, true}}},
		"for long, in the last one": {time.Minute, false, []error{silent("1")}, []look{{15 * time.Second, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			ends := c.ends
			env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
				if len(ends) == 0 {
					return contract.ActivityOutput{Worker: "w", Attempts: 1}, nil
				}
				err := ends[0]
				ends = ends[1:]
				return contract.ActivityOutput{}, err
			})
			var looks []look
			env.RegisterActivityWithOptions(func(_ context.Context, in contract.ChooseServiceInput) (contract.ServiceChoice, error) {
				looks = append(looks, look{in.After.Std(), in.FreeSlot})
				if c.moves {
					return contract.ServiceChoice{Service: fmt.Sprintf("s%d", len(looks))}, nil
				}
				return contract.ServiceChoice{Service: "a"}, nil
			}, activity.RegisterOptions{Name: contract.ChooseServiceActivity})
			j := oneShot("a")
			j.Options.MaxRetryCount = 0
			j.Options.Bind = map[string]string{"zone": "north"}
			j.Options.HeartbeatTimeout, j.Options.FailoverAfter = job.Duration(c.heartbeat), job.Duration(30*time.Second)
			env.ExecuteWorkflow(contract.RunJobType, contract.RunInput{Job: j})
			require.NoError(t, env.GetWorkflowError())
			require.Equal(t, append([]look{{30 * time.Second, false}}, c.looks...), looks)
		})
	}
}

// What a continuous job knows of its service is carried on when it continues as new.
func TestContinuousJobCarriesOnWhatItKnowsOfItsService(t *testing.T) {
	t.Parallel()
	released := make(chan struct{})
	env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		<-released
		return contract.ActivityOutput{}, silent("1")
	})
	var waits []time.Duration
	choose := func(_ context.Context, in contract.ChooseServiceInput) (contract.ServiceChoice, error) {
		waits = append(waits, in.After.Std())
		return contract.ServiceChoice{Service: "a"}, nil
	}
	env.RegisterActivityWithOptions(choose, activity.RegisterOptions{Name: contract.ChooseServiceActivity})
	env.RegisterDelayedCallback(func() {
		env.SetContinueAsNewSuggested(true)
		close(released)
	}, soon)
	j := continuous("a", time.Hour)
	j.Options.Bind = map[string]string{"zone": "north"}
	j.Options.HeartbeatTimeout, j.Options.FailoverAfter = job.Duration(10*time.Second), job.Duration(30*time.Second)
	env.ExecuteWorkflow(contract.ContinuousJobType, contract.NewContinuousState(j))
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &again)
	var state contract.ContinuousState
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &state))

	next := newEnvironment(t, succeed)
	next.RegisterActivityWithOptions(choose, activity.RegisterOptions{Name: contract.ChooseServiceActivity})
	send(t, next, time.Minute, contract.MessageStop, contract.StopRequest{})
	next.ExecuteWorkflow(contract.ContinuousJobType, state)
	require.NoError(t, next.GetWorkflowError())
	require.Equal(t, []time.Duration{30 * time.Second, 20 * time.Second}, waits, "less the heartbeat timeout, for which it was silent")
}
