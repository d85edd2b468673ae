package workers_test

import (
	"fmt"
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

// rowOf waits until a list shows a job as it should be.
func rowOf(t *testing.T, c *client.Client, id string, is func(client.JobRow) bool) client.JobRow {
	t.Helper()
	var found client.JobRow
	stacktest.WaitFor(t, "job "+id+" in the list", func() (bool, error) {
		rows, _, err := c.Jobs.List(t.Context(), client.JobFilter{})
		for _, row := range rows {
			if row.ID == id {
				found = row
			}
		}
		return err == nil && is(found), err
	})
	return found
}

func hasStatus(status client.JobStatus) func(client.JobRow) bool {
	return func(row client.JobRow) bool { return row.Status == status }
}

// TestARunThatNobodyTakesWaits has no worker, then one without the tags that are asked for.
func TestARunThatNobodyTakesWaits(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	j := bound(t, "a", oneShot(), ledger, "", job.FailoverRequeue)
	ref := startRun(t, c, j)
	waiting := listed(t, c, ref, client.RunWaiting)
	require.Equal(t, "no worker of type testing has taken it", waiting.WaitReason)
	require.False(t, waiting.Delayed())
	row := rowOf(t, c, j.ID, hasStatus(client.JobWaiting))
	const unserved = "no live worker serves RecordSteps"
	require.Equal(t, unserved, row.WaitReason)
	detail, err := c.Jobs.Get(t.Context(), j.ID)
	require.NoError(t, err)
	require.Equal(t, client.JobWaiting, detail.Row.Status)
	require.Equal(t, unserved, detail.Row.WaitReason)
	running, err := c.Runs.List(t.Context(), client.RunFilter{Status: client.RunRunning})
	require.NoError(t, err)
	require.Empty(t, running)
	page, err := c.Runs.Page(t.Context(), client.RunFilter{Status: client.RunWaiting}, nil, client.RunPlace{}, 10)
	require.NoError(t, err)
	require.Len(t, page.Runs, 1)
	require.Equal(t, unserved, page.Runs[0].WaitReason)
	page, err = c.Runs.Page(t.Context(), client.RunFilter{Status: client.RunInterrupted}, nil, client.RunPlace{}, 10)
	require.NoError(t, err)
	require.Empty(t, page.Runs)
	known, err := c.Workers.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []client.UnservedType{{Type: j.Type, Jobs: 1}}, known.Unserved)

	startService(t, st, "south", "--tag", "zone=south")
	stacktest.WaitFor(t, "the tags that nobody has", func() (bool, error) {
		known, err = c.Workers.List(t.Context())
		return err == nil && len(known.UnservedTags) == 1, err
	})
	require.Empty(t, known.Unserved)
	require.Equal(t, client.UnservedTags{Type: j.Type, Tags: map[string]string{"zone": "north"}, Jobs: 1}, known.UnservedTags[0])
	rowOf(t, c, j.ID, func(row client.JobRow) bool {
		return row.Status == client.JobWaiting && row.WaitReason == "no live worker that serves RecordSteps has the tags zone=north"
	})

	startService(t, st, "north", "--tag", "zone=north")
	requireCompleted(t, c, ref)
	known, err = c.Workers.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, known.UnservedTags)
}

// TestTagsOfARecurringJobAreKnownFromItsRuns has a schedule that has started one run.
func TestTagsOfARecurringJobAreKnownFromItsRuns(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	north := startServiceToKill(t, st, "north", "--tag", "zone=north")
	startService(t, st, "south", "--tag", "zone=south")
	j := bound(t, "a", job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(24 * time.Hour)}}, workertest.NewBook(t), "", job.FailoverRequeue)
	syncer := schedules.New(c)
	plan, err := syncer.Plan(t.Context(), []job.Job{j}, schedules.PlanOptions{Provider: j.Provider})
	require.NoError(t, err)
	require.NoError(t, syncer.Apply(t.Context(), plan, func(schedules.Report) {}))
	triggered, err := c.Jobs.Trigger(t.Context(), j.ID)
	require.NoError(t, err)
	requireCompleted(t, c, triggered.Run)
	north.Kill()
	waitForServices(t, c, "south")
	var known *client.Workers
	stacktest.WaitFor(t, "the tags that nobody has", func() (bool, error) {
		known, err = c.Workers.List(t.Context())
		return err == nil && len(known.UnservedTags) == 1, err
	})
	require.Equal(t, client.UnservedTags{Type: j.Type, Tags: map[string]string{"zone": "north"}, Jobs: 1}, known.UnservedTags[0])

	// The next run waits, and the job says so.
	triggered, err = c.Jobs.Trigger(t.Context(), j.ID)
	require.NoError(t, err)
	const reason = "no live worker that serves RecordSteps has the tags zone=north"
	row := rowOf(t, c, j.ID, func(row client.JobRow) bool { return row.WaitReason == reason })
	require.Equal(t, client.JobWaiting, row.Status)
	detail, err := c.Jobs.Get(t.Context(), j.ID)
	require.NoError(t, err)
	require.Equal(t, reason, detail.Row.WaitReason)
	require.Equal(t, "no live testing service has the tags zone=north and serves RecordSteps", listed(t, c, triggered.Run, client.RunWaiting).WaitReason)
}

