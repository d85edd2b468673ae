package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// driftByHand edits three schedules in Temporal and puts a foreign one beside them: the
// drift names all of it, and an apply mends what it may.
func driftByHand(t *testing.T, w *world) {
	ctx, c := t.Context(), w.server.InProcess()
	set := &jobsv1.JobSet{Provider: "set-by-hand"}
	for _, key := range []string{"faster", "gone", "paused", "same"} {
		j := steps(t, "take_steps.hand-"+key)
		j.Mode = &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{RecurEvery: durationpb.New(24 * time.Hour)}}
		set.Jobs = append(set.Jobs, j)
	}
	apply := func(want int) {
		stream, err := c.JobSets.ApplyJobSet(ctx, &jobsv1.ApplyJobSetRequest{JobSet: set})
		answers := drain(t, stream, err)
		require.Len(t, answers, want)
		for _, answer := range answers {
			require.Empty(t, answer.GetChange().GetErrorMessage())
		}
	}
	apply(4)
	schedule := func(key string) sdk.ScheduleHandle {
		return w.temporal.ScheduleClient().GetHandle(ctx, contract.ScheduleID("take_steps.hand-"+key))
	}
	// Temporal's client gives up after ten seconds, which a busy server may take.
	stacktest.WaitFor(t, "the schedule to be edited", func() (bool, error) {
		err := schedule("faster").Update(ctx, sdk.ScheduleUpdateOptions{
			DoUpdate: func(in sdk.ScheduleUpdateInput) (*sdk.ScheduleUpdate, error) {
				in.Description.Schedule.Spec.Intervals[0].Every = time.Hour
				in.Description.Schedule.Spec.Intervals[0].Offset = 0
				return &sdk.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
			},
		})
		return err == nil, err
	})
	require.NoError(t, schedule("gone").Delete(ctx))
	require.NoError(t, schedule("paused").Pause(ctx, sdk.SchedulePauseOptions{Note: "by hand"}))
	const foreign = "job/someone.else"
	_, err := w.temporal.ScheduleClient().Create(ctx, sdk.ScheduleOptions{
		ID: foreign, Paused: true, Spec: sdk.ScheduleSpec{Intervals: []sdk.ScheduleIntervalSpec{{Every: time.Hour}}},
		Action: &sdk.ScheduleWorkflowAction{ID: "x", Workflow: "Other", TaskQueue: "other"},
	})
	require.NoError(t, err)

	drift := func() *jobsv1.GetDriftResponse {
		found, err := c.JobSets.GetDrift(ctx, &jobsv1.GetDriftRequest{Provider: set.GetProvider()})
		require.NoError(t, err)
		return found
	}
	stacktest.WaitFor(t, "the foreign schedule to be listed", func() (bool, error) {
		return len(drift().GetForeign()) > 0, nil
	})
	found := drift()
	require.Contains(t, found.GetForeign(), "schedule "+foreign)
	kinds := map[string]jobsv1.DriftKind{}
	for _, d := range found.GetDrifts() {
		kinds[d.GetJobId()] = d.GetKind()
	}
	require.Equal(t, map[string]jobsv1.DriftKind{
		"take_steps.hand-faster": jobsv1.DriftKind_DRIFT_KIND_EDITED,
		"take_steps.hand-gone":   jobsv1.DriftKind_DRIFT_KIND_DELETED,
		"take_steps.hand-paused": jobsv1.DriftKind_DRIFT_KIND_PAUSED,
	}, kinds)

	apply(2) // The pause of people stays.
	require.Len(t, drift().GetDrifts(), 1)
	set.ResetPauses = true
	apply(1)
	require.Empty(t, drift().GetDrifts())
	planned, err := c.JobSets.PlanJobSet(ctx, &jobsv1.PlanJobSetRequest{JobSet: set})
	require.NoError(t, err)
	for _, change := range planned.GetPlan().GetChanges() {
		require.Equal(t, unchanged, change.GetAction())
	}
	description, err := w.temporal.ScheduleClient().GetHandle(ctx, foreign).Describe(ctx)
	require.NoError(t, err)
	require.Equal(t, time.Hour, description.Schedule.Spec.Intervals[0].Every)
}
