package schedules_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// atOnce calls all functions at the same time.
func atOnce(calls ...func() error) error {
	errs := make([]error, len(calls))
	var begin, ended sync.WaitGroup
	begin.Add(1)
	for n, call := range calls {
		ended.Go(func() {
			begin.Wait()
			errs[n] = call()
		})
	}
	begin.Done()
	ended.Wait()
	return errors.Join(errs...)
}

// TestTwoWhoPauseAtOnceKeepBothReasons has two callers pause the same thing at the same time, and
// two resume it: both reasons are kept, and one of two who pause finds it paused.
func TestTwoWhoPauseAtOnceKeepBothReasons(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	const queue = "held"
	_, err := f.client.Queues.SetOnFailure(t.Context(), queue, job.OnFailureHalt)
	require.NoError(t, err)
	loop := declare("loop", job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Hour)}})
	daily := declare("daily", job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(24 * time.Hour)}})
	f.apply(f.plan(false, loop, daily))
	type call = func(reason string) (contract.Before, error)
	pauses := map[string]struct{ pause, resume call }{"queue": {
		func(reason string) (contract.Before, error) {
			summary, err := f.client.Queues.Pause(t.Context(), queue, reason)
			return summary.Before, err
		},
		func(string) (contract.Before, error) {
			summary, err := f.client.Queues.Resume(t.Context(), queue)
			return summary.Before, err
		},
	}}
	for _, id := range []string{loop.ID, daily.ID} {
		pauses[id] = struct{ pause, resume call }{
			func(reason string) (contract.Before, error) {
				return f.client.Jobs.PauseSeeing(t.Context(), id, contract.PauseRequest{Reason: reason})
			},
			func(string) (contract.Before, error) { return f.client.Jobs.ResumeSeeing(t.Context(), id, "") },
		}
	}
	both := func(of call) (one, other contract.Before) {
		require.NoError(t, atOnce(
			func() (err error) { one, err = of("the vendor is away"); return err },
			func() (err error) { other, err = of("the disk is full"); return err },
		))
		return one, other
	}
	for name, verbs := range pauses {
		for range 3 {
			one, other := both(verbs.pause)
			require.NotEqual(t, one.Paused, other.Paused, "%s: one of two was the first", name)
			again, err := verbs.pause("the disk is full")
			require.NoError(t, err)
			require.True(t, again.Unchanged, name)
			require.Contains(t, again.Reason, "the vendor is away", name)
			require.Contains(t, again.Reason, "the disk is full", name)
			one, other = both(verbs.resume)
			require.False(t, one.Unchanged && other.Unchanged, "%s: one of two has resumed it", name)
			if name != daily.ID { // A server may take an update of a Schedule that is late, and not say so.
				require.NotEqual(t, one.Unchanged, other.Unchanged, "%s: one of two has resumed it", name)
			}
		}
	}
}

// TestChangesOfOneScheduleAtOnceAreAllMade has several people change the schedule of
// one job at the same time, over and over: none of what they do is lost or done twice.
func TestChangesOfOneScheduleAtOnceAreAllMade(t *testing.T) {
	t.Parallel()
	const rounds, triggers = 4, 4
	f := newFixture(t, stacktest.StartNamespace(t))
	j := declare("daily", job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(24 * time.Hour), Overlap: job.OverlapAllowAll}})
	f.apply(f.plan(false, j))
	made := map[string]bool{}
	for round := range rounds {
		j.Options.Description = fmt.Sprintf("round %d", round)
		plan := f.plan(false, j)
		require.Equal(t, 1, plan.Count(schedules.ActionUpdate))
		var skipped *client.SkipResult
		var refs [triggers]client.RunRef
		calls := []func() error{
			func() error { return f.syncer.Apply(t.Context(), plan, func(schedules.Report) {}) },
			func() error { return f.client.Jobs.Pause(t.Context(), j.ID, "the vendor is away") },
			func() error { return f.client.Jobs.Pause(t.Context(), j.ID, "the disk is full") },
			func() (err error) {
				skipped, err = f.client.Jobs.SkipNext(t.Context(), j.ID, "a test")
				return err
			},
		}
		for n := range refs {
			calls = append(calls, func() error {
				triggered, err := f.client.Jobs.Trigger(t.Context(), j.ID)
				refs[n] = triggered.Run
				return err
			})
		}
		require.NoError(t, atOnce(calls...), "round %d", round)
		f.inSync(false, j)
		live, err := f.client.Jobs.LiveSchedule(t.Context(), j.ID)
		require.NoError(t, err)
		require.True(t, live.Paused)
		require.Contains(t, live.PauseReason, "the vendor is away")
		require.Contains(t, live.PauseReason, "the disk is full")
		require.Contains(t, live.SkippedStarts(time.Now()), skipped.Skipped)
		for _, ref := range refs {
			require.False(t, made[ref.RunID], "each trigger has a run of its own")
			made[ref.RunID] = true
		}
		require.NoError(t, atOnce(
			func() error { return f.client.Jobs.Resume(t.Context(), j.ID, "") },
			func() error { return f.client.Jobs.Resume(t.Context(), j.ID, "it is back") },
		))
		live, err = f.client.Jobs.LiveSchedule(t.Context(), j.ID)
		require.NoError(t, err)
		require.False(t, live.Paused)
	}
	f.ledger.WaitRuns(t, "", len(made))
	require.Len(t, made, rounds*triggers)
	require.Equal(t, made, f.ledger.Runs(""), "what handlers ran is what was triggered")
}

