package workers_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/workers"
)

// after lets the bubble's clock run.
func after(d time.Duration) { <-time.After(d) }

// TestPollLoopIsWatched goes through the ways in which a process can stop asking
// for work although it lives.
func TestPollLoopIsWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		polls := workers.NewPolls()
		poll := func(method string, takes time.Duration) {
			require.NoError(t, polls.Call(t.Context(), method, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				after(takes)
				return nil
			}))
		}
		require.True(t, polls.Alive(), "before the first call")
		after(31 * time.Second)
		require.False(t, polls.Alive(), "it never asked")

		poll("PollWorkflowTaskQueue", time.Minute)
		require.True(t, polls.Alive())
		after(29 * time.Second)
		require.True(t, polls.Alive(), "busy for a moment")
		after(2 * time.Second)
		require.False(t, polls.Alive(), "the loop is blocked")
		poll("RespondActivityTaskCompleted", time.Second)
		require.False(t, polls.Alive(), "an answer is no question")

		go poll("PollActivityTaskQueue", 2*time.Minute)
		synctest.Wait()
		after(74 * time.Second)
		require.True(t, polls.Alive(), "the server holds a request as long as there is no work")
		after(2 * time.Second)
		require.False(t, polls.Alive(), "the server never answers")
		after(time.Minute)
		synctest.Wait()
		require.True(t, polls.Alive(), "it answered after all")
	})
}

// bubbleClock is a clock of the bubble that a test can put forward, as one that
// counts suspension does when the machine wakes up: no timer takes notice.
func bubbleClock() (now func() time.Duration, suspended func(time.Duration)) {
	start, slept := time.Now(), time.Duration(0)
	return func() time.Duration { return time.Since(start) + slept }, func(d time.Duration) { slept += d }
}

func TestLeaseHoldsFromTheSendingOfAnAcknowledgedHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now, _ := bubbleClock()
		lease := workers.NewLease(t.Context(), 2*time.Second, now)
		for range 5 {
			sent := now()
			after(800 * time.Millisecond) // until the answer
			lease.Renew(sent)
			require.NoError(t, lease.Err())
		}
		after(time.Second)
		require.NoError(t, lease.Err(), "1.8 s after the last was sent")
		lease.Renew(0) // An answer that comes late does not take anything away.
		after(1)
		<-lease.Done()
		require.ErrorIs(t, lease.Err(), context.Canceled)
		require.ErrorContains(t, context.Cause(lease), "acknowledged no heartbeat")
		lease.Renew(now())
		require.Error(t, lease.Err(), "what has run out is not prolonged")
	})
}

// TestLeaseOutlastsNoSuspension asks a lease after its machine was suspended,
// before any timer has fired.
func TestLeaseOutlastsNoSuspension(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now, suspended := bubbleClock()
		asked := workers.NewLease(t.Context(), 10*time.Second, now)
		waited := workers.NewLease(t.Context(), 10*time.Second, now)
		suspended(time.Hour)
		require.ErrorIs(t, asked.Err(), context.Canceled)
		began := now()
		<-waited.Done()
		require.Zero(t, now()-began)
	})
}

// TestLeaseEndsForWhoWaits lets the clock run on while a handler waits for its
// context to end.
func TestLeaseEndsForWhoWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now, _ := bubbleClock()
		lease := workers.NewLease(t.Context(), 20*time.Second, now)
		ended := lease.Done()
		after(10 * time.Second)
		lease.Renew(now())
		<-ended
		require.Equal(t, 29*time.Second, now().Round(10*time.Millisecond), "a margin of a second at most")
	})
}

func TestClockOfTheHostGoesOn(t *testing.T) {
	t.Parallel()
	now := workers.Clock()
	before := now()
	<-time.After(time.Millisecond)
	require.GreaterOrEqual(t, now()-before, time.Millisecond)
}

// answered is a poll that is answered with a task of the type Test after a while,
// with a time stamp that is off.
func answered(t *testing.T, tasks workers.Tasks, token string, takes time.Duration) {
	t.Helper()
	reply := &workflowservice.PollActivityTaskQueueResponse{}
	require.NoError(t, tasks.Call(t.Context(), reply, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		after(takes)
		reply.TaskToken = []byte(token)
		reply.ActivityType = &commonpb.ActivityType{Name: "Test"}
		return nil
	}))
}

func TestTasksAreDatedByTheirRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now, suspended := bubbleClock()
		tasks := workers.NewTasks(now)
		began := now()
		answered(t, tasks, "a", 3*time.Second)
		suspended(time.Hour)
		asked, known := tasks.Begin("a")
		require.True(t, known)
		require.Equal(t, began, asked)
		_, known = tasks.Begin("a")
		require.False(t, known, "once")

		answered(t, tasks, "dropped", 0)
		suspended(2 * time.Hour)
		answered(t, tasks, "b", 0)
		_, known = tasks.Begin("dropped")
		require.False(t, known, "what never begins is forgotten")

		require.NoError(t, tasks.Call(t.Context(), &workflowservice.RespondWorkflowTaskCompletedResponse{
			ActivityTasks: []*workflowservice.PollActivityTaskQueueResponse{
				{TaskToken: []byte("mine"), ActivityType: &commonpb.ActivityType{Name: "Test"}},
				{TaskToken: []byte("other"), ActivityType: &commonpb.ActivityType{Name: "WatchRun"}},
			},
		}, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }))
		_, known = tasks.Begin("mine")
		require.True(t, known, "it came with the answer to a workflow task")
		_, known = tasks.Begin("other")
		require.False(t, known)
	})
}
