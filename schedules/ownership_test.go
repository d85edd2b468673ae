package schedules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// What a schedule starts carries our marks; an edit that drops them leaves runs
// that nobody finds.
func TestEditsOfWhatAScheduleStartsShow(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	edits := map[string]struct {
		edit func(*schedulepb.Schedule)
		path string
	}{
		"marks":   {func(s *schedulepb.Schedule) { s.GetAction().GetStartWorkflow().SearchAttributes = nil }, "schedule.search_attributes"},
		"memo":    {func(s *schedulepb.Schedule) { s.GetAction().GetStartWorkflow().Memo = nil }, "schedule.memo"},
		"summary": {func(s *schedulepb.Schedule) { s.GetAction().GetStartWorkflow().UserMetadata = nil }, "schedule.summary"},
		"retries": {func(s *schedulepb.Schedule) {
			s.GetAction().GetStartWorkflow().RetryPolicy = &commonpb.RetryPolicy{MaximumAttempts: 7}
		}, "schedule.other"},
		"priority": {func(s *schedulepb.Schedule) {
			s.GetAction().GetStartWorkflow().Priority = &commonpb.Priority{PriorityKey: 1}
		}, "schedule.other"},
	}
	var jobs []job.Job
	for _, key := range []string{"marks", "memo", "priority", "retries", "summary"} {
		jobs = append(jobs, declare(key, recurring(time.Hour)))
	}
	f.apply(f.plan(false, jobs...))
	for key, e := range edits {
		f.editLive(key, e.edit)
	}
	stacktest.WaitFor(t, "all edits to show", func() (bool, error) { return len(f.drift().Jobs) == len(jobs), nil })
	for _, one := range f.drift().Jobs {
		require.Equal(t, edits[one.JobID[len("do_nothing."):]].path, one.Fields[0].Path, one.JobID)
	}
	plan := f.plan(false, jobs...)
	require.Equal(t, len(jobs), plan.Count(schedules.ActionUpdate))
	f.apply(plan)
	f.inSync(false, jobs...)
	require.True(t, f.drift().Empty())
}

func TestAJobOfAnotherProviderIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	of := func(provider job.Provider) func(*job.Job) { return func(j *job.Job) { j.Provider = provider } }
	theirs := []job.Job{
		declare("loop", continuous(time.Hour), of(job.ProviderAPI)), declare("timed", recurring(time.Hour), of(job.ProviderAPI)),
	}
	plan, err := f.syncer.Plan(t.Context(), theirs, schedules.PlanOptions{Provider: job.ProviderAPI})
	require.NoError(t, err)
	f.apply(plan)
	// As the same, as another definition, and as another mode.
	for _, mine := range [][]job.Job{
		{declare("loop", continuous(time.Hour)), declare("timed", recurring(time.Hour))},
		{declare("loop", continuous(time.Minute)), declare("timed", recurring(time.Minute))},
		{declare("loop", recurring(time.Hour)), declare("timed", oneShot())},
	} {
		plan := f.plan(true, mine...)
		require.Equal(t, []string{"loop: blocked", "timed: blocked"}, actions(plan))
		require.Equal(t, "a job of provider api has this id: stop or delete that one first", plan.Changes[0].Note)
		f.apply(plan)
	}
	plan, err = f.syncer.Plan(t.Context(), theirs, schedules.PlanOptions{Provider: job.ProviderAPI})
	require.NoError(t, err)
	require.True(t, plan.Empty())
}

// What is deleted is what the plan has seen.
func TestADeletionIsOfWhatWasSeen(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	timed, loop, mode := declare("timed", recurring(time.Hour)), declare("loop", continuous(time.Hour)), declare("mode", recurring(time.Hour))
	kept := declare("kept", recurring(time.Hour))
	all := []job.Job{timed, loop, mode, kept}
	f.apply(f.plan(false, all...))
	asOneShot := declare("mode", oneShot())
	var stale *schedules.Plan
	stacktest.WaitFor(t, "both deletions to be planned", func() (bool, error) {
		stale = f.plan(true, kept, asOneShot)
		return stale.Count(schedules.ActionDelete) == 2, nil
	})
	for i := range all[:3] {
		all[i].Spec = []byte(`{"a":2}`)
	}
	f.apply(f.plan(false, all...))
	require.NotEqual(t, stale.Fingerprint(), f.plan(true, kept, asOneShot).Fingerprint())
	late := map[string]error{}
	require.Error(t, f.syncer.Apply(t.Context(), stale, func(r schedules.Report) { late[r.Change.JobID] = r.Err }))
	require.Len(t, late, 3)
	for id, err := range late {
		require.ErrorIs(t, err, client.ErrMoved, id)
	}
	f.inSync(false, all...)
}

// Only what a prune would remove counts for its guard.
func TestWhatDoesNotStandIsNoReasonToPruneTheRest(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	live := []job.Job{declare("a", recurring(time.Hour)), declare("b", recurring(time.Hour)), declare("once", oneShot())}
	f.apply(f.plan(false, live...))
	declared := []job.Job{
		declare("once", oneShot()),
		declare("ended", job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(time.Hour), EndAt: time.Unix(1, 0)}}),
	}
	for _, key := range []string{"p", "q", "r", "s", "t", "u", "v", "w", "x", "y"} {
		declared = append(declared, declare(key, oneShot(), func(j *job.Job) { j.Options.Paused = true }))
	}
	stacktest.WaitFor(t, "the plan to be refused", func() (bool, error) {
		plan, err := f.syncer.Plan(t.Context(), declared, schedules.PlanOptions{Provider: job.ProviderTOML, Prune: true})
		if err != nil || plan.Count(schedules.ActionDelete) < 2 {
			return false, err
		}
		require.EqualError(t, plan.CheckPrune(), "the plan deletes more than a fifth of the live jobs: it would delete 2 of 2 jobs")
		return true, nil
	})
}

func TestAPausedOneShotWithANewSpecRunsWhenItIsResumed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	once := declare("once", oneShot())
	f.apply(f.plan(false, once))
	stacktest.WaitFor(t, "the run to end", func() (bool, error) {
		live, err := f.client.Jobs.LiveWorkflow(t.Context(), once.ID)
		return err == nil && !live.Workflow.Open(), err
	})
	once.Spec, once.Options.Paused = []byte(`{"a":2}`), true
	f.apply(f.plan(false, once))
	_, err := f.temporal.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: f.client.Namespace(), WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: contract.JobWorkflowID(once.ID)},
	})
	require.NoError(t, err)
	stacktest.WaitFor(t, "the run to be forgotten", func() (bool, error) {
		live, err := f.client.Jobs.LiveWorkflow(t.Context(), once.ID)
		return live == nil, err
	})
	once.Options.Paused = false
	require.Equal(t, 1, f.plan(false, once).Count(schedules.ActionCreate))
}

func TestAJobWithoutAStartLeftIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	// The next start is years away, and the end before it.
	j := declare("over", job.Trigger{Recurring: &job.Recurring{Cron: "0 3 29 2 *", EndAt: time.Date(2027, 6, 1, 0, 0, 0, 0, time.UTC)}})
	plan := f.plan(false, j)
	require.True(t, plan.Empty(), "%v", actions(plan))
	require.Equal(t, "has ended: it has no start left before its end_at", plan.Changes[0].Note)
}
