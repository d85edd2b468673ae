package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

func continuous(key string, interval time.Duration) job.Job {
	return newJob(key, job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(interval)}})
}

// send sends a message at a time after the start of the workflow.
func send[In, Out any](t *testing.T, env *testsuite.TestWorkflowEnvironment, after time.Duration, message contract.Message[In, Out], in In) *answer {
	t.Helper()
	a := &answer{t: t}
	env.RegisterDelayedCallback(func() {
		env.UpdateWorkflow(string(message), fmt.Sprintf("%s-%s", message, after), a, in)
	}, after)
	return a
}

func continuousState(t *testing.T, env *testsuite.TestWorkflowEnvironment) contract.ContinuousState {
	t.Helper()
	value, err := env.QueryWorkflow(contract.QueryState)
	require.NoError(t, err)
	var state contract.ContinuousState
	require.NoError(t, value.Get(&state))
	return state
}

func TestContinuousJobRunsUntilStopped(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		last := 0
		if len(in.Cursor) > 0 {
			require.NoError(t, json.Unmarshal(in.Cursor, &last))
		}
		return contract.ActivityOutput{Result: job.Result{
			Counts: map[string]int64{"rows": 2}, Cursor: job.EncodeJSON(last + 1),
		}}, nil
	})
	stop := send(t, env, 95*time.Second, contract.MessageStop, contract.StopRequest{Reason: "enough"})
	env.ExecuteWorkflow(contract.ContinuousJobType, contract.NewContinuousState(continuous("a", 10*time.Second)))
	require.NoError(t, env.GetWorkflowError())
	stop.requireTaken()
	var out contract.ContinuousOutput
	require.NoError(t, env.GetWorkflowResult(&out))
	require.Equal(t, contract.ContinuousOutput{Iterations: 10, Totals: map[string]int64{"rows": 20}, Reason: "enough", Cursor: json.RawMessage("10")}, out)
	state := continuousState(t, env)
	require.Equal(t, contract.PhaseStopped, state.Phase)
	require.JSONEq(t, "10", string(state.Cursor))
	require.Len(t, state.Recent, 10)
}

func TestContinuousJobBacksOffAndPausesItself(t *testing.T) {
	t.Parallel()
	var starts []time.Time
	var env *testsuite.TestWorkflowEnvironment
	fail := true
	env = newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		starts = append(starts, env.Now())
		if fail {
			return contract.ActivityOutput{}, errors.New("the vendor is away")
		}
		return contract.ActivityOutput{}, nil
	})
	j := continuous("a", 100*time.Millisecond)
	j.Options.MaxRetryCount = 3
	j.Options.RetryBackoff = job.Backoff{
		Initial: job.Duration(2 * time.Second), Max: job.Duration(5 * time.Second), Coefficient: 2,
	}
	env.RegisterDelayedCallback(func() {
		state := continuousState(t, env)
		require.Equal(t, contract.PhaseFailing, state.Phase)
		require.Equal(t, "the vendor is away", state.LastError)
	}, time.Second)
	env.RegisterDelayedCallback(func() {
		state := continuousState(t, env)
		require.Equal(t, contract.PhasePaused, state.Phase)
		require.Contains(t, state.PauseReason, "4 iterations in a row failed, the last one: the vendor is away")
		fail = false
	}, time.Hour)
	send(t, env, 2*time.Hour, contract.MessageResume, contract.ResumeRequest{})
	send(t, env, 2*time.Hour+50*time.Millisecond, contract.MessageStop, contract.StopRequest{})
	env.ExecuteWorkflow(contract.ContinuousJobType, contract.NewContinuousState(j))
	require.NoError(t, env.GetWorkflowError())

	require.Len(t, starts, 5)
	for i, wait := range []time.Duration{2 * time.Second, 4 * time.Second, 5 * time.Second} {
		require.InDelta(t, wait.Seconds(), starts[i+1].Sub(starts[i]).Seconds(), 0.5, "wait %d", i+1)
	}
	var out contract.ContinuousOutput
	require.NoError(t, env.GetWorkflowResult(&out))
	require.EqualValues(t, 5, out.Iterations)
	require.EqualValues(t, 4, out.Failed)
}

