package schedules_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// TestJobsForHandlers does the same with the jobs of Temporal and with those in memory
// that handlers are tested with.
func TestJobsForHandlers(t *testing.T) {
	t.Parallel()
	t.Run("in memory", func(t *testing.T) {
		t.Parallel()
		manageJobs(t, jobtest.NewJobs())
	})
	t.Run("in Temporal", func(t *testing.T) {
		t.Parallel()
		manageJobs(t, schedules.NewJobs(newFixture(t, stacktest.StartNamespace(t)).client))
	})
}

const setProvider = job.Provider("integration.one")

func manageJobs(t *testing.T, jobs job.Jobs) {
	t.Helper()
	loop, timed, once := declare("loop", continuous(time.Hour)), declare("timed", recurring(time.Hour)), declare("once", oneShot())
	set := job.Set{Provider: setProvider, Jobs: []job.Job{loop, timed, once}}
	apply := func(set job.Set) job.Applied {
		t.Helper()
		applied, err := jobs.Apply(t.Context(), set)
		require.NoError(t, err)
		return applied
	}
	find := func(filter job.Filter, want ...string) {
		t.Helper()
		stacktest.WaitFor(t, "the jobs in lists", func() (bool, error) {
			found, err := jobs.Find(t.Context(), filter)
			ids := []string{}
			for _, f := range found {
				ids = append(ids, f.ID)
			}
			return slices.Equal(ids, want), err
		})
	}
	dry := set
	dry.DryRun = true
	require.Equal(t, []string{"create loop", "create once", "create timed"}, changes(apply(dry)))
	require.Equal(t, []string{"create loop", "create once", "create timed"}, changes(apply(set)))
	require.Equal(t, 3, apply(set).Unchanged)
	require.Empty(t, apply(set).Changes)

	other := declare("other", continuous(time.Hour), func(j *job.Job) { j.Options.Owner = job.Owner{Organization: "one"} })
	apply(job.Set{Provider: "integration", Jobs: []job.Job{other}})
	find(job.Filter{Provider: "integration"}, loop.ID, other.ID, timed.ID)
	find(job.Filter{Provider: setProvider}, loop.ID, timed.ID)
	find(job.Filter{Provider: "integration.on"})
	find(job.Filter{Type: "DoNothing", Owner: job.Owner{Organization: "one"}}, other.ID)

	// Only what is named is looked at.
	loop.Spec, timed.Spec = []byte(`{"a":2}`), []byte(`{"a":2}`)
	set.Jobs = []job.Job{loop, timed, once}
	one := set
	one.Only = []string{loop.ID}
	require.Equal(t, []string{"update loop"}, changes(apply(one)))
	require.Equal(t, []string{"update timed"}, changes(apply(set)))
	require.Empty(t, apply(job.Set{Provider: setProvider, Only: []string{"do_nothing.none"}}).Changes)
	for _, j := range []job.Job{loop, timed} {
		got, err := jobs.Get(t.Context(), j.ID)
		require.NoError(t, err)
		require.Equal(t, []string{j.ID, string(j.Spec)}, []string{got.ID, string(got.Spec)})
	}
	_, err := jobs.Get(t.Context(), "do_nothing.none")
	require.ErrorIs(t, err, job.ErrNoJob)

	// What cannot be applied stays as it is, and holds up nothing else.
	invalid, again := declare("loop", continuous(0)), declare("timed", recurring(2*time.Hour))
	applied, err := jobs.Apply(t.Context(), job.Set{Provider: setProvider, Jobs: []job.Job{invalid, again, other, once, once}})
	require.Equal(t, []string{"blocked loop", "blocked once", "blocked other", "update timed"}, changes(applied))
	for _, sentence := range []string{
		"job do_nothing.loop cannot be applied: continuous.interval: PT0S is shorter than PT0.01S",
		"job do_nothing.once cannot be applied: several jobs of the set have this id",
		"job do_nothing.other cannot be applied: a job of provider integration has this id: stop or delete that one first",
	} {
		require.ErrorContains(t, err, sentence)
	}
	find(job.Filter{Provider: setProvider}, loop.ID, timed.ID)

	// An empty set removes all that the provider has, and nothing else.
	empty := job.Set{Provider: setProvider, DryRun: true}
	require.Subset(t, changes(apply(empty)), []string{"delete loop", "delete timed"})
	empty.DryRun = false
	require.Subset(t, changes(apply(empty)), []string{"delete loop", "delete timed"})
	require.Empty(t, apply(empty).Changes)
	find(job.Filter{Provider: "integration"}, other.ID)

	_, err = jobs.Apply(t.Context(), job.Set{Provider: "Not a name"})
	require.ErrorContains(t, err, `provider "Not a name": a name starts with`)
	require.ErrorContains(t, jobs.Enqueue(t.Context(), loop, false), "job do_nothing.loop cannot be put into a queue: its mode is continuous, not queued")
	require.NoError(t, jobs.Enqueue(t.Context(), declare("item", queued("line")), false))
	require.NoError(t, jobs.Stop(t.Context(), "do_nothing.none", "test"))
	require.NoError(t, jobs.Stop(t.Context(), other.ID, "test"))
	find(job.Filter{Provider: "integration"})
}