// TestAJobThatIsMadeTwiceRunsOnce makes jobs that run once by two plans, of which the
// second is carried out when the first run has ended: by two who know nothing of each
// other, and by one who asks twice.
func TestAJobThatIsMadeTwiceRunsOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	plan := func(j job.Job, request string) *schedules.Plan {
		plan, err := f.syncer.Plan(t.Context(), []job.Job{j}, schedules.PlanOptions{Provider: job.ProviderTOML, Only: []string{j.ID}, RequestID: request})
		require.NoError(t, err)
		return plan
	}
	runs := 0
	for _, request := range []string{"", "asked-twice"} {
		for mode, trigger := range map[string]job.Trigger{
			"one-shot": {OneShot: &job.OneShot{}}, "queued": {Queued: &job.Queued{Queue: "made" + request}},
		} {
			made := declare("made-"+mode+request, trigger)
			early := plan(made, request)
			f.apply(plan(declare("between-"+mode+request, recurring(time.Hour)), "")) // It is recorded.
			late := plan(made, request)
			f.apply(early)
			stacktest.WaitFor(t, "the end of the run of "+made.ID, func() (bool, error) {
				live, err := f.client.Jobs.LiveWorkflow(t.Context(), made.ID)
				return err == nil && live != nil && !live.Workflow.Open(), err
			})
			runs++
			f.apply(late)
			if mode == "queued" {
				stacktest.WaitFor(t, "the end of the queue", func() (bool, error) {
					queue, err := f.client.Queues.Get(t.Context(), "made"+request)
					return err == nil && queue.Running == nil && queue.Waiting == 0, err
				})
			}
			live, err := f.client.Jobs.LiveWorkflow(t.Context(), made.ID)
			require.NoError(t, err)
			require.False(t, live.Workflow.Open(), "%s %q has no other run", mode, request)
			require.Len(t, f.ledger.Runs(""), runs, "%s %q", mode, request)

			// Another definition is no repeat.
			made.Spec = []byte(`{"a":2}`)
			f.apply(plan(made, request))
			runs++
			f.ledger.WaitRuns(t, "", runs)
		}
	}
}

// TestTriggersOfOneSecond has a job triggered several times within a second, while
// the runs, which would have the same workflow id, go on.
func TestTriggersOfOneSecond(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	f := startHandler(t, stacktest.StartNamespace(t), func(ctx context.Context, run job.Run, _ anySpec) (job.Result, error) {
		return job.Result{}, workertest.Wait(ctx, run, release)
	})
	daily := func(key string, overlap job.Overlap) job.Job {
		return declare(key, job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(24 * time.Hour), Overlap: overlap}})
	}
	beside, alone, waits := daily("beside", job.OverlapAllowAll), daily("alone", job.OverlapSkip), daily("waits", job.OverlapBufferAll)
	f.apply(f.plan(false, beside, alone, waits))
	names := map[string]bool{}
	for range 3 {
		triggered, err := f.client.Jobs.Trigger(t.Context(), beside.ID)
		require.NoError(t, err)
		require.False(t, names[triggered.Run.WorkflowID])
		names[triggered.Run.WorkflowID] = true
	}
	for _, j := range []job.Job{alone, waits} {
		_, err := f.client.Jobs.Trigger(t.Context(), j.ID)
		require.NoError(t, err)
	}
	_, err := f.client.Jobs.Trigger(t.Context(), alone.ID)
	require.ErrorContains(t, err, "was not started: a run of it is under way and its overlap policy is to skip")
	_, err = f.client.Jobs.Trigger(t.Context(), waits.ID)
	require.ErrorContains(t, err, "was triggered, and its run waits for one that is under way")
	f.ledger.WaitRuns(t, "", 5)
	close(release)
	f.ledger.WaitRuns(t, "", 6)
}