func TestContinuousJobPausesTriggersAndTakesANewDefinition(t *testing.T) {
	t.Parallel()
	var specs []string
	env := newEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		specs = append(specs, string(in.Job.Spec))
		return contract.ActivityOutput{}, nil
	})
	j := continuous("a", time.Hour)
	changed := j
	changed.Spec = json.RawMessage(`{"v":2}`)
	other := continuous("b", time.Hour)

	refused := send(t, env, 1*time.Minute, contract.MessageSetJob, contract.SetJobRequest{Job: other})
	send(t, env, 2*time.Minute, contract.MessageSetJob, contract.SetJobRequest{Job: changed})
	env.RegisterDelayedCallback(func() { require.Len(t, specs, 1) }, 3*time.Minute)
	send(t, env, 4*time.Minute, contract.MessageTrigger, contract.TriggerRequest{})
	send(t, env, 5*time.Minute, contract.MessagePause, contract.PauseRequest{Reason: "by hand"})
	notNow := send(t, env, 6*time.Minute, contract.MessageTrigger, contract.TriggerRequest{})
	env.RegisterDelayedCallback(func() {
		require.Equal(t, contract.PhasePaused, continuousState(t, env).Phase)
		require.Len(t, specs, 2)
	}, 24*time.Hour)
	send(t, env, 25*time.Hour, contract.MessageResume, contract.ResumeRequest{})
	send(t, env, 25*time.Hour+time.Minute, contract.MessageStop, contract.StopRequest{})
	env.ExecuteWorkflow(contract.ContinuousJobType, contract.NewContinuousState(j))
	require.NoError(t, env.GetWorkflowError())
	require.ErrorContains(t, refused.rejected, "is not a definition of the continuous job count_things.a")
	require.ErrorContains(t, notNow.rejected, "job count_things.a is paused (by hand)")
	require.Equal(t, []string{`{}`, `{"v":2}`, `{"v":2}`}, specs)
}

func TestContinuousJobStopsARunningIterationGracefully(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(t *testing.T, env *testsuite.TestWorkflowEnvironment){
		"message": func(t *testing.T, env *testsuite.TestWorkflowEnvironment) {
			send(t, env, soon, contract.MessageStop, contract.StopRequest{})
		},
		"cancel request": func(_ *testing.T, env *testsuite.TestWorkflowEnvironment) {
			env.RegisterDelayedCallback(env.CancelWorkflow, soon)
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnvironment(t, func(ctx context.Context, _ contract.ActivityInput) (contract.ActivityOutput, error) {
				untilCanceled(ctx)
				return contract.ActivityOutput{}, temporal.NewCanceledError()
			})
			ask(t, env)
			env.ExecuteWorkflow(contract.ContinuousJobType, contract.NewContinuousState(continuous("a", time.Second)))
			state := continuousState(t, env)
			require.True(t, state.Recent[0].Stopped)
			require.Zero(t, state.Failed)
			if name == "message" {
				require.NoError(t, env.GetWorkflowError())
			} else {
				require.True(t, temporal.IsCanceledError(env.GetWorkflowError()), "%v", env.GetWorkflowError())
			}
		})
	}
}

func TestContinuousJobContinuesAsNewWithItsState(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		return contract.ActivityOutput{Result: job.Result{Counts: map[string]int64{"n": 1}, Cursor: json.RawMessage(`"here"`)}}, nil
	})
	send(t, env, 500*time.Millisecond, contract.MessagePause, contract.PauseRequest{Reason: "by hand"})
	env.RegisterDelayedCallback(func() { env.SetContinueAsNewSuggested(true) }, time.Second)
	send(t, env, 2*time.Second, contract.MessagePause, contract.PauseRequest{Reason: "still"})
	env.ExecuteWorkflow(contract.ContinuousJobType, contract.NewContinuousState(continuous("a", 10*time.Millisecond)))
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &again)
	var state contract.ContinuousState
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &state))
	require.Equal(t, 1, state.Generation)
	require.True(t, state.Paused)
	require.Equal(t, "by hand; also: still", state.PauseReason)
	require.Positive(t, state.Iterations)
	require.Equal(t, state.Totals["n"], state.Iterations-state.Interrupted, "all iterations but the one that the pause may have ended")
	require.JSONEq(t, `"here"`, string(state.Cursor))
}