// changes are "action key", by id.
func changes(applied job.Applied) []string {
	list := []string{}
	for _, c := range applied.Changes {
		list = append(list, string(c.Action)+" "+c.JobID[len("do_nothing."):])
	}
	slices.Sort(list)
	return list
}

// untilStopped is a job type that works until it is asked to stop.
func untilStopped(l *workertest.Ledger) job.Type {
	return job.NewType("WaitForStop", "testing", "Waits to be stopped.", workertest.Noted(l, func(ctx context.Context, run job.Run, _ anySpec) (job.Result, error) {
		return job.Result{}, workertest.Wait(ctx, run, nil)
	}))
}

// ended counts the calls that were stopped.
func ended(l *workertest.Ledger) (n int) {
	for _, call := range l.Calls("") {
		if errors.Is(call.Err, job.ErrStopped) {
			n++
		}
	}
	return n
}

// When jobs are removed, what they do hears a stop, and has ended when Apply returns. A
// job that was applied a moment ago goes too, whether lists show it or not.
func TestAnEmptySetEndsJobsGracefully(t *testing.T) {
	t.Parallel()
	l := &workertest.Ledger{}
	f := newFixture(t, stacktest.StartNamespace(t), untilStopped(l))
	waits := func(j *job.Job) { j.ID, j.Type = job.ID("WaitForStop", j.ID[len("do_nothing."):]), "WaitForStop" }
	jobs := schedules.NewJobs(f.client)
	declared := []job.Job{
		declare("loop", continuous(time.Hour), waits), declare("timed", recurring(time.Second), waits), declare("idle", recurring(time.Hour), waits),
	}
	_, err := jobs.Apply(t.Context(), job.Set{Provider: setProvider, Jobs: declared})
	require.NoError(t, err)
	l.WaitRuns(t, "", 2)
	stacktest.WaitFor(t, "the schedule to know of its run", func() (bool, error) {
		live, err := f.client.Jobs.LiveSchedule(t.Context(), declared[1].ID)
		return len(live.Schedule.GetInfo().GetRunningWorkflows()) == 1, err
	})
	applied, err := jobs.Apply(t.Context(), job.Set{Provider: setProvider})
	require.NoError(t, err)
	require.Len(t, applied.Changes, 3)
	require.Equal(t, 2, ended(l))

	_, err = jobs.Apply(t.Context(), job.Set{Provider: setProvider, Jobs: declared[:1]})
	require.NoError(t, err)
	applied, err = jobs.Apply(t.Context(), job.Set{Provider: setProvider})
	require.NoError(t, err)
	require.Equal(t, []job.Change{{Action: job.ActionDelete, JobID: declared[0].ID}}, applied.Changes)
	description, err := f.temporal.DescribeWorkflowExecution(t.Context(), contract.JobWorkflowID(declared[0].ID), "")
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, description.GetWorkflowExecutionInfo().GetStatus())
}

