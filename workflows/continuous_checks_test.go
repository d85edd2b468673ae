package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// requireUnchanged wants a message to have been refused with the state.
func (a *answer) requireUnchanged() contract.ContinuousState {
	a.t.Helper()
	app, ok := errors.AsType[*temporal.ApplicationError](a.rejected)
	require.True(a.t, ok, "refused with %v", a.rejected)
	require.Equal(a.t, contract.ErrorTypeUnchanged, app.Type())
	var state contract.ContinuousState
	require.NoError(a.t, app.Details(&state))
	require.False(a.t, a.accepted)
	return state
}

// requireUnchangedPause is requireUnchanged for a pause or a resume.
func (a *answer) requireUnchangedPause() contract.ContinuousAnswer {
	a.t.Helper()
	app, ok := errors.AsType[*temporal.ApplicationError](a.rejected)
	require.True(a.t, ok, "refused with %v", a.rejected)
	require.Equal(a.t, contract.ErrorTypeUnchanged, app.Type())
	var state contract.ContinuousAnswer
	require.NoError(a.t, app.Details(&state))
	require.False(a.t, a.accepted)
	return state
}

// What changes nothing is answered without a trace in the history, since a
// workflow run takes 2,000 updates.
func TestContinuousJobRefusesWhatChangesNothing(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		return contract.ActivityOutput{}, nil
	})
	j := continuous("a", time.Hour)
	changed := j
	changed.Spec = json.RawMessage(`{"v":2}`)
	at := func(minute int) time.Duration { return time.Duration(minute) * time.Minute }
	maintenance := contract.PauseRequest{Reason: "maintenance"}
	resumed := send(t, env, at(1), contract.MessageResume, contract.ResumeRequest{})
	same := send(t, env, at(2), contract.MessageSetJob, contract.SetJobRequest{Job: j, EndFailurePause: true})
	send(t, env, at(3), contract.MessagePause, maintenance)
	paused := send(t, env, at(4), contract.MessagePause, maintenance)
	other := send(t, env, at(5), contract.MessagePause, contract.PauseRequest{Reason: "weather"})
	resume := send(t, env, at(6), contract.MessageResume, contract.ResumeRequest{})
	set := send(t, env, at(7), contract.MessageSetJob, contract.SetJobRequest{Job: changed})
	again := send(t, env, at(8), contract.MessageSetJob, contract.SetJobRequest{Job: changed})
	restart := send(t, env, at(9), contract.MessageSetJob, contract.SetJobRequest{Job: changed, Restart: true})
	send(t, env, at(10), contract.MessageStop, contract.StopRequest{})
	env.ExecuteWorkflow(contract.ContinuousJobType, contract.NewContinuousState(j))
	require.NoError(t, env.GetWorkflowError())
	require.True(t, resumed.requireUnchangedPause().Before.Unchanged)
	require.Equal(t, j.ID, same.requireUnchanged().Job.ID)
	state := paused.requireUnchangedPause()
	require.True(t, state.Before.Paused)
	require.True(t, state.Paused)
	require.Equal(t, "maintenance", state.PauseReason)
	again.requireUnchanged()
	for _, taken := range []*answer{other, resume, set, restart} {
		taken.requireTaken()
	}
}

// The reasons in messages are part of its state, and of its result.
func TestContinuousJobBoundsReasons(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, succeed)
	long := strings.Repeat("x", 1<<20)
	pause := send(t, env, soon, contract.MessagePause, contract.PauseRequest{Reason: long})
	read := contract.PauseRequest{Reason: long + "y"}
	again := send(t, env, 2*time.Minute, contract.MessagePause, contract.PauseRequest{Reason: "maintenance"})
	cut := send(t, env, 3*time.Minute, contract.MessagePause, read)
	same := send(t, env, 4*time.Minute, contract.MessagePause, read)
	stop := send(t, env, 5*time.Minute, contract.MessageStop, contract.StopRequest{Reason: long})
	env.ExecuteWorkflow(contract.ContinuousJobType, contract.NewContinuousState(continuous("a", time.Hour)))
	require.NoError(t, env.GetWorkflowError())
	for _, taken := range []*answer{pause, again, cut, stop} {
		taken.requireTaken()
	}
	const most = 1000
	require.LessOrEqual(t, len(same.requireUnchangedPause().PauseReason), most)
	for _, paused := range []contract.ContinuousState{
		{Paused: true, PauseReason: strings.Repeat("x", most)}, {Paused: true, PauseReason: "vendor"}, {},
	} {
		before := paused.PauseReason
		workflows.PauseItself(&paused, strings.Repeat("e", 2*most))
		require.LessOrEqual(t, len(paused.PauseReason), most)
		require.Contains(t, paused.PauseReason, " iterations in a row failed, the last one: eeee")
		require.True(t, strings.HasPrefix(paused.PauseReason, before[:min(len(before), most/2-10)]), paused.PauseReason)
		require.Equal(t, before == "", paused.PausedItself)
	}
	var output contract.ContinuousOutput
	require.NoError(t, env.GetWorkflowResult(&output))
	require.LessOrEqual(t, len(output.Reason), most)
}

