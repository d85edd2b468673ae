package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// inA is the time after so long, as requests have it.
func inA(d time.Duration, now time.Time) time.Time { return now.Add(d).UTC().Truncate(time.Second) }

func TestContinuousJobResumesWhenItsPauseEnds(t *testing.T) {
	t.Parallel()
	n := 0
	env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		n++
		return contract.ActivityOutput{}, nil
	})
	begin := env.Now()
	pause := func(after, end time.Duration, reason string) *answer {
		in := contract.PauseRequest{Reason: reason}
		if end > 0 {
			in.End = inA(end, begin)
		}
		return send(t, env, after, contract.MessagePause, in)
	}
	send(t, env, time.Minute, contract.MessageTrigger, contract.TriggerRequest{})
	pause(2*time.Minute, time.Hour, "lunch")
	same := pause(3*time.Minute, time.Hour, "lunch")
	left := send(t, env, 4*time.Minute, contract.MessagePause, contract.PauseRequest{Reason: "window", End: inA(5*time.Hour, begin), UnlessPaused: true})
	pause(5*time.Minute, 2*time.Hour, "lunch") // Another end takes the place of the first one.
	env.RegisterDelayedCallback(func() {
		state := continuousState(t, env)
		require.True(t, state.Paused)
		require.True(t, inA(2*time.Hour, begin).Equal(state.PauseEnd))
	}, 90*time.Minute)
	env.RegisterDelayedCallback(func() {
		state := continuousState(t, env)
		require.False(t, state.Paused)
		require.Zero(t, state.PauseEnd)
		require.Equal(t, 3, n, "it goes on at once")
	}, 2*time.Hour+time.Minute)
	pause(3*time.Hour, 4*time.Hour, "again")
	pause(3*time.Hour+time.Minute, 0, "for good") // A pause without an end has none.
	env.RegisterDelayedCallback(func() { require.True(t, continuousState(t, env).Paused) }, 5*time.Hour)
	send(t, env, 6*time.Hour, contract.MessageStop, contract.StopRequest{})
	env.ExecuteWorkflow(contract.ContinuousJobType, contract.NewContinuousState(continuous("a", 24*time.Hour)))
	require.NoError(t, env.GetWorkflowError())
	require.True(t, inA(time.Hour, begin).Equal(same.requireUnchangedPause().PauseEnd))
	require.Equal(t, "lunch", left.requireUnchangedPause().PauseReason)
}

// The state that is carried on has the end, also one that has passed meanwhile.
func TestContinuousJobKeepsTheEndOfAPause(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]time.Duration{"to come": time.Hour, "passed": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
				n++
				return contract.ActivityOutput{}, nil
			})
			state := contract.NewContinuousState(continuous("a", 24*time.Hour))
			state.Paused, state.PauseReason, state.PauseEnd = true, "lunch", inA(end, env.Now())
			send(t, env, 2*time.Hour, contract.MessageStop, contract.StopRequest{})
			env.ExecuteWorkflow(contract.ContinuousJobType, state)
			require.NoError(t, env.GetWorkflowError())
			require.Equal(t, 1, n)
		})
	}
}

// Whoever looks at failures resumes the job: the end of an older pause does not.
func TestContinuousJobThatPausesItselfHasNoEnd(t *testing.T) {
	t.Parallel()
	state := contract.ContinuousState{Paused: true, PauseReason: "lunch", PauseEnd: time.Now()}
	workflows.PauseItself(&state, "broken")
	require.Zero(t, state.PauseEnd)
	require.Contains(t, state.PauseReason, "lunch; also: ")
}

func TestJobQueueResumesWhenItsPauseEnds(t *testing.T) {
	t.Parallel()
	var ran []time.Duration
	var begin time.Time
	env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		return contract.ActivityOutput{}, nil
	})
	begin = env.Now()
	env.SetOnActivityStartedListener(func(*activity.Info, context.Context, converter.EncodedValues) {
		ran = append(ran, env.Now().Sub(begin))
	})
	send(t, env, time.Second, contract.MessagePauseQueue, contract.PauseRequest{Reason: "lunch", End: inA(time.Hour, begin)})
	send(t, env, 2*time.Second, contract.MessageEnqueue, put(queued("a")))
	left := send(t, env, 3*time.Second, contract.MessagePauseQueue, contract.PauseRequest{Reason: "window", UnlessPaused: true})
	send(t, env, 2*time.Hour, contract.MessagePauseQueue, contract.PauseRequest{Reason: "again", End: inA(3*time.Hour, begin)})
	send(t, env, 2*time.Hour+time.Second, contract.MessageResumeQueue, contract.ResumeRequest{})
	send(t, env, 2*time.Hour+2*time.Second, contract.MessagePauseQueue, contract.PauseRequest{Reason: "for good"})
	send(t, env, 2*time.Hour+3*time.Second, contract.MessageEnqueue, put(queued("b")))
	env.RegisterDelayedCallback(func() {
		state := queueState(t, env)
		require.True(t, state.Paused, "the timer of the pause that was resumed ends no other")
		require.Len(t, state.Waiting, 1)
	}, 4*time.Hour)
	send(t, env, 5*time.Hour, contract.MessagePauseQueue, contract.PauseRequest{Reason: "for good", End: inA(24*time.Hour, begin)})
	env.RegisterDelayedCallback(func() {
		env.SetContinueAsNewSuggested(true)
		env.UpdateWorkflow(string(contract.MessagePurge), "end", &answer{t: t}, contract.PurgeRequest{From: 100})
	}, 6*time.Hour)
	env.ExecuteWorkflow(contract.JobQueueType, contract.QueueState{Name: "tables"})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &again)
	var next contract.QueueState
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &next))
	require.True(t, inA(24*time.Hour, begin).Equal(next.PauseEnd))
	require.Len(t, ran, 1)
	require.InDelta(t, time.Hour.Seconds(), ran[0].Seconds(), 2)
	require.Error(t, left.rejected)

	env = newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		return contract.ActivityOutput{}, nil
	})
	next.PauseEnd = inA(time.Hour, env.Now())
	state := endQueue(t, env, 2*time.Hour, next)
	require.False(t, state.Paused)
	require.EqualValues(t, 2, state.Completed, "the next run of the queue ends the pause")
}

func TestPauseOfASchedule(t *testing.T) {
	t.Parallel()
	end := time.Date(2027, 1, 31, 4, 0, 0, 0, time.UTC)
	at, later := contract.FormatPauseEnd(end), contract.FormatPauseEnd(end.Add(time.Hour))
	for _, p := range []struct {
		note, attribute string
		want            contract.Pause
	}{
		{"lunch", "", contract.Pause{Reason: "lunch"}},
		{contract.PauseText("a", end), at, contract.Pause{Reason: "a", End: end}},
		{contract.PauseText("", end), at, contract.Pause{End: end}},
		{contract.PauseText("a", end), "", contract.Pause{Reason: contract.PauseText("a", end)}}, // a reason that reads like an end
		{contract.PauseText("a", end), later, contract.Pause{Reason: contract.PauseText("a", end)}},
		{"paused in the Web UI", at, contract.Pause{Reason: "paused in the Web UI"}},
		{"a", "soon", contract.Pause{Reason: "a"}},
	} {
		reason, until := contract.PauseOf(p.note, p.attribute)
		require.Equal(t, p.want.Reason, reason)
		require.True(t, p.want.End.Equal(until), p)
	}
}