// An Apply that is cut off between a schedule and its run is completed by the next: the
// run is found, though nothing else of the job is left.
func TestARunWithoutItsScheduleIsStopped(t *testing.T) {
	t.Parallel()
	l := &workertest.Ledger{}
	f := newFixture(t, stacktest.StartNamespace(t), untilStopped(l))
	timed := declare("timed", recurring(time.Second), func(j *job.Job) { j.ID, j.Type = job.ID("WaitForStop", "timed"), "WaitForStop" })
	jobs := schedules.NewJobs(f.client)
	_, err := jobs.Apply(t.Context(), job.Set{Provider: setProvider, Jobs: []job.Job{timed}})
	require.NoError(t, err)
	l.WaitRuns(t, "", 1)
	require.NoError(t, f.client.Apply.DeleteSchedule(t.Context(), timed.ID, nil))
	find := func() []job.Summary {
		found, err := jobs.Find(t.Context(), job.Filter{Provider: setProvider})
		require.NoError(t, err)
		return found
	}
	stacktest.WaitFor(t, "the run to be in the list", func() (bool, error) { return len(find()) == 1, nil })
	require.Equal(t, job.ModeRecurring, find()[0].Mode)

	want := []job.Change{{Action: job.ActionDelete, JobID: timed.ID, Note: "its schedule was gone, and it had a run"}}
	for _, dryRun := range []bool{true, false} {
		applied, err := jobs.Apply(t.Context(), job.Set{Provider: setProvider, DryRun: dryRun})
		require.NoError(t, err)
		require.Equal(t, want, applied.Changes)
	}
	require.Equal(t, 1, ended(l))
	applied, err := jobs.Apply(t.Context(), job.Set{Provider: setProvider})
	require.NoError(t, err)
	require.Empty(t, applied.Changes)

	record, err := f.temporal.DescribeWorkflowExecution(t.Context(), contract.AppliedWorkflowID(setProvider), "")
	require.NoError(t, err)
	require.NotEqual(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, record.GetWorkflowExecutionInfo().GetStatus(),
		"a provider without jobs has no open record")
}

// Two remove the last job of a provider at once: one ends the record before the other says
// what it is about to remove.
func TestARemovalBeginsNoRecord(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	timed := declare("timed", recurring(time.Hour))
	jobs := schedules.NewJobs(f.client)
	_, err := jobs.Apply(t.Context(), job.Set{Provider: setProvider, Jobs: []job.Job{timed}})
	require.NoError(t, err)
	record := contract.AppliedWorkflowID(setProvider)
	require.NoError(t, f.temporal.TerminateWorkflow(t.Context(), record, "", "provider has no jobs left"))

	applied, err := jobs.Apply(t.Context(), job.Set{Provider: setProvider, Only: []string{timed.ID}})
	require.NoError(t, err)
	require.Equal(t, []job.Change{{Action: job.ActionDelete, JobID: timed.ID}}, applied.Changes)
	described, err := f.temporal.DescribeWorkflowExecution(t.Context(), record, "")
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, described.GetWorkflowExecutionInfo().GetStatus())
}

// A run that another provider has started belongs to it as long as it is under way.
func TestARunOfAnotherProviderBlocksAOneShot(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	theirs := declare("once", oneShot(), func(j *job.Job) { j.Provider, j.Worker = job.ProviderAPI, "nobody" })
	_, err := f.client.Runs.Start(t.Context(), theirs, contract.StartedByHand)
	require.NoError(t, err)
	plan := f.plan(false, declare("once", oneShot()))
	require.Equal(t, []string{"once: blocked"}, actions(plan))
	require.Equal(t, "a job of provider api has this id: stop or delete that one first", plan.Changes[0].Note)
	require.NoError(t, f.client.Jobs.Stop(t.Context(), theirs.ID, "test"))
}