// However many names a handler counts under, the state stays bounded.
func TestContinuousJobBoundsItsTotals(t *testing.T) {
	t.Parallel()
	n := 0
	env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		counts := map[string]int64{}
		for range 100 {
			n++
			counts[fmt.Sprintf("name-%d", n)] = 1
		}
		return contract.ActivityOutput{Result: job.Result{Counts: counts}}, nil
	})
	send(t, env, time.Second, contract.MessageStop, contract.StopRequest{})
	env.ExecuteWorkflow(contract.ContinuousJobType, contract.NewContinuousState(continuous("a", 10*time.Millisecond)))
	var out contract.ContinuousOutput
	require.NoError(t, env.GetWorkflowResult(&out))
	require.Greater(t, out.Iterations, int64(2))
	require.Len(t, out.Totals, 201)
	sum := int64(0)
	for _, total := range out.Totals {
		sum += total
	}
	require.EqualValues(t, 100*(out.Iterations-out.Interrupted), sum, "nothing is left out")
}

// silent is the error of an activity whose worker died.
func silent(cursor string) error {
	return temporal.NewHeartbeatTimeoutError(contract.Heartbeat{Worker: "w1", Cursor: json.RawMessage(cursor)})
}

// publishedFailings collects what the workflow writes to its memo about its failures.
func publishedFailings(t *testing.T, env *testsuite.TestWorkflowEnvironment) *[]contract.Failing {
	t.Helper()
	published := &[]contract.Failing{}
	env.OnUpsertMemo(mock.Anything).Run(func(args mock.Arguments) {
		memo, ok := args.Get(0).(map[string]any)
		require.True(t, ok)
		if failing, ok := memo[contract.MemoFailing].(contract.Failing); ok {
			*published = append(*published, failing)
		}
	}).Return(nil)
	return published
}

// A worker that dies is not the job's failure, unless it happens again and again.
func TestContinuousJobDoesNotCountLostWorkers(t *testing.T) {
	t.Parallel()
	var starts []time.Time
	var cursors []string
	var env *testsuite.TestWorkflowEnvironment
	env = newEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		starts, cursors = append(starts, env.Now()), append(cursors, string(in.Cursor))
		switch n := len(starts); {
		case n <= 5:
			return contract.ActivityOutput{}, silent(fmt.Sprint(n))
		case n == 6:
			return contract.ActivityOutput{}, nil
		}
		return contract.ActivityOutput{}, silent("0")
	})
	j := continuous("a", 100*time.Millisecond)
	j.Options.MaxRetryCount = 0
	j.Options.RetryBackoff = job.Backoff{Initial: job.Duration(time.Second), Max: job.Duration(time.Minute), Coefficient: 2}
	env.RegisterDelayedCallback(func() {
		state := continuousState(t, env)
		require.Equal(t, contract.PhaseWaiting, state.Phase, "lost workers alone are no failing job")
		require.EqualValues(t, 5, state.LostWorkers)
		require.Equal(t, 5, state.ConsecutiveLost)
		require.Contains(t, state.LastError, "the worker fell silent")
		require.True(t, state.LastSuccess.IsZero())
		require.Zero(t, state.Failed)
	}, 20*time.Second)
	env.RegisterDelayedCallback(func() {
		state := continuousState(t, env)
		require.Equal(t, contract.PhasePaused, state.Phase, "six in a row are more than the retries allow")
		require.EqualValues(t, 11, state.LostWorkers)
		require.EqualValues(t, 1, state.Failed)
		require.False(t, state.LastSuccess.IsZero())
	}, time.Hour)
	send(t, env, 2*time.Hour, contract.MessageStop, contract.StopRequest{})
	env.ExecuteWorkflow(contract.ContinuousJobType, contract.NewContinuousState(j))
	require.NoError(t, env.GetWorkflowError())
	require.Len(t, starts, 12)
	require.Equal(t, []string{"", "1", "2", "3", "4", "5"}, cursors[:6], "it goes on at the last cursor")
	for i, wait := range []float64{1, 2, 4, 8, 16, 0.1, 1, 2, 4, 8, 16} {
		require.InDelta(t, wait, starts[i+1].Sub(starts[i]).Seconds(), 0.5, "wait %d", i+1)
	}
}

