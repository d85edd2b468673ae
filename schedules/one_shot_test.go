package schedules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// TestOneShotForLater declares a run for a time, moves it, and has it run.
func TestOneShotForLater(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	f := newFixture(t, st)
	at := func(moment time.Time) job.Job {
		return declare("later", job.Trigger{OneShot: &job.OneShot{At: moment}})
	}
	waits := func(moment time.Time) client.RunRef {
		live, err := f.client.Jobs.LiveWorkflow(t.Context(), "do_nothing.later")
		require.NoError(t, err)
		require.True(t, live.Workflow.Open())
		require.WithinDuration(t, moment, live.Workflow.Begins, 10*time.Second, "as late as the request came")
		return client.RunRef{RunID: live.Workflow.RunID}
	}

	tomorrow := time.Now().Add(24 * time.Hour).Truncate(time.Second)
	f.apply(f.plan(false, at(tomorrow)))
	first := waits(tomorrow)
	plan := f.plan(false, at(tomorrow))
	require.Equal(t, schedules.ActionUnchanged, plan.Changes[0].Action)
	require.Equal(t, first, waits(tomorrow))
	require.Contains(t, plan.Changes[0].Note, "waits until ")

	soon := time.Now().Add(3 * time.Second)
	plan = f.plan(false, at(soon))
	require.Equal(t, schedules.ActionUpdate, plan.Changes[0].Action)
	require.Empty(t, f.ledger.Runs(""))
	f.apply(plan)
	f.ledger.WaitRuns(t, "", 1)
	plan = f.plan(false, at(soon))
	require.Equal(t, schedules.ActionUnchanged, plan.Changes[0].Action, "it ran")

	f.apply(f.plan(false, at(time.Time{})))
	f.ledger.WaitRuns(t, "", 2)
}