// TestACanceledRunIsCancelingUntilItHasEnded has a handler that takes its time.
func TestACanceledRunIsCancelingUntilItHasEnded(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	ledger, gate := workertest.NewBook(t), workertest.NewGate(t)
	j := newJob(t, "RecordSteps", "a", oneShot(), recordSpec{Ledger: string(ledger), Steps: 2, Gate: gate, IgnoreStop: true})
	j.Options.StopGracePeriod = job.Duration(5 * time.Minute)
	ref := startRun(t, c, j)
	ledger.WaitFor(t, "step", 1)
	require.NoError(t, c.Runs.Cancel(t.Context(), ref, "by test"))
	stacktest.WaitFor(t, "the request to be seen", func() (bool, error) {
		run, err := c.Runs.Get(t.Context(), ref)
		return err == nil && run.Status == client.RunCanceling, err
	})
	require.Equal(t, client.RunCanceling, listed(t, c, ref, client.RunCanceling).Status)
	rowOf(t, c, j.ID, hasStatus(client.JobCanceling))
	workertest.Open(t, gate)
	require.False(t, follow(t, c, ref).Status.Open())
	rowOf(t, c, j.ID, func(row client.JobRow) bool { return row.HasEnded() && !row.Ended.IsZero() })
}

// TestIterationsThatAreCutShortAreShownAsThat restarts an iteration that waits at a gate.
func TestIterationsThatAreCutShortAreShownAsThat(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	j := newJob(t, "RecordSteps", "a", continuousEvery(time.Hour), recordSpec{Ledger: string(ledger), Steps: 2, Gate: workertest.NewGate(t)})
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), j))
	ledger.WaitFor(t, "step", 1)
	require.NoError(t, c.Jobs.Restart(t.Context(), j.ID, "by test"))
	ledger.WaitFor(t, "step", 2)
	var statuses []client.RunStatus
	stacktest.WaitFor(t, "both iterations", func() (bool, error) {
		runs, err := c.Runs.List(t.Context(), client.RunFilter{JobID: j.ID})
		statuses = nil
		for _, run := range runs {
			statuses = append(statuses, run.Status)
		}
		return len(statuses) == 2, err
	})
	require.Equal(t, []client.RunStatus{client.RunRunning, client.RunInterrupted}, statuses)
	require.NoError(t, c.Jobs.Stop(t.Context(), j.ID, "by test"))
}

// TestListsTellHowJobsHaveEnded tells a job that was deleted from one that someone stopped,
// and why a job has failed.
func TestListsTellHowJobsHaveEnded(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	loops := map[string]job.Job{}
	for _, key := range []string{"deleted", "stopped"} {
		j := newJob(t, "RecordSteps", key, continuousEvery(time.Hour), recordSpec{Ledger: string(workertest.NewBook(t)), Steps: 1})
		require.NoError(t, c.Jobs.StartContinuous(t.Context(), j))
		loops[key] = j
	}
	require.NoError(t, c.Apply.StopContinuous(t.Context(), loops["deleted"].ID, "no longer declared", nil))
	require.NoError(t, c.Jobs.Stop(t.Context(), loops["stopped"].ID, "by test"))
	row := rowOf(t, c, loops["deleted"].ID, hasStatus(client.JobDeleted))
	require.Equal(t, "no longer declared", row.StopReason)
	require.True(t, row.HasEnded())
	row = rowOf(t, c, loops["stopped"].ID, hasStatus(client.JobStopped))
	require.Equal(t, "by test", row.StopReason)
	require.False(t, row.HasEnded())
	detail, err := c.Jobs.Get(t.Context(), loops["deleted"].ID)
	require.NoError(t, err)
	require.Equal(t, client.JobDeleted, detail.Row.Status)

	fails := newJob(t, "RecordSteps", "fails", oneShot(), recordSpec{Ledger: string(workertest.NewBook(t)), Steps: 1, Fail: "Told"})
	require.Equal(t, client.RunFailed, follow(t, c, startRun(t, c, fails)).Status)
	row = rowOf(t, c, fails.ID, hasStatus(client.JobFailed))
	require.Equal(t, "Told: the spec says so", fmt.Sprintf("%s: %s", row.Class, row.Error))
	require.False(t, row.HasEnded())
	require.NoError(t, c.Jobs.Restart(t.Context(), loops["deleted"].ID, "by test"))
	rowOf(t, c, loops["deleted"].ID, func(row client.JobRow) bool { return row.Status == client.JobRunning && row.StopReason == "" })
	require.NoError(t, c.Jobs.Stop(t.Context(), loops["deleted"].ID, "by test"))
}

// TestContinuousJobsOfEqualTagsAreSpreadOverServices has as many jobs as two services take.
func TestContinuousJobsOfEqualTagsAreSpreadOverServices(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger, gate := workertest.NewBook(t), workertest.NewGate(t) // Their folder outlasts the services, which write there.
	startService(t, st, "a", "--tag", "zone=north")
	startService(t, st, "b", "--tag", "zone=north")
	waitForServices(t, c, "a", "b")
	jobs := make([]job.Job, 4)
	counts := map[string]int{}
	for n := range jobs {
		jobs[n] = bound(t, fmt.Sprint(n), continuousEvery(time.Hour), ledger, gate, "")
		jobs[n].Options.FailoverAfter = 0 // These services have the default timeout.
		require.NoError(t, c.Jobs.StartContinuous(t.Context(), jobs[n]))
		state := workertest.WaitLoop(t, c, jobs[n].ID, "a service of "+jobs[n].ID, func(s *contract.ContinuousState) bool { return s.Binding.Service != "" })
		counts[state.Binding.Service]++
		stacktest.WaitFor(t, "the services to report their handlers", func() (bool, error) {
			services, err := liveServices(t, c)
			sum := 0
			for _, s := range services {
				sum += s.Running
			}
			return sum == n+1, err
		})
	}
	require.Equal(t, map[string]int{"a": 2, "b": 2}, counts)
	workertest.Open(t, gate)
}
