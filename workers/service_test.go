package workers_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/workers"
)

// liveServices are the services that live.
func liveServices(t *testing.T, c *client.Client) ([]client.LiveService, error) {
	t.Helper()
	services, err := c.Workers.Services(t.Context(), time.Time{})
	return services.Live, errors.Join(err, services.Unreadable)
}

// liveNames are the names of the services that live.
func liveNames(t *testing.T, c *client.Client) []string {
	t.Helper()
	services, err := liveServices(t, c)
	require.NoError(t, err)
	names := []string{}
	for _, s := range services {
		names = append(names, s.Name)
	}
	return names
}

func waitForServices(t *testing.T, c *client.Client, names ...string) {
	t.Helper()
	stacktest.WaitFor(t, "the live services", func() (bool, error) {
		live := liveNames(t, c)
		if len(live) != len(names) {
			return false, nil
		}
		for i, name := range names {
			if live[i] != name {
				return false, nil
			}
		}
		return true, nil
	})
}

func TestServiceIsAnnouncedUntilItsEnd(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "temporal")
	c := newControl(t, st)
	a := startServiceToKill(t, st, "a", "--tag", "zone=north,gpu=2", "--max-concurrent-runs", "7")
	waitForServices(t, c, "a")
	services, err := liveServices(t, c)
	require.NoError(t, err)
	require.Len(t, services, 1)
	s := services[0]
	require.Equal(t, "testing@a", s.ID())
	require.Equal(t, "north", s.Tags["zone"])
	require.Equal(t, "2", s.Tags["gpu"])
	require.Equal(t, "a", s.Tags[job.TagName])
	require.NotEmpty(t, s.Host())
	require.Equal(t, a.PID(), s.PID)
	require.Equal(t, 7, s.Slots)
	require.Equal(t, client.ServiceServing, s.State)
	require.NotEmpty(t, s.Build.Module)
	require.WithinDuration(t, time.Now(), s.LastSeen, time.Minute)
	require.True(t, s.Serves("RecordSteps"))
	for _, served := range s.Types {
		require.Contains(t, string(served.SpecSchema), `"additionalProperties":false`, served.Name)
	}

	// No two live services have one name.
	twin := startServiceToKill(t, st, "a")
	waitForServices(t, c, "a", "a-2")
	twin.Signal(syscall.SIGTERM)
	require.Zero(t, twin.Wait())
	waitForServices(t, c, "a")

	// A process that is silent is taken for dead, and announces itself again.
	a.Signal(syscall.SIGSTOP)
	waitForServices(t, c)
	known, err := c.Workers.List(t.Context())
	require.NoError(t, err)
	require.Len(t, known.Lost, 1)
	require.Equal(t, client.ServiceLost, known.Lost[0].State)
	a.Signal(syscall.SIGCONT)
	waitForServices(t, c, "a")

	// The registry survives the servers.
	st.Kill()
	st.Restart(t)
	waitForServices(t, c, "a")

	a.Kill()
	waitForServices(t, c)
	again := startServiceToKill(t, st, "a")
	waitForServices(t, c, "a")
	again.Signal(syscall.SIGTERM)
	require.Zero(t, again.Wait())
	waitForServices(t, c)
	known, err = c.Workers.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, known.Lost, "the last one went in peace")
}

// bound makes a job that is bound to the tag zone=north, and waits at a gate.
func bound(t *testing.T, key string, schedule job.Trigger, ledger workertest.Book, gate string, failover job.Failover) job.Job {
	t.Helper()
	j := withShortTimeout(newJob(t, "RecordSteps", key, schedule, recordSpec{Ledger: string(ledger), Steps: 3, Gate: gate}))
	j.Options.Bind = map[string]string{"zone": "north"}
	j.Options.Failover = failover
	j.Options.FailoverAfter = job.Duration(shortTimeout)
	require.Empty(t, j.Validate())
	return j
}

