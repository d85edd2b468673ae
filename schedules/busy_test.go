package schedules_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// busyServer is a Temporal of which some Schedules do not answer readers.
type busyServer struct {
	sdk.Client
	// refuses says that a Schedule refuses a reader.
	refuses func(scheduleID string) bool
}

func (s busyServer) WorkflowService() workflowservice.WorkflowServiceClient {
	return busyService{s.Client.WorkflowService(), s.refuses}
}

type busyService struct {
	workflowservice.WorkflowServiceClient
	refuses func(scheduleID string) bool
}

func (s busyService) DescribeSchedule(ctx context.Context, in *workflowservice.DescribeScheduleRequest, options ...grpc.CallOption) (*workflowservice.DescribeScheduleResponse, error) {
	if s.refuses(in.GetScheduleId()) {
		return nil, serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW, "consistent query buffer is full")
	}
	return s.WorkflowServiceClient.DescribeSchedule(ctx, in, options...)
}

// TestASilentScheduleStopsNoOther has one Schedule of many that does not answer, for as long
// as it is asked. Plan, drift and apply go on with the others, name it and leave it alone.
func TestASilentScheduleStopsNoOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	var jobs []job.Job
	for n := range 20 {
		jobs = append(jobs, declare(fmt.Sprintf("j%02d", n), recurring(time.Hour)))
	}
	f.apply(f.plan(false, jobs...))

	silent := jobs[7].ID
	var refused atomic.Int64
	c := client.New(busyServer{f.temporal, func(id string) bool {
		return strings.HasSuffix(id, silent) && refused.Add(1) > 0
	}}, f.client.Namespace())
	busy := &fixture{T: t, temporal: f.temporal, client: c, syncer: schedules.New(c)}
	for n := range jobs {
		jobs[n].Spec = []byte(`{"a":2}`)
	}
	var wait sync.WaitGroup
	var drift *schedules.Drift
	var driftErr error
	wait.Go(func() { drift, driftErr = busy.syncer.Drift(t.Context(), job.ProviderTOML) })
	plan := busy.plan(true, append(jobs[:2:2], jobs[3:]...)...)
	wait.Wait()
	require.Greater(t, refused.Load(), int64(20), "it is asked again")

	require.Equal(t, 1, plan.Count(schedules.ActionBlocked))
	require.Equal(t, 1, plan.Count(schedules.ActionDelete))
	require.Equal(t, 18, plan.Count(schedules.ActionUpdate))
	unread := plan.Changes[7]
	require.Equal(t, silent, unread.JobID)
	require.True(t, client.Busy(unread.Unread))
	require.Contains(t, unread.Note, "could not be read: schedule of job "+silent+": ")
	busy.apply(plan)
	require.NoError(t, driftErr)
	require.Empty(t, drift.Jobs)
	require.Len(t, drift.Unread, 1)
	require.Equal(t, silent, drift.Unread[0].JobID)

	for _, j := range jobs {
		live, err := f.client.Jobs.LiveSchedule(t.Context(), j.ID)
		require.NoError(t, err)
		switch j.ID {
		case jobs[2].ID:
			require.Nil(t, live)
		case silent:
			require.JSONEq(t, `{"a":1}`, string(live.Job.Spec), "it is left alone")
		default:
			require.JSONEq(t, `{"a":2}`, string(live.Job.Spec), j.ID)
		}
	}
}

// TestLooksEndWhenAServerAnswersForNone has a server that answers for no job, for one of two,
// and for none any more.
func TestLooksEndWhenAServerAnswersForNone(t *testing.T) {
	t.Parallel()
	busy := fmt.Errorf("schedule of job a: %w", client.ErrSlow)
	for answers, want := range map[string]struct {
		asked, unread int
		failed        string
	}{
		"":                     {},
		"..........":           {10, 0, ""},
		"-":                    {1, 1, client.ErrSlow.Error()},
		"-.-.-.-.-.-.-.-.-.-.": {20, 10, ""},
		".--------.......":     {9, 15, "8 jobs in a row could not be read, the last: schedule of job a: "},
	} {
		looks, asked, unread := &schedules.Looks{}, 0, 0
		for _, answer := range answers {
			why, err := looks.At(func() error {
				asked++
				if answer == '-' {
					return busy
				}
				return nil
			})
			require.NoError(t, err)
			if why != nil {
				unread++
			}
		}
		require.Equal(t, want.asked, asked, answers)
		require.Equal(t, want.unread, unread, answers)
		if err := looks.Err(); want.failed == "" {
			require.NoError(t, err, answers)
		} else {
			require.ErrorContains(t, err, want.failed, answers)
		}
	}
}
