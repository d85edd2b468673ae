package schedules_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

type fixture struct {
	*testing.T
	temporal sdk.Client
	client   *client.Client
	syncer   *schedules.Syncer
	ledger   *workertest.Ledger // of DoNothing
	stop     func()             // ends the worker
}

// newFixture starts a worker within the test, for a job type that does nothing
// and for further ones.
func newFixture(t *testing.T, st *stacktest.Stack, types ...job.Type) *fixture {
	t.Helper()
	return startHandler(t, st, nil, types...)
}

// startHandler is newFixture with another handler of DoNothing.
func startHandler(t *testing.T, st *stacktest.Stack, handle job.Handler[anySpec], types ...job.Type) *fixture {
	t.Helper()
	c := client.New(st.Dial(t), st.Namespace)
	f := &fixture{T: t, temporal: c.Temporal(), client: c, syncer: schedules.New(c), ledger: &workertest.Ledger{}}
	f.stop = workertest.Start(t, st, append(types, job.NewType("DoNothing", "testing", "Does nothing.", workertest.Noted(f.ledger, handle)))...)
	return f
}

// anySpec is the spec of the jobs that tests declare.
type anySpec struct {
	A int `json:"a,omitempty"`
	B int `json:"b,omitempty"`
}

func declare(key string, schedule job.Trigger, change ...func(*job.Job)) job.Job {
	j := job.Job{
		ID: job.ID("DoNothing", key), Type: "DoNothing", Worker: "testing", Provider: job.ProviderTOML,
		Spec: []byte(`{"a":1}`), Trigger: schedule, Options: job.DefaultOptions(schedule.Mode()),
	}
	for _, c := range change {
		c(&j)
	}
	return j
}

func recurring(every time.Duration) job.Trigger {
	return job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(every)}}
}

func continuous(interval time.Duration) job.Trigger {
	return job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(interval)}}
}

func oneShot() job.Trigger { return job.Trigger{OneShot: &job.OneShot{}} }

func queued(name string) job.Trigger { return job.Trigger{Queued: &job.Queued{Queue: name}} }

// plan plans again while no worker answers for a queue: one lives, but a busy server may
// lose its tasks, each for ten seconds.
func (f *fixture) plan(prune bool, jobs ...job.Job) (plan *schedules.Plan) {
	f.Helper()
	stacktest.WaitFor(f, "a plan", func() (answered bool, err error) {
		plan, err = f.syncer.Plan(f.Context(), jobs, schedules.PlanOptions{
			Provider: job.ProviderTOML, Prune: prune, AllowMassPrune: true,
		})
		if !errors.Is(err, client.ErrNoWorker) {
			require.NoError(f, err)
		}
		return err == nil, err
	})
	return plan
}

// actions are the plan as "key: action".
func actions(plan *schedules.Plan) []string {
	var list []string
	for _, c := range plan.Changes {
		list = append(list, fmt.Sprintf("%s: %s", c.JobID[len("do_nothing."):], c.Action))
	}
	return list
}

func (f *fixture) apply(plan *schedules.Plan) {
	f.Helper()
	require.NoError(f, f.syncer.Apply(f.Context(), plan, func(r schedules.Report) {
		require.NoError(f, r.Err, r.Change.JobID)
	}))
}

// inSync waits for the plan to be empty: it must be at once, but for jobs that
// the lists behind it still show.
func (f *fixture) inSync(prune bool, jobs ...job.Job) {
	f.Helper()
	plan := f.plan(prune, jobs...)
	require.True(f, plan.Empty(), "a second plan is empty: %v", actions(plan))
}

