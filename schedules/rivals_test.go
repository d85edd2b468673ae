package schedules_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// A fingerprint is that of the plan, whoever makes it, and changes with what was found.
func TestTheFingerprintOfAPlan(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	jobs := []job.Job{
		declare("a", recurring(time.Hour)), declare("b", continuous(time.Hour)), declare("c", oneShot()), declare("d", queued("q")),
	}
	plan := f.plan(false, jobs...)
	require.Equal(t, plan.Fingerprint(), f.plan(false, jobs...).Fingerprint())
	f.apply(plan)
	f.inSync(false, jobs...)
	after := f.plan(false, jobs...)
	for i := range after.Changes {
		require.NotEqual(t, plan.Changes[i].Fingerprint(), after.Changes[i].Fingerprint(), after.Changes[i].JobID)
	}

	for i := range jobs[:2] {
		jobs[i].Spec = []byte(`{"a":2}`)
	}
	plan = f.plan(false, jobs...)
	require.NoError(t, f.client.Jobs.Pause(t.Context(), jobs[0].ID, "a pause changes nothing"))
	require.Equal(t, plan.Fingerprint(), f.plan(false, jobs...).Fingerprint())
	other := jobs[1]
	other.Spec = []byte(`{"a":3}`)
	require.NoError(t, f.client.Apply.SetContinuous(t.Context(), other, "", false))
	stacktest.WaitFor(t, "another plan", func() (bool, error) {
		after = f.plan(false, jobs...)
		return plan.Fingerprint() != after.Fingerprint(), nil
	})
	require.Equal(t, plan.Changes[0].Fingerprint(), after.Changes[0].Fingerprint())
	require.NotEqual(t, plan.Changes[1].Fingerprint(), after.Changes[1].Fingerprint())
}

// Two applies of different plans for the same jobs: each object ends as one of
// the two wants it, and the one that comes too late says so.
func TestTwoAppliesDoNotFight(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	of := func(value string) []job.Job {
		spec := func(j *job.Job) { j.Spec = []byte(`{"a":` + value + `}`) }
		return []job.Job{
			declare("a", recurring(time.Hour), spec), declare("b", recurring(time.Hour), spec),
			declare("c", continuous(time.Hour), spec), declare("d", continuous(time.Hour), spec),
		}
	}
	f.apply(f.plan(false, of("1")...))
	first, second := f.plan(false, of("2")...), f.plan(false, of("3")...)
	f.apply(first)
	late := map[string]error{}
	require.ErrorIs(t, f.syncer.Apply(t.Context(), second, func(r schedules.Report) { late[r.Change.JobID] = r.Err }), client.ErrMoved)
	require.Len(t, late, 4)
	for id, err := range late {
		require.ErrorIs(t, err, client.ErrMoved, id)
		require.ErrorContains(t, err, "was changed by someone else meanwhile: plan again")
	}
	f.inSync(false, of("2")...)

	// The same plan made twice is no fight: both end well, and nothing runs twice.
	once := append(of("2"), declare("once", oneShot()))
	plans := []*schedules.Plan{f.plan(false, once...), f.plan(false, once...)}
	var wait sync.WaitGroup
	errs := make([]error, len(plans))
	for i, plan := range plans {
		wait.Go(func() { errs[i] = f.syncer.Apply(t.Context(), plan, func(schedules.Report) {}) })
	}
	wait.Wait()
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	stacktest.WaitFor(t, "the run", func() (bool, error) {
		runs, err := f.client.Runs.List(t.Context(), client.RunFilter{JobID: "do_nothing.once", Status: client.RunCompleted})
		return len(runs) == 1, err
	})
	require.NoError(t, f.syncer.Apply(t.Context(), plans[1], func(schedules.Report) {}))
	f.inSync(false, once...)
	runs, err := f.client.Runs.List(t.Context(), client.RunFilter{JobID: "do_nothing.once"})
	require.NoError(t, err)
	require.Len(t, runs, 1, "asked three times, run once")
}

func TestAMassPruneHasToBeMeant(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	var jobs []job.Job
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		jobs = append(jobs, declare(key, recurring(time.Hour)))
	}
	f.apply(f.plan(false, jobs...))
	plan := func(options schedules.PlanOptions, declared ...job.Job) *schedules.Plan {
		var plan *schedules.Plan
		stacktest.WaitFor(t, "all schedules to be listed", func() (bool, error) {
			var err error
			options.Provider, options.Prune = job.ProviderTOML, true
			plan, err = f.syncer.Plan(t.Context(), declared, options)
			return err == nil && len(plan.Changes) == len(jobs), err
		})
		return plan
	}
	for n, want := range map[int]string{
		7: "the plan deletes more than a fifth of the live jobs: it would delete 3 of 10 jobs",
		0: "the plan deletes more than a fifth of the live jobs: it would delete 10 of 10 jobs",
	} {
		refused := plan(schedules.PlanOptions{}, jobs[:n]...)
		require.EqualError(t, f.syncer.Apply(t.Context(), refused, func(schedules.Report) {}), want)
	}
	f.inSync(false, jobs...)
	f.apply(plan(schedules.PlanOptions{}, jobs[:8]...))
	jobs = jobs[:8]
	f.apply(plan(schedules.PlanOptions{AllowMassPrune: true}))
	require.True(t, f.drift().Empty())
}