func TestBoundRunsFollowTheirFailoverPolicy(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	south := startServiceToKill(t, st, "south", "--tag", "zone=south")
	first := startServiceToKill(t, st, "first", "--tag", "zone=north")

	// Failed over by a retry that its service does not take, by the run itself
	// when there are no retries, not at all, and for good.
	retried := bound(t, "retried", oneShot(), ledger, gate, job.FailoverRequeue)
	once := bound(t, "once", oneShot(), ledger, gate, job.FailoverRequeue)
	once.Options.MaxRetryCount = 0
	waits := bound(t, "waits", oneShot(), ledger, gate, job.FailoverWait)
	fails := bound(t, "fails", oneShot(), ledger, gate, job.FailoverFail)
	queued := bound(t, "queued", queuedIn("bound"), ledger, gate, "")
	loop := bound(t, "loop", continuousEvery(time.Hour), ledger, gate, "")
	runs := map[string]client.RunRef{}
	for _, j := range []job.Job{retried, once, waits, fails} {
		ref := startRun(t, c, j)
		runs[j.ID] = ref
	}
	enqueue(t, c, queued)
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), loop))
	ledger.WaitFor(t, "step", 6)
	item := workertest.WaitQueue(t, c, "bound", "a run", func(s *contract.QueueState) bool { return s.Running != nil && s.Running.RunID != "" }).Running
	atWork := append(slices.Collect(maps.Values(runs)), client.RunRef{WorkflowID: contract.JobWorkflowID(queued.ID), RunID: item.RunID})
	for _, ref := range atWork {
		waitFirstStep(t, c, ref)
	}

	second := startServiceToKill(t, st, "second", "--tag", "zone=north")
	first.Kill()
	followed := func(j job.Job) *client.RunDetail {
		run := follow(t, c, runs[j.ID])
		return run
	}
	failed := followed(fails)
	require.Equal(t, client.RunFailed, failed.Status)
	require.Equal(t, errclass.NoService, failed.Class)
	require.Contains(t, failed.Error, "bound to service testing@first")
	require.Equal(t, "first", failed.Binding.Service)
	for _, j := range []job.Job{retried, once, queued, loop} {
		stacktest.WaitFor(t, j.ID+" on the second service", func() (bool, error) {
			return doneBy(t, ledger, j.ID)[second.PID()], nil
		})
	}

	// A run under way tells its service, and how it came there.
	stacktest.WaitFor(t, "the move of a run under way", func() (bool, error) {
		run, err := c.Runs.Get(t.Context(), runs[retried.ID])
		return err == nil && run.Status == client.RunRunning && run.Binding != nil && run.Binding.Service == "second" &&
			len(run.Binding.Rebinds) == 1 && run.Binding.Rebinds[0].From == "first", err
	})

	// A service that returns gets what waited for it, and steals nothing.
	returned := startServiceToKill(t, st, "first", "--tag", "zone=north")
	stacktest.WaitFor(t, waits.ID+" on the service that returned", func() (bool, error) {
		return doneBy(t, ledger, waits.ID)[returned.PID()], nil
	})
	workertest.Open(t, gate)
	for _, j := range []job.Job{retried, once, waits} {
		run := followed(j)
		require.Equal(t, client.RunCompleted, run.Status, "%s: %s", j.ID, run.Error)
		require.NotNil(t, run.Output.Binding)
		if j.ID == waits.ID {
			require.Equal(t, map[int]bool{first.PID(): true, returned.PID(): true}, doneBy(t, ledger, j.ID))
			require.Empty(t, run.Output.Binding.Rebinds)
			continue
		}
		require.Equal(t, map[int]bool{first.PID(): true, second.PID(): true}, doneBy(t, ledger, j.ID))
		require.Equal(t, "second", run.Output.Binding.Service)
		require.Len(t, run.Output.Binding.Rebinds, 1)
		require.Equal(t, "first", run.Output.Binding.Rebinds[0].From)
		require.NotEmpty(t, run.Output.Binding.Rebinds[0].Reason)
		spans := spansOf(t, c, run.RunRef)
		require.Contains(t, kindsOf(spans), client.SpanMoved, "%+v", spans)
		require.Equal(t, run.Attempts, spans[len(spans)-1].Attempt, "%+v", spans)
	}
	state := workertest.WaitLoop(t, c, loop.ID, "the first good iteration", func(s *contract.ContinuousState) bool { return !s.LastSuccess.IsZero() })
	require.Equal(t, "second", state.Binding.Service)
	require.Equal(t, 1, state.Binding.Rebound)
	require.NoError(t, c.Jobs.Stop(t.Context(), loop.ID, "by test"))
	workertest.WaitQueue(t, c, "bound", "its end", func(s *contract.QueueState) bool { return s.Completed == 1 })
	require.Equal(t, map[int]bool{first.PID(): true, second.PID(): true}, doneBy(t, ledger, queued.ID))

	steps := map[string]int{}
	for _, e := range ledger.Read(t) {
		require.NotEqual(t, south.PID(), e.PID, "a service without the tags did something")
		if e.What == "step" {
			steps[e.JobID]++
		}
	}
	for _, j := range []job.Job{retried, once, waits, queued} {
		require.Equal(t, 3, steps[j.ID], "%s goes on at its cursor", j.ID)
	}
}