// What is cut short says nothing of how the job does.
func TestContinuousJobCountsIterationsThatAreCutShortForNothing(t *testing.T) {
	t.Parallel()
	n := 0
	env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		switch n++; n {
		case 1:
			return contract.ActivityOutput{}, errors.New("the vendor is away")
		case 2:
			return contract.ActivityOutput{}, draining("7")
		}
		return contract.ActivityOutput{}, errors.New("the vendor is still away")
	})
	j := continuous("a", 10*time.Second)
	j.Options.MaxRetryCount = 1
	env.RegisterDelayedCallback(func() {
		state := continuousState(t, env)
		require.Equal(t, contract.PhasePaused, state.Phase)
		require.Contains(t, state.PauseReason, "2 iterations in a row failed, the last one: the vendor is still away")
		require.EqualValues(t, 3, state.Iterations)
		require.EqualValues(t, 2, state.Failed)
		require.EqualValues(t, 1, state.Interrupted)
		require.True(t, state.LastSuccess.IsZero())
		require.JSONEq(t, "7", string(state.Cursor))
	}, time.Hour)
	send(t, env, 2*time.Hour, contract.MessageStop, contract.StopRequest{})
	env.ExecuteWorkflow(contract.ContinuousJobType, contract.NewContinuousState(j))
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, 3, n)
}

// The memo and the log say once that the job fails, and once that it does not.
func TestContinuousJobReportsThatItIsFailing(t *testing.T) {
	t.Parallel()
	n := 0
	var log strings.Builder
	env := loggingEnvironment(t, &log, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		if n++; n <= 3 || n >= 6 {
			return contract.ActivityOutput{}, temporal.NewApplicationError("the vendor is away", "Away")
		}
		return contract.ActivityOutput{}, nil
	})
	published := publishedFailings(t, env)
	j := continuous("a", 10*time.Second)
	j.Options.RetryBackoff = job.Backoff{Initial: job.Duration(time.Second), Max: job.Duration(time.Second), Coefficient: 1}
	send(t, env, 65*time.Second, contract.MessagePause, contract.PauseRequest{Reason: "by hand"})
	send(t, env, 66*time.Second, contract.MessageResume, contract.ResumeRequest{})
	send(t, env, 67*time.Second, contract.MessageStop, contract.StopRequest{})
	env.ExecuteWorkflow(contract.ContinuousJobType, contract.NewContinuousState(j))
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, 8, n)
	require.Len(t, *published, 5)
	for i, failing := range *published {
		if i%2 == 1 {
			require.Equal(t, contract.Failing{}, failing, "after a success, and when the job is resumed")
			continue
		}
		require.True(t, failing.Failing)
		require.False(t, failing.Since.IsZero())
		require.Equal(t, "Away", failing.Class)
		require.Equal(t, "the vendor is away", failing.Error)
	}
	require.Equal(t, 3, strings.Count(log.String(), "level=ERROR msg=\"the continuous job is failing\" alert=failing"))
	require.Equal(t, 1, strings.Count(log.String(), "alert=recovered"))
	require.Contains(t, log.String(), `Failures=1 LastError="the vendor is away"`)
}