// While an iteration runs, one more is asked for once.
func TestContinuousJobTakesOneTriggerAtATime(t *testing.T) {
	t.Parallel()
	n := 0
	env := newEnvironment(t, func(ctx context.Context, _ contract.ActivityInput) (contract.ActivityOutput, error) {
		if n++; n == 1 {
			untilCanceled(ctx)
			return contract.ActivityOutput{}, temporal.NewCanceledError()
		}
		return contract.ActivityOutput{}, nil
	})
	first := send(t, env, soon, contract.MessageTrigger, contract.TriggerRequest{})
	second := send(t, env, soon+time.Millisecond, contract.MessageTrigger, contract.TriggerRequest{})
	send(t, env, soon+2*time.Millisecond, contract.MessageStop, contract.StopRequest{})
	env.ExecuteWorkflow(contract.ContinuousJobType, contract.NewContinuousState(continuous("a", time.Hour)))
	require.NoError(t, env.GetWorkflowError())
	first.requireTaken()
	require.True(t, second.requireUnchanged().Trigger)
	require.Equal(t, 1, n)
}

// A job that has paused itself goes on when its definition is corrected.
func TestContinuousJobThatPausedItselfGoesOnWithANewDefinition(t *testing.T) {
	t.Parallel()
	var specs []string
	env := newEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		specs = append(specs, string(in.Job.Spec))
		if string(in.Job.Spec) == `{}` {
			return contract.ActivityOutput{}, errors.New("the spec is wrong")
		}
		return contract.ActivityOutput{}, nil
	})
	j := continuous("a", time.Hour)
	j.Options.MaxRetryCount = 0
	corrected := j
	corrected.Spec = json.RawMessage(`{"v":2}`)
	env.RegisterDelayedCallback(func() {
		state := continuousState(t, env)
		require.True(t, state.Paused)
		require.True(t, state.PausedItself)
	}, time.Minute)
	set := send(t, env, 2*time.Minute, contract.MessageSetJob, contract.SetJobRequest{Job: corrected, EndFailurePause: true})
	env.RegisterDelayedCallback(func() {
		state := continuousState(t, env)
		require.False(t, state.Paused)
		require.Equal(t, contract.PhaseWaiting, state.Phase)
	}, 3*time.Minute)
	send(t, env, 4*time.Minute, contract.MessageStop, contract.StopRequest{})
	env.ExecuteWorkflow(contract.ContinuousJobType, contract.NewContinuousState(j))
	require.NoError(t, env.GetWorkflowError())
	set.requireTaken()
	require.Equal(t, []string{`{}`, `{"v":2}`}, specs, "at once")
}

// A failed iteration leaves what its last attempt had reached, as a run does.
func TestContinuousJobGoesOnWhereAFailedIterationWas(t *testing.T) {
	t.Parallel()
	var cursors []string
	env := newEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		cursors = append(cursors, string(in.Cursor))
		if len(cursors) == 2 {
			return contract.ActivityOutput{}, nil
		}
		return contract.ActivityOutput{}, temporal.NewApplicationError("the vendor is away", "Away", contract.ActivityOutput{
			Worker: "w1", Attempts: 1, Result: job.Result{Cursor: json.RawMessage("7"), Counts: map[string]int64{"rows": 3}},
		})
	})
	send(t, env, time.Hour, contract.MessageStop, contract.StopRequest{})
	env.ExecuteWorkflow(contract.ContinuousJobType, contract.NewContinuousState(continuous("a", 2*time.Hour)))
	require.NoError(t, env.GetWorkflowError())
	state := continuousState(t, env)
	require.Equal(t, []string{""}, cursors)
	require.JSONEq(t, "7", string(state.Cursor))
	require.Equal(t, "w1", state.Recent[0].Worker)
	require.Equal(t, map[string]int64{"rows": 3}, state.Recent[0].Counts)
	require.Equal(t, map[string]int64{"rows": 3}, state.Totals)
}