func TestApplyThenPlanIsEmpty(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	jobs := []job.Job{
		declare("hourly", recurring(time.Hour)),
		declare("second", recurring(time.Second)),
		declare("odd", recurring(90*time.Minute+7*time.Second), func(j *job.Job) { j.Options.Paused = true }),
		declare("loop", continuous(time.Minute)),
		declare("still", continuous(time.Minute), func(j *job.Job) { j.Options.Paused = true }),
		declare("once", oneShot()),
		declare("later", oneShot(), func(j *job.Job) { j.Options.Paused = true }),
		declare("turn", queued("tables")),
	}
	plan := f.plan(false, jobs...)
	require.Equal(t, []string{
		"hourly: create", "later: unchanged", "loop: create", "odd: create", "once: create",
		"second: create", "still: create", "turn: create",
	}, actions(plan))
	f.apply(plan)
	f.inSync(false, jobs...)
	f.apply(f.plan(false, jobs...))
	f.inSync(false, jobs...)

	stacktest.WaitFor(t, "the one-shot and the queued job to have run once", func() (bool, error) {
		for _, key := range []string{"once", "turn"} {
			runs, err := f.client.Runs.List(t.Context(), client.RunFilter{JobID: "do_nothing." + key})
			if err != nil || len(runs) != 1 || runs[0].Status != client.RunCompleted {
				return false, err
			}
		}
		return true, nil
	})
	f.inSync(false, jobs...)

	description, err := f.temporal.ScheduleClient().GetHandle(t.Context(), "job/do_nothing.hourly").Describe(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2*time.Hour, description.Schedule.Policy.CatchupWindow)
	require.Less(t, description.Schedule.Spec.Intervals[0].Offset, time.Hour)
	hash, _ := description.TypedSearchAttributes.GetKeyword(contract.AttributeDefinitionHash)
	require.Len(t, hash, 16)
}

func TestChangesAreAppliedInEveryMode(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	before := []job.Job{
		declare("often", recurring(time.Hour)), declare("loop", continuous(time.Hour)),
		declare("once", oneShot()), declare("turn", queued("tables")),
	}
	f.apply(f.plan(false, before...))
	stacktest.WaitFor(t, "the runs to end", func() (bool, error) {
		runs, err := f.client.Runs.List(t.Context(), client.RunFilter{Status: client.RunCompleted})
		return len(runs) == 2, err
	})
	after := make([]job.Job, len(before))
	for i, j := range before {
		j.Spec = []byte(`{"a":2}`)
		after[i] = j
	}
	after[0].Recurring = &job.Recurring{RecurEvery: job.Duration(2 * time.Hour)}
	plan := f.plan(false, after...)
	require.Equal(t, []string{"loop: update", "often: update", "once: update", "turn: update"}, actions(plan))
	require.Equal(t, []schedules.Field{
		{Path: "recurring.recur_every", Old: `"PT1H"`, New: `"PT2H"`}, {Path: "spec.a", Old: "1", New: "2"},
	}, plan.Changes[1].Fields)
	f.apply(plan)
	f.inSync(false, after...)
	live, err := f.client.Jobs.LiveSchedule(t.Context(), "do_nothing.often")
	require.NoError(t, err)
	require.JSONEq(t, `{"a":2}`, string(live.Job.Spec))
	require.Equal(t, 2*time.Hour, live.Schedule.GetSchedule().GetSpec().GetInterval()[0].GetInterval().AsDuration())
}

func TestAPauseByHandIsKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	j := declare("often", recurring(time.Hour))
	f.apply(f.plan(false, j))
	require.NoError(t, f.client.Jobs.Pause(t.Context(), j.ID, "vendor is down"))
	plan := f.plan(false, j)
	require.True(t, plan.Empty())
	require.Equal(t, "paused: vendor is down", plan.Changes[0].Note)
	j.Options.Description = "now described"
	f.apply(f.plan(false, j))
	f.inSync(false, j)
	live, err := f.client.Jobs.LiveSchedule(t.Context(), j.ID)
	require.NoError(t, err)
	require.True(t, live.Paused)
	require.NoError(t, f.client.Jobs.Resume(t.Context(), j.ID, ""))
	live, err = f.client.Jobs.LiveSchedule(t.Context(), j.ID)
	require.NoError(t, err)
	require.False(t, live.Paused)
}

func TestWhatIsNotOursIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	foreign := sdk.ScheduleOptions{
		ID:     "job/do_nothing.often",
		Spec:   sdk.ScheduleSpec{Intervals: []sdk.ScheduleIntervalSpec{{Every: time.Hour}}},
		Action: &sdk.ScheduleWorkflowAction{ID: "x", Workflow: "Other", TaskQueue: "other"},
		Paused: true, Note: "someone else's",
	}
	_, err := f.temporal.ScheduleClient().Create(t.Context(), foreign)
	require.NoError(t, err)
	_, err = f.temporal.ExecuteWorkflow(t.Context(), sdk.StartWorkflowOptions{ID: "job/do_nothing.loop", TaskQueue: "other"}, "Other")
	require.NoError(t, err)

	jobs := []job.Job{declare("often", recurring(time.Hour)), declare("loop", continuous(time.Hour)), declare("fine", oneShot())}
	plan := f.plan(true, jobs...)
	require.Equal(t, []string{"fine: create", "loop: blocked", "often: blocked"}, actions(plan))
	require.Contains(t, plan.Changes[2].Note, "does not have the search attributes of job do_nothing.often")
	f.apply(plan)
	f.inSync(true, jobs...)
	f.inSync(true, jobs[2]) // Not even when they are no longer declared.

	description, err := f.temporal.ScheduleClient().GetHandle(t.Context(), foreign.ID).Describe(t.Context())
	require.NoError(t, err)
	require.Equal(t, "someone else's", description.Schedule.State.Note)
	for _, err := range []error{
		f.client.Jobs.Pause(t.Context(), "do_nothing.often", "by test"),
		f.client.Jobs.Stop(t.Context(), "do_nothing.loop", "by test"),
	} {
		require.ErrorIs(t, err, client.ErrNotOurs)
	}
}

func TestPruneRemovesOnlyWhatIsNoLongerDeclared(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	kept, gone, loop := declare("kept", recurring(time.Hour)), declare("gone", recurring(time.Hour)), declare("loop", continuous(time.Hour))
	byAPI := declare("api", continuous(time.Hour), func(j *job.Job) { j.Provider = job.ProviderAPI })
	f.apply(f.plan(false, kept, gone, loop))
	require.NoError(t, f.client.Jobs.StartContinuous(t.Context(), byAPI))
	stacktest.WaitFor(t, "both to show as no longer declared", func() (bool, error) {
		return f.plan(false, kept).Count(schedules.ActionOrphaned) == 2, nil
	})
	f.inSync(false, kept)
	plan := f.plan(true, kept)
	require.Equal(t, []string{"gone: delete", "kept: unchanged", "loop: delete"}, actions(plan))
	f.apply(plan)
	f.inSync(true, kept)
	live, err := f.client.Jobs.LiveWorkflow(t.Context(), byAPI.ID)
	require.NoError(t, err)
	require.True(t, live.Workflow.Open(), "another provider's job goes on")
}

func TestAModeCanChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	modes := []job.Trigger{recurring(time.Hour), continuous(time.Hour), oneShot(), recurring(time.Minute), queued("modes"), recurring(time.Hour)}
	for _, mode := range modes {
		j := declare("j", mode)
		f.apply(f.plan(false, j))
		f.inSync(false, j)
		schedule, err := f.client.Jobs.LiveSchedule(t.Context(), j.ID)
		require.NoError(t, err)
		require.Equal(t, mode.Recurring != nil, schedule != nil)
		workflow, err := f.client.Jobs.LiveWorkflow(t.Context(), j.ID)
		require.NoError(t, err)
		if workflow != nil && workflow.Workflow.Type == contract.ContinuousJobType {
			require.Equal(t, mode.Continuous != nil, workflow.Workflow.Open())
		}
	}
}

func TestRecurringJobsRunAndAreFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	j := declare("tick", recurring(time.Second))
	f.apply(f.plan(false, j))
	stacktest.WaitFor(t, "three runs", func() (bool, error) {
		runs, err := f.client.Runs.List(t.Context(), client.RunFilter{JobID: j.ID, Mode: job.ModeRecurring, Status: client.RunCompleted})
		if err == nil && len(runs) > 0 {
			require.False(t, runs[0].Scheduled.IsZero())
		}
		return len(runs) >= 3, err
	})
	slow := declare("slow", recurring(24*time.Hour))
	f.apply(f.plan(false, j, slow))
	triggered, err := f.client.Jobs.Trigger(t.Context(), slow.ID)
	require.NoError(t, err)
	run, err := f.client.Runs.Follow(t.Context(), triggered.Run, func(*client.RunDetail) {})
	require.NoError(t, err)
	require.Equal(t, client.RunCompleted, run.Status)
	require.Equal(t, slow.ID, run.JobID)
}

// Runs of a schedule that start within a second have the same workflow id.
func TestAJobIsTriggeredSeveralTimesASecond(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	j := declare("daily", recurring(24*time.Hour))
	f.apply(f.plan(false, j))
	seen := map[string]bool{}
	for range 15 { // more than a schedule remembers
		triggered, err := f.client.Jobs.Trigger(t.Context(), j.ID)
		require.NoError(t, err)
		run, err := f.client.Runs.Follow(t.Context(), triggered.Run, func(*client.RunDetail) {})
		require.NoError(t, err)
		require.Equal(t, client.RunCompleted, run.Status, run.Error)
		require.False(t, seen[run.RunID], "a run of its own")
		seen[run.RunID] = true
	}
}

func TestAPlanIsForItsNamespace(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	err := f.syncer.Apply(t.Context(), &schedules.Plan{Namespace: "elsewhere"}, func(schedules.Report) {})
	require.ErrorContains(t, err, fmt.Sprintf("the plan is for namespace %q, not %q", "elsewhere", f.client.Namespace()))
}

func TestAWaitingItemIsMovedPrunedAndReplaced(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	for _, name := range []string{"first", "second"} {
		_, err := f.client.Queues.Enqueue(t.Context(), declare(name, queued(name)), client.EnqueueOptions{})
		require.NoError(t, err)
		_, err = f.client.Queues.Pause(t.Context(), name, "by test")
		require.NoError(t, err)
	}
	waiting := func(queue string) []string {
		state, err := f.client.Queues.State(t.Context(), queue)
		require.NoError(t, err)
		var ids []string
		for _, item := range state.Waiting {
			ids = append(ids, item.Job.ID)
		}
		return ids
	}
	j := declare("moved", queued("first"))
	f.apply(f.plan(false, j))
	f.inSync(false, j)
	require.Contains(t, waiting("first"), j.ID)

	j.Queued = &job.Queued{Queue: "second"}
	require.Equal(t, 1, f.plan(false, j).Count(schedules.ActionUpdate))
	f.apply(f.plan(false, j))
	f.inSync(false, j)
	require.NotContains(t, waiting("first"), j.ID)
	require.Contains(t, waiting("second"), j.ID)

	j.Spec = []byte(`{"a":3}`)
	f.apply(f.plan(false, j))
	f.inSync(false, j)
	require.Contains(t, waiting("second"), j.ID)

	stale := f.plan(true)
	require.Equal(t, schedules.ActionDelete, stale.Changes[0].Action)
	f.apply(stale)
	require.NotContains(t, waiting("second"), j.ID)

	// An item that starts between plan and apply goes on, and apply says so.
	f.apply(f.plan(false, j))
	changed := j
	changed.Spec = []byte(`{"a":4}`)
	plan := f.plan(false, changed)
	_, err := f.client.Queues.Resume(t.Context(), "second")
	require.NoError(t, err)
	stacktest.WaitFor(t, "the item to run", func() (bool, error) {
		runs, err := f.client.Runs.List(t.Context(), client.RunFilter{JobID: j.ID, Status: client.RunCompleted})
		return len(runs) == 1, err
	})
	stacktest.WaitFor(t, "the queue to know that it ended", func() (bool, error) {
		state, err := f.client.Queues.State(t.Context(), "second")
		return err == nil && state.Running == nil, err
	})
	f.apply(plan)
	f.inSync(false, changed)
}
