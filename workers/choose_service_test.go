package workers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/workers"
)

func service(name, zone string) client.LiveService {
	return client.LiveService{
		State: client.ServiceServing,
		Service: contract.Service{
			Worker: "counting", Name: name, Slots: 10, Types: []contract.ServedType{{Name: "CountThings"}},
			Tags: map[string]string{"zone": zone, job.TagName: name},
		},
	}
}

func TestChoiceOfAService(t *testing.T) {
	t.Parallel()
	in := contract.ChooseServiceInput{
		JobID: "count_things.a", Worker: "counting", Type: "CountThings", Bind: map[string]string{"zone": "north"},
		Failover: job.FailoverRequeue, After: job.Duration(30 * time.Second),
	}
	choose := func(in contract.ChooseServiceInput, waited time.Duration, services ...client.LiveService) string {
		t.Helper()
		chosen, err := workers.Choose(in, services, waited)
		require.NoError(t, err)
		return chosen
	}
	a, b, south := service("a", "north"), service("b", "north"), service("c", "south")
	draining, otherWorker, otherType := service("d", "north"), service("e", "north"), service("f", "north")
	draining.State = client.ServiceDraining
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
	_, err := workers.Choose(in, []client.LiveService{a}, 30*time.Second)
	var final *temporal.ApplicationError
	require.ErrorAs(t, err, &final)
	require.True(t, final.NonRetryable())
	require.Equal(t, errclass.NoService, final.Type())
	require.ErrorContains(t, err, "job count_things.a is bound to service counting@b, which is gone")
	in.Last = ""
	_, err = workers.Choose(in, nil, 30*time.Second)
	require.ErrorContains(t, err, "job count_things.a is bound to tags that no live counting service has that serves CountThings")
}

// A service that is full of handlers which were given up announces itself as serving,
// and takes nothing until it is restarted.
func TestChoiceLeavesOutServicesFullOfStuckHandlers(t *testing.T) {
	t.Parallel()
	in := contract.ChooseServiceInput{
		JobID: "count_things.a", Worker: "counting", Type: "CountThings",
		Failover: job.FailoverRequeue, After: job.Duration(30 * time.Second),
	}
	choose := func(in contract.ChooseServiceInput, waited time.Duration, services ...client.LiveService) string {
		t.Helper()
		chosen, err := workers.Choose(in, services, waited)
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
	_, err := workers.Choose(in, []client.LiveService{stuck, a}, 30*time.Second)
	require.ErrorContains(t, err, "service counting@b, all of whose slots are held by handlers that were given up")
	in.Failover = job.FailoverWait
	require.Empty(t, choose(in, time.Hour, stuck, a))

	// It did not take the run in time: it is left at once, not waited for as a busy one.
	in.Failover, in.After, in.FreeSlot = job.FailoverRequeue, 0, true
	require.Equal(t, "a", choose(in, 0, stuck, a))
	require.Empty(t, choose(in, time.Hour, nearly, a))
}

func TestJobsAreSpreadOverServicesAndStay(t *testing.T) {
	t.Parallel()
	services := []client.LiveService{service("a", "north"), service("b", "north"), service("c", "north"), service("d", "north")}
	chosen := map[string]string{}
	counts := map[string]int{}
	for i := range 1000 {
		in := contract.ChooseServiceInput{JobID: fmt.Sprintf("count_things.j%d", i), Worker: "counting", Type: "CountThings"}
		name, err := workers.Choose(in, services, 0)
		require.NoError(t, err)
		chosen[in.JobID] = name
		counts[name]++
	}
	for name, n := range counts {
		require.InDelta(t, 250, n, 60, name)
	}
	for id, before := range chosen {
		in := contract.ChooseServiceInput{JobID: id, Worker: "counting", Type: "CountThings"}
		name, err := workers.Choose(in, services[:3], 0)
		require.NoError(t, err)
		if before != "d" {
			require.Equal(t, before, name, "only the jobs of the service that went move")
		}
	}
}

// TestFewJobsOfEqualTagsAreSpread has services report the runs that they were given only later.
func TestFewJobsOfEqualTagsAreSpread(t *testing.T) {
	t.Parallel()
	services := []client.LiveService{service("a", "north"), service("b", "north"), service("c", "north")}
	var c workers.Chooser
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	choose := func(key string) string {
		t.Helper()
		name, err := c.Choose(contract.ChooseServiceInput{
			JobID: "count_things." + key, Worker: "counting", Type: "CountThings", Bind: map[string]string{"zone": "north"}, Spread: true,
		}, services, now)
		require.NoError(t, err)
		return name
	}
	counts := map[string]int{}
	for i := range 6 {
		counts[choose(fmt.Sprint(i))]++
	}
	require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 2}, counts)

	// The services count the runs themselves then. One has more slots, and two that are free.
	now = now.Add(time.Minute)
	for i := range services {
		services[i].Running = 2
	}
	services[1].Slots = 40
	require.Equal(t, "b", choose("7"))
	services[0].Running = 0
	require.Equal(t, "a", choose("8"))
}

// TestRunSearchesForAServiceLessAndLessOften bounds how often, and how late.
func TestRunSearchesForAServiceLessAndLessOften(t *testing.T) {
	t.Parallel()
	in := contract.ChooseServiceInput{After: job.Duration(30 * time.Second)}
	at := map[time.Duration]bool{}
	searches := 1
	for ; ; searches++ {
		waited, next := workers.Backoff(in, searches)
		at[waited] = true
		require.Positive(t, next)
		require.LessOrEqual(t, next, max(waited/4, time.Second), "a service that returns is found soon")
		again, _ := workers.Backoff(in, searches+1)
		require.Equal(t, waited+next, again)
		if waited > 24*time.Hour {
			break
		}
	}
	require.True(t, at[0])
	require.True(t, at[30*time.Second], "when the failover policy applies")
	require.Less(t, searches, 24*3600/15+50)
}
