package schedules_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

func (f *fixture) save(plan *schedules.Plan) *schedules.SavedPlan {
	f.Helper()
	var text bytes.Buffer
	require.NoError(f, plan.Save(&text, "v1", time.Unix(0, 0)))
	saved, err := schedules.ReadPlan(&text, "v1")
	require.NoError(f, err)
	return saved
}

func TestASavedPlanIsAppliedAsItIsOrNotAtAll(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	jobs := []job.Job{
		declare("a", recurring(time.Hour)), declare("b", continuous(time.Hour)), declare("c", oneShot()), declare("d", queued("q")),
	}
	saved := f.save(f.plan(false, jobs...))
	plan, err := f.syncer.Replan(t.Context(), saved, 0)
	require.NoError(t, err)
	f.apply(plan)
	f.inSync(false, jobs...)

	_, err = f.syncer.Replan(t.Context(), saved, 0)
	require.ErrorIs(t, err, schedules.ErrPlanStale)
	require.ErrorContains(t, err, "do_nothing.a, do_nothing.b, do_nothing.c, do_nothing.d; plan again")

	for i := range jobs[:2] {
		jobs[i].Spec = []byte(`{"a":2}`)
	}
	saved = f.save(f.plan(false, jobs...))
	require.NoError(t, f.client.Jobs.Pause(t.Context(), jobs[0].ID, "a pause changes nothing"))
	_, err = f.syncer.Replan(t.Context(), saved, 0)
	require.NoError(t, err)
	other := jobs[1]
	other.Spec = []byte(`{"a":3}`)
	require.NoError(t, f.client.Apply.SetContinuous(t.Context(), other, "", false))
	stacktest.WaitFor(t, "the plan to be stale", func() (bool, error) {
		_, err = f.syncer.Replan(t.Context(), saved, 0)
		return err != nil, nil
	})
	require.EqualError(t, err, "what the plan was made against has changed since: do_nothing.b; plan again")

	elsewhere := *saved
	elsewhere.Namespace = "elsewhere"
	_, err = f.syncer.Replan(t.Context(), &elsewhere, 0)
	require.EqualError(t, err, fmt.Sprintf("the plan was made for namespace %q, not %q", "elsewhere", f.client.Namespace()))
}

func TestWhatIsNoSavedPlanIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                        "not a saved plan: plan --out writes one",
		`[jobs]`:                  "not a saved plan: plan --out writes one",
		`{"changes": []}`:         "not a saved plan: plan --out writes one",
		`{"dendra_jobs_plan": 9}`: "a saved plan of format 9, and this release knows 1: plan again",
		`{"dendra_jobs_plan": 1, "release": "v0"}`:                       "a plan that release v0 has made, and this is v1: plan again",
		`{"dendra_jobs_plan": 1, "release": "v1", "jobs": [{"id":"x"}]}`: "a saved plan with an invalid job x",
	} {
		_, err := schedules.ReadPlan(strings.NewReader(text), "v1")
		require.ErrorContains(t, err, want, text)
	}
}

func FuzzReadPlan(f *testing.F) {
	f.Add([]byte(`{"dendra_jobs_plan": 1, "release": "v1", "jobs": [], "found": [{"job_id": "a.b"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		saved, err := schedules.ReadPlan(bytes.NewReader(text), "v1")
		require.Equal(t, err == nil, saved != nil)
	})
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
