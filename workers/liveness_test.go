package workers_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/workers"
)

// after lets the bubble's clock run.
func after(d time.Duration) { <-time.After(d) }

// TestPollLoopIsWatched goes through the ways in which a process can stop asking
// for work although it lives.
func TestPollLoopIsWatched(t *testing.T) {
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

// TestLeaseEndsWithoutATimer asks a lease before any timer can have fired.
func TestLeaseEndsWithoutATimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease, renew := workers.NewLease(t.Context(), 2*time.Second)
		for range 5 {
			after(time.Second)
			require.True(t, renew())
			require.NoError(t, lease.Err())
		}
		after(2*time.Second + 1)
		require.ErrorIs(t, lease.Err(), context.Canceled)
		require.ErrorContains(t, context.Cause(lease), "silent for longer than the heartbeat timeout")
		require.False(t, renew(), "what has run out is not prolonged")
		<-lease.Done()
	})
}

func TestPauseOfTheProcessIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pulse := workers.NewPulse()
		for range 20 {
			after(100 * time.Millisecond)
			pulse.Feel()
		}
		require.False(t, pulse.PausedLately())
		after(5 * time.Second)
		require.True(t, pulse.PausedLately(), "whoever asks first notices")
		for range 99 {
			after(100 * time.Millisecond)
			require.True(t, pulse.PausedLately())
		}
		after(200 * time.Millisecond)
		require.False(t, pulse.PausedLately())
	})
}
