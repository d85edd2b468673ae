package workflows_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

func service(name, zone string) workflows.LiveService {
	return workflows.LiveService{
		State: workflows.ServiceServing,
		Service: contract.Service{
			Worker: "counting", Name: name, Slots: 10, Types: []contract.ServedType{{Name: testType}},
			Tags: map[string]string{"zone": zone, job.TagName: name},
		},
	}
}

func TestChoiceOfAService(t *testing.T) {
	in := contract.ChooseServiceInput{
		JobID: "count_things.a", Worker: "counting", Type: testType, Bind: map[string]string{"zone": "north"},
		Failover: job.FailoverRequeue, After: job.Duration(30 * time.Second),
	}
	choose := func(in contract.ChooseServiceInput, waited time.Duration, services ...workflows.LiveService) string {
		t.Helper()
		chosen, err := workflows.Choose(in, services, waited)
		require.NoError(t, err)
		return chosen
	}
	a, b, south := service("a", "north"), service("b", "north"), service("c", "south")
	draining, otherWorker, otherType := service("d", "north"), service("e", "north"), service("f", "north")
	draining.State = workflows.ServiceDraining
	otherWorker.Worker = "load"
	otherType.Types = nil

	// The first choice waits for a service that has all it takes, however long.
	require.Empty(t, choose(in, time.Hour, south, draining, otherWorker, otherType))
	require.Equal(t, "a", choose(in, 0, south, a, draining))

	// The last one is kept, or waited for, and then another has its turn.
	in.Last = "b"
	require.Equal(t, "b", choose(in, 0, a, b))
	require.Empty(t, choose(in, 29*time.Second, a))
	require.Equal(t, "a", choose(in, 30*time.Second, a))
	require.Empty(t, choose(in, time.Hour, south))

	// One that lives and is busy is waited for: history is not spent on asking.
	in.FreeSlot = true
	busy := service("b", "north")
	busy.Slots, busy.Running = 2, 2
	require.Empty(t, choose(in, time.Hour, a, busy))
	busy.Running = 1
	require.Equal(t, "b", choose(in, 0, a, busy))
	in.FreeSlot = false

	in.Failover = job.FailoverWait
	require.Empty(t, choose(in, time.Hour, a))
	require.Equal(t, "b", choose(in, time.Hour, a, b))

	in.Failover = job.FailoverFail
	require.Empty(t, choose(in, 29*time.Second, a))
	_, err := workflows.Choose(in, []workflows.LiveService{a}, 30*time.Second)
	var final *temporal.ApplicationError
	require.ErrorAs(t, err, &final)
	require.True(t, final.NonRetryable())
	require.Equal(t, job.ClassNoService, final.Type())
	require.ErrorContains(t, err, "job count_things.a is bound to service counting@b, which is gone")
	in.Last = ""
	_, err = workflows.Choose(in, nil, 30*time.Second)
	require.ErrorContains(t, err, "job count_things.a is bound to tags that no live counting service has that serves CountThings")
}

// A service that is full of handlers which were given up announces itself as serving,
// and takes nothing until it is restarted.
func TestChoiceLeavesOutServicesFullOfDeafHandlers(t *testing.T) {
	in := contract.ChooseServiceInput{
		JobID: "count_things.a", Worker: "counting", Type: testType,
		Failover: job.FailoverRequeue, After: job.Duration(30 * time.Second),
	}
	choose := func(in contract.ChooseServiceInput, waited time.Duration, services ...workflows.LiveService) string {
		t.Helper()
		chosen, err := workflows.Choose(in, services, waited)
		require.NoError(t, err)
		return chosen
	}
	a, stuck := service("a", "north"), service("b", "north")
	stuck.Slots, stuck.Running, stuck.StuckHandlers = 2, 2, 2
	require.Empty(t, choose(in, time.Hour, stuck))
	require.Equal(t, "a", choose(in, 0, stuck, a))
	nearly := stuck
	nearly.StuckHandlers = 1
	require.Equal(t, "b", choose(in, 0, nearly))

	// The one that a run was on is as good as away: failover comes in.
	in.Last = "b"
	require.Empty(t, choose(in, 29*time.Second, stuck, a))
	require.Equal(t, "a", choose(in, 30*time.Second, stuck, a))
	in.Failover = job.FailoverFail
	_, err := workflows.Choose(in, []workflows.LiveService{stuck, a}, 30*time.Second)
	require.ErrorContains(t, err, "service counting@b, all of whose slots are held by handlers that were given up")
	in.Failover = job.FailoverWait
	require.Empty(t, choose(in, time.Hour, stuck, a))

	// It did not take the run in time: it is left at once, not waited for as a busy one.
	in.Failover, in.After, in.FreeSlot = job.FailoverRequeue, 0, true
	require.Equal(t, "a", choose(in, 0, stuck, a))
	require.Empty(t, choose(in, time.Hour, nearly, a))
}

