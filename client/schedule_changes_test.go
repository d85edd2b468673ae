package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
)

// The run of a trigger has no name that a run of the schedule could have.
func TestATriggerHasASecondOfItsOwn(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 250_000_000, time.UTC)
	every := func(d time.Duration) *job.Recurring {
		return &job.Recurring{RecurEvery: job.Duration(d), Offset: new(job.Duration)}
	}
	for name, tt := range map[string]struct {
		r    *job.Recurring
		want time.Time
	}{
		"no start in that second": {&job.Recurring{Cron: "30 * * * *"}, noon},
		"a start in that second":  {every(time.Hour), noon.Add(time.Second)},
		"a start in each second":  {every(time.Second), noon},
		"no times are known":      {nil, noon},
	} {
		require.Equal(t, tt.want, client.TriggerTime("count_things.a", tt.r, noon), name)
	}
}

// forgetful is a server that takes only some of the requests for its schedule, and
// says of all that it did.
type forgetful struct {
	now              *workflowservice.DescribeScheduleResponse
	updates, patches int // so many are still dropped
	asked            int // patches
}

func newForgetful(updates, patches int) (*forgetful, client.Schedules) {
	f := &forgetful{updates: updates, patches: patches, now: &workflowservice.DescribeScheduleResponse{
		Schedule:      &schedulepb.Schedule{State: &schedulepb.ScheduleState{}},
		Info:          &schedulepb.ScheduleInfo{},
		ConflictToken: []byte{1},
	}}
	return f, client.NewSchedules(f, "default")
}

func (f *forgetful) DescribeSchedule(context.Context, *workflowservice.DescribeScheduleRequest, ...grpc.CallOption) (*workflowservice.DescribeScheduleResponse, error) {
	return proto.CloneOf(f.now), nil
}

func (f *forgetful) UpdateSchedule(_ context.Context, in *workflowservice.UpdateScheduleRequest, _ ...grpc.CallOption) (*workflowservice.UpdateScheduleResponse, error) {
	if f.updates--; f.updates < 0 && string(in.GetConflictToken()) == string(f.now.GetConflictToken()) {
		f.now.Schedule = in.GetSchedule()
		f.now.ConflictToken[0]++
	}
	return nil, nil
}

func (f *forgetful) PatchSchedule(_ context.Context, in *workflowservice.PatchScheduleRequest, _ ...grpc.CallOption) (*workflowservice.PatchScheduleResponse, error) {
	f.asked++
	if f.patches--; f.patches < 0 {
		f.now.Info.RecentActions = append(f.now.Info.RecentActions, &schedulepb.ScheduleActionResult{
			ScheduleTime:        in.GetPatch().GetTriggerImmediately().GetScheduledTime(),
			StartWorkflowResult: &commonpb.WorkflowExecution{RunId: "r"},
		})
	}
	return nil, nil
}

// pause is an edit.
func pause(now *workflowservice.DescribeScheduleResponse) (*client.ScheduleEdit, error) {
	if now.GetSchedule().GetState().GetPaused() {
		return nil, nil //nolint:nilnil // It is as it shall be.
	}
	now.GetSchedule().State.Paused = true
	return client.NewScheduleEdit(now.GetSchedule()), nil
}

func trigger(t *testing.T, s client.Schedules) (runID string, err error) {
	t.Helper()
	return s.Trigger(t.Context(), "count_things.a", nil, enumspb.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED)
}

func TestWhatAServerDropsIsAskedForAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, s := newForgetful(3, 0)
		require.NoError(t, s.Change(t.Context(), "count_things.a", pause))
		require.True(t, f.now.GetSchedule().GetState().GetPaused())

		f, s = newForgetful(1, 2)
		runID, err := trigger(t, s)
		require.NoError(t, err)
		require.Equal(t, "r", runID)
		require.Equal(t, 3, f.asked)
		require.Len(t, f.now.GetInfo().GetRecentActions(), 1)
	})
}

func TestAServerThatTakesNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const notTaken = "temporal does not answer in time: it did not take the change"
		began := time.Now()
		_, s := newForgetful(1000, 0)
		require.EqualError(t, s.Change(t.Context(), "count_things.a", pause), notTaken)
		_, s = newForgetful(0, 1000)
		_, err := trigger(t, s)
		require.EqualError(t, err, notTaken)
		require.Less(t, time.Since(began), 4*time.Minute)
	})
}

// A trigger that may be among what waits, or is not yet passed by, is made once.
func TestATriggerThatMayHaveBeenTakenIsNotRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, s := newForgetful(0, 1)
		f.now.Info.BufferSize = 1
		_, err := trigger(t, s)
		require.ErrorContains(t, err, "look at what it did before you ask again")
		require.Equal(t, 1, f.asked)

		f, s = newForgetful(1000, 1)
		_, err = trigger(t, s)
		require.ErrorContains(t, err, "look at what it did before you ask again")
		require.Equal(t, 1, f.asked)
	})
}

// An activity has to answer in its own time: one that is late is run again.
func TestAChangeIsGivenUpBeforeItsCallersTimeEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		within := func(d time.Duration, ask func(ctx context.Context) error) error {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			err := ask(ctx)
			require.NoError(t, ctx.Err())
			return err
		}
		_, s := newForgetful(1000, 1000)
		require.EqualError(t, within(10*time.Second, func(ctx context.Context) error {
			return s.Change(ctx, "count_things.a", pause)
		}), "temporal does not answer in time: it did not take the change")
		for updates, want := range map[int]string{
			0:    "temporal does not answer in time: it did not take the change",
			1000: "it is not known whether the server took the request: look at what it did before you ask again (temporal does not answer in time: it did not take the change)",
		} {
			_, s := newForgetful(updates, 1000)
			require.EqualError(t, within(30*time.Second, func(ctx context.Context) error {
				_, err := s.Trigger(ctx, "count_things.a", nil, enumspb.SCHEDULE_OVERLAP_POLICY_SKIP)
				return err
			}), want)
		}
	})
}