func TestBoundRunWithoutAServiceCanBeCanceled(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	j := bound(t, "a", oneShot(), workertest.NewBook(t), "", job.FailoverRequeue)
	j.Options.Bind = map[string]string{"zone": "nowhere"}
	ref := startRun(t, c, j)
	// It looks again and again, but holds no place in a worker, and spends no history.
	var events int64
	stacktest.WaitFor(t, "a third look for a service", func() (bool, error) {
		described, err := c.Temporal().DescribeWorkflowExecution(t.Context(), ref.WorkflowID, ref.RunID)
		if err != nil || len(described.GetPendingActivities()) != 1 {
			return false, err
		}
		look := described.GetPendingActivities()[0]
		events = described.GetWorkflowExecutionInfo().GetHistoryLength()
		return look.GetAttempt() > 3 && look.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, nil
	})
	require.EqualValues(t, 5, events, "started, a workflow task, and the activity")
	waiting, err := c.Runs.Get(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, client.RunWaiting, waiting.Status)
	require.Zero(t, waiting.Attempts, "nothing was tried")
	require.Equal(t, "no live worker that serves RecordSteps has the tags zone=nowhere", waiting.WaitReason, "as the job says")
	waiting.Run = listed(t, c, ref, client.RunWaiting)
	require.Contains(t, waiting.WaitReason, "no live testing service has the tags zone=nowhere and serves RecordSteps")

	require.NoError(t, c.Jobs.Stop(t.Context(), j.ID, "by test"))
	run := follow(t, c, ref)
	require.Equal(t, client.RunCanceled, run.Status)
}

func TestBoundAndOtherRunsShareTheSlots(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	startService(t, st, "a", "--tag", "zone=north", "--max-concurrent-runs", "2")
	var runs []client.RunRef
	for i := range 4 {
		for key, bind := range map[string]map[string]string{"bound": {"zone": "north"}, "free": nil} {
			j := bound(t, fmt.Sprintf("%s%d", key, i), oneShot(), ledger, gate, job.FailoverWait)
			j.Options.Bind, j.Options.HeartbeatTimeout = bind, job.Duration(30*time.Second)
			ref := startRun(t, c, j)
			runs = append(runs, ref)
		}
	}
	stacktest.WaitFor(t, "all slots to be in use", func() (bool, error) {
		services, err := liveServices(t, c)
		return err == nil && len(services) == 1 && services[0].Running >= 2, err
	})
	require.LessOrEqual(t, ledger.Count(t, "start"), 3, "one more than the slots, if both queues answer at once")
	workertest.Open(t, gate)
	for _, ref := range runs {
		requireCompleted(t, c, ref)
	}
	require.Equal(t, len(runs), ledger.Count(t, "end"))
}

func TestTagsAreParsed(t *testing.T) {
	t.Parallel()
	tags, err := workers.ParseTags(" zone=north, gpu = 2 ")
	require.Error(t, err, "a name has no space: %v", tags)
	tags, err = workers.ParseTags("zone=north,,gpu=2,")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"zone": "north", "gpu": "2"}, tags)
	for _, bad := range []string{"zone", "=north", "zone=", "zo ne=a"} {
		_, err := workers.ParseTags(bad)
		require.Error(t, err, bad)
	}
}