func TestJobsAreSpreadOverServicesAndStay(t *testing.T) {
	services := []workflows.LiveService{service("a", "north"), service("b", "north"), service("c", "north"), service("d", "north")}
	chosen := map[string]string{}
	counts := map[string]int{}
	for i := range 1000 {
		in := contract.ChooseServiceInput{JobID: fmt.Sprintf("count_things.j%d", i), Worker: "counting", Type: testType}
		name, err := workflows.Choose(in, services, 0)
		require.NoError(t, err)
		chosen[in.JobID] = name
		counts[name]++
	}
	for name, n := range counts {
		require.InDelta(t, 250, n, 60, name)
	}
	for id, before := range chosen {
		in := contract.ChooseServiceInput{JobID: id, Worker: "counting", Type: testType}
		name, err := workflows.Choose(in, services[:3], 0)
		require.NoError(t, err)
		if before != "d" {
			require.Equal(t, before, name, "only the jobs of the service that went move")
		}
	}
}

// TestBoundRunGoesToItsService looks at the task queues that activities go to.
func TestBoundRunGoesToItsService(t *testing.T) {
	queues := map[string]string{}
	env := newEnvironment(t, func(ctx context.Context, _ contract.ActivityInput) (contract.ActivityOutput, error) {
		info := activity.GetInfo(ctx)
		queues[info.ActivityType.Name] = info.TaskQueue
		return contract.ActivityOutput{Worker: "w", Attempts: 1}, nil
	})
	env.RegisterActivityWithOptions(func(ctx context.Context, in contract.ChooseServiceInput) (contract.ServiceChoice, error) {
		queues[activity.GetInfo(ctx).ActivityType.Name] = activity.GetInfo(ctx).TaskQueue
		name, err := workflows.Choose(in, []workflows.LiveService{service("b", "north")}, 0)
		return contract.ServiceChoice{Service: name}, err
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

// TestBoundRunCountsTheTriesOfLostServices has every service die in the middle of
// a try, and not return.
func TestBoundRunCountsTheTriesOfLostServices(t *testing.T) {
	for name, c := range map[string]struct {
		before  error // what ended the try before the one that no service took
		untaken int
	}{
		"died":   {silent("1"), 3},
		"failed": {temporal.NewApplicationError("away", "Away", contract.ActivityOutput{Worker: "w1", Attempts: 3}), 1},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
				if calls++; calls <= c.untaken {
					return contract.ActivityOutput{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, c.before)
				}
				return contract.ActivityOutput{}, silent("1") // The last try.
			})
			env.RegisterActivityWithOptions(func(context.Context, contract.ChooseServiceInput) (contract.ServiceChoice, error) {
				return contract.ServiceChoice{Service: "a"}, nil
			}, activity.RegisterOptions{Name: contract.ChooseServiceActivity})
			j := oneShot("a")
			j.Options.MaxRetryCount = 3
			j.Options.Bind = map[string]string{"zone": "north"}
			env.ExecuteWorkflow(contract.RunJobType, contract.RunInput{Job: j})
			require.Error(t, env.GetWorkflowError())
			require.Equal(t, c.untaken+1+5, calls)
		})
	}
}

// A service that fell silent is waited for from its last sign, so that the heartbeat
// timeout does not come on top of failover_after.
func TestFailoverCountsFromTheLastSign(t *testing.T) {
	untaken := func(before error) error {
		return temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, before)
	}
	failed := temporal.NewApplicationError("away", "Away", contract.ActivityOutput{Worker: "w1", Attempts: 1})
	type look struct {
		after time.Duration
		room  bool
	}
	for name, c := range map[string]struct {
		heartbeat time.Duration
		moves     bool // to another service each time
		ends      []error
		looks     []look
	}{
		"in a try that is not the last": {15 * time.Second, false, []error{untaken(silent("1"))}, []look{{0, true}}},
		"in the last try":               {10 * time.Second, false, []error{silent("1")}, []look{{20 * time.Second, false}}},
		"in the last try, and seems to live": {
			15 * time.Second, false, []error{silent("1"), untaken(nil), untaken(nil)},
			[]look{{15 * time.Second, false}, {0, true}, {0, true}},
		},
		"in the last try, and another does not take it": {
			10 * time.Second, true, []error{silent("1"), untaken(nil)},
			[]look{{20 * time.Second, false}, {10 * time.Second, true}},
		},
		"without a try":         {10 * time.Second, false, []error{untaken(nil)}, []look{{10 * time.Second, true}}},
		"after a failed try":    {10 * time.Second, false, []error{untaken(failed)}, []look{{10 * time.Second, true}}},
		"for long, in a try":    {time.Minute, false, []error{untaken(silent("1"))}, []look{{0, true}}},
		"for long, in the last": {time.Minute, false, []error{silent("1")}, []look{{15 * time.Second, false}}},
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

// TestRunLooksForAServiceLessAndLessOften bounds how often, and how late.
func TestRunLooksForAServiceLessAndLessOften(t *testing.T) {
	in := contract.ChooseServiceInput{After: job.Duration(30 * time.Second)}
	at := map[time.Duration]bool{}
	looks := 1
	for ; ; looks++ {
		waited, next := workflows.Patience(in, looks)
		at[waited] = true
		require.Positive(t, next)
		require.LessOrEqual(t, next, max(waited/4, time.Second), "a service that returns is found soon")
		again, _ := workflows.Patience(in, looks+1)
		require.Equal(t, waited+next, again)
		if waited > 24*time.Hour {
			break
		}
	}
	require.True(t, at[0])
	require.True(t, at[30*time.Second], "when the failover policy comes in")
	require.Less(t, looks, 24*3600/15+50)
}
