package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

func oneShot(key string) job.Job { return newJob(key, job.Trigger{OneShot: &job.OneShot{}}) }

func draining(cursor string) error {
	return temporal.NewApplicationErrorWithOptions("the worker shuts down", contract.ErrorTypeDraining,
		temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{contract.ActivityOutput{
			Attempts: 1, Result: job.Result{Cursor: json.RawMessage(cursor)},
		}}})
}

func TestRunJobGivesTheResult(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		require.Equal(t, "count_things.a", in.Job.ID)
		require.NotEmpty(t, in.RunID)
		return contract.ActivityOutput{
			Worker: "w1", Attempts: 1, Result: job.Result{Message: "done", Counts: map[string]int64{"things": 3}},
		}, nil
	})
	env.ExecuteWorkflow(contract.RunJobType, contract.RunInput{Job: oneShot("a"), StartedBy: contract.StartedByHand})
	require.NoError(t, env.GetWorkflowError())
	var out contract.RunOutput
	require.NoError(t, env.GetWorkflowResult(&out))
	require.Equal(t, contract.RunOutput{
		Result:   job.Result{Message: "done", Counts: map[string]int64{"things": 3}},
		Attempts: 1, Worker: "w1",
	}, out)
}

// TestDetailsTakeNoMarkdownFromOutside has the Web UI show the message of a run as it is.
func TestDetailsTakeNoMarkdownFromOutside(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		return contract.ActivityOutput{Attempts: 1, Result: job.Result{Message: "[log in](https://evil.example)"}}, nil
	})
	env.ExecuteWorkflow(contract.RunJobType, contract.RunInput{Job: oneShot("a")})
	require.NoError(t, env.GetWorkflowError())
	answer, err := env.QueryWorkflow("__temporal_workflow_metadata")
	require.NoError(t, err)
	var shown sdkpb.WorkflowMetadata
	require.NoError(t, answer.Get(&shown))
	require.Contains(t, shown.GetCurrentDetails(), `completed\: \[log in\]\(https\://evil.example\)`)
}

func TestRunJobRetriesAsOftenAsItsOptionsSay(t *testing.T) {
	t.Parallel()
	for _, retries := range []int{0, 2} {
		calls := 0
		env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
			calls++
			return contract.ActivityOutput{}, errors.New("the store is away")
		})
		j := oneShot("a")
		j.Options.MaxRetryCount = retries
		env.ExecuteWorkflow(contract.RunJobType, contract.RunInput{Job: j})
		cause := contract.Cause(env.GetWorkflowError())
		require.Equal(t, retries+1, calls)
		require.EqualError(t, cause, "the store is away")
	}
}

func TestRunJobDoesNotRetryAFinalError(t *testing.T) {
	t.Parallel()
	calls := 0
	env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		calls++
		return contract.ActivityOutput{}, temporal.NewNonRetryableApplicationError("no image", "InvalidImage", nil)
	})
	env.ExecuteWorkflow(contract.RunJobType, contract.RunInput{Job: oneShot("a")})
	cause := contract.Cause(env.GetWorkflowError())
	require.Equal(t, "InvalidImage", cause.Class)
	require.EqualError(t, cause, "no image")
	require.Equal(t, 1, calls)
}

func TestRunJobGoesOnAtTheCursorOfADrainingWorker(t *testing.T) {
	t.Parallel()
	var cursors []string
	env := newEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		cursors = append(cursors, string(in.Cursor))
		if len(cursors) < 3 {
			return contract.ActivityOutput{}, draining(`{"row":` + string(rune('0'+len(cursors))) + `}`)
		}
		return contract.ActivityOutput{Attempts: 1, Worker: "w3"}, nil
	})
	j := oneShot("a")
	j.Options.MaxRetryCount = 0 // A hand-over uses up no retry.
	env.ExecuteWorkflow(contract.RunJobType, contract.RunInput{Job: j})
	require.NoError(t, env.GetWorkflowError())
	var out contract.RunOutput
	require.NoError(t, env.GetWorkflowResult(&out))
	require.Equal(t, []string{"", `{"row":1}`, `{"row":2}`}, cursors)
	require.Equal(t, 2, out.Handovers)
	require.Equal(t, 3, out.Attempts)
}

func TestRunJobEndsAsCanceled(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, func(ctx context.Context, _ contract.ActivityInput) (contract.ActivityOutput, error) {
		untilCanceled(ctx)
		return contract.ActivityOutput{}, temporal.NewCanceledError()
	})
	env.RegisterDelayedCallback(env.CancelWorkflow, soon)
	env.ExecuteWorkflow(contract.RunJobType, contract.RunInput{Job: oneShot("a")})
	require.True(t, temporal.IsCanceledError(env.GetWorkflowError()), "%v", env.GetWorkflowError())
}

func TestRunJobGivesWayToALaterStart(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		recurring job.Recurring
		trigger   contract.StartedBy
		late      time.Duration
		want      time.Time
	}{
		"late":          {job.Recurring{Misfire: job.MisfireOnce, Overlap: job.OverlapAllowAll}, contract.StartedBySchedule, time.Minute, due.Add(time.Minute)},
		"in time":       {job.Recurring{Misfire: job.MisfireOnce, Overlap: job.OverlapAllowAll}, contract.StartedBySchedule, 59 * time.Second, time.Time{}},
		"asked for":     {job.Recurring{Misfire: job.MisfireOnce, Overlap: job.OverlapAllowAll}, contract.StartedByHand, time.Hour, time.Time{}},
		"of all":        {job.Recurring{Misfire: job.MisfireAll, MaxMissed: 3}, contract.StartedBySchedule, 3 * time.Minute, due.Add(3 * time.Minute)},
		"within all":    {job.Recurring{Misfire: job.MisfireAll, MaxMissed: 3}, contract.StartedBySchedule, 2 * time.Minute, time.Time{}},
		"with no word":  {job.Recurring{Overlap: job.OverlapBufferAll}, contract.StartedBySchedule, time.Hour, time.Time{}},
		"not scheduled": {job.Recurring{Misfire: job.MisfireOnce, Overlap: job.OverlapAllowAll}, contract.StartedBySchedule, -1, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			handled := false
			env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
				handled = true
				return contract.ActivityOutput{Attempts: 1}, nil
			})
			if c.late >= 0 {
				env.SetStartTime(due.Add(c.late))
				require.NoError(t, env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(
					temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime").ValueSet(due))))
			}
			c.recurring.RecurEvery, c.recurring.Offset = job.Duration(time.Minute), new(job.Duration)
			env.ExecuteWorkflow(contract.RunJobType, contract.RunInput{Job: newJob("a", job.Trigger{Recurring: &c.recurring}), StartedBy: c.trigger})
			var out contract.RunOutput
			require.NoError(t, env.GetWorkflowResult(&out))
			require.Equal(t, c.want, out.SupersededBy)
			require.Equal(t, c.want.IsZero(), handled)
			if !handled {
				require.Equal(t, "nothing done: the start of "+c.want.Format(time.RFC3339)+" was due too", out.Message)
			}
		})
	}
}

// A run that gives way must not end a row of failures.
func TestRunJobThatGivesWayPassesFailuresOn(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	recurring := job.Recurring{
		RecurEvery: job.Duration(time.Minute), Offset: new(job.Duration), Misfire: job.MisfireOnce, Overlap: job.OverlapBufferAll,
		PauseAfterFailures: 3,
	}
	before := contract.Failing{Failing: true, Failures: 2}
	for name, last := range map[string]error{
		"after failures": temporal.NewApplicationError("no", "Broken", before, "0123456789abcdef"),
		"after nothing":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
				require.Fail(t, "it gives way")
				return contract.ActivityOutput{}, nil
			})
			if last != nil {
				env.SetLastError(last)
			}
			env.SetStartTime(due.Add(time.Hour))
			require.NoError(t, env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(
				temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime").ValueSet(due),
				contract.AttributeDefinitionHash.ValueSet("0123456789abcdef"))))
			env.ExecuteWorkflow(contract.RunJobType, contract.RunInput{
				Job: newJob("a", job.Trigger{Recurring: &recurring}), StartedBy: contract.StartedBySchedule,
			})
			err := env.GetWorkflowError()
			if last == nil {
				require.NoError(t, err)
				return
			}
			require.True(t, temporal.IsCanceledError(err), "a canceled run leaves the last error to the next one")
		})
	}
}

// lostBy is the error of a worker that may have lost its run, on the given attempt.
func lostBy(attempt int) error {
	return temporal.NewApplicationError("the run may be another worker's now", errclass.RunLost,
		contract.ActivityOutput{Worker: "w1", Attempts: attempt, Result: job.Result{Cursor: json.RawMessage(`"here"`)}})
}

// TestRunJobCountsTheTriesOfLostWorkers has a job that kills every worker: its
// retries are not filled up again.
func TestRunJobCountsTheTriesOfLostWorkers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		retries, lost, calls int
		lose                 func(attempt int) error
		fails                bool
	}{
		"without retries, all lost":    {0, 99, 6, func(int) error { return silent("1") }, true},
		"with retries, all lost":       {3, 99, 9, func(int) error { return silent("1") }, true},
		"with retries, five extra":     {3, 8, 9, func(int) error { return silent("1") }, false},
		"reported by the worker":       {1, 6, 7, lostBy, false},
		"reported by the worker, last": {1, 99, 7, lostBy, true},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			env := newEnvironment(t, func(ctx context.Context, _ contract.ActivityInput) (contract.ActivityOutput, error) {
				attempt := int(activity.GetInfo(ctx).Attempt)
				if calls++; calls <= c.lost {
					return contract.ActivityOutput{}, c.lose(attempt)
				}
				return contract.ActivityOutput{Worker: "w2", Attempts: attempt}, nil
			})
			var end contract.RunEnd
			env.OnUpsertMemo(mock.Anything).Run(func(args mock.Arguments) {
				memo, ok := args.Get(0).(map[string]any)
				require.True(t, ok)
				end, ok = memo[contract.MemoEnd].(contract.RunEnd)
				require.True(t, ok)
			}).Return(nil)
			j := oneShot("a")
			j.Options.MaxRetryCount = c.retries
			env.ExecuteWorkflow(contract.RunJobType, contract.RunInput{Job: j})
			require.Equal(t, c.calls, calls)
			require.Equal(t, c.calls, end.Attempts, "what lists show as attempts")
			if c.fails {
				require.Error(t, env.GetWorkflowError())
				return
			}
			require.NoError(t, env.GetWorkflowError())
			var out contract.RunOutput
			require.NoError(t, env.GetWorkflowResult(&out))
			require.Equal(t, c.calls, out.Attempts)
		})
	}
}

// A worker that shuts down hands back the attempts that are left, and no more.
func TestRunJobHandsOverTheTriesThatAreLeft(t *testing.T) {
	t.Parallel()
	calls := 0
	env := newEnvironment(t, func(ctx context.Context, _ contract.ActivityInput) (contract.ActivityOutput, error) {
		attempt := int(activity.GetInfo(ctx).Attempt)
		if calls++; calls == 2 {
			return contract.ActivityOutput{}, temporal.NewApplicationErrorWithOptions("the worker shuts down", contract.ErrorTypeDraining,
				temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{contract.ActivityOutput{Worker: "w1", Attempts: attempt}}})
		}
		return contract.ActivityOutput{}, temporal.NewApplicationError("the store is away", "Away",
			contract.ActivityOutput{Worker: "w1", Attempts: attempt})
	})
	j := oneShot("a")
	j.Options.MaxRetryCount = 2
	env.ExecuteWorkflow(contract.RunJobType, contract.RunInput{Job: j})
	cause := contract.Cause(env.GetWorkflowError())
	require.EqualError(t, cause, "the store is away")
	require.Equal(t, 4, calls, "three attempts, and the one that was handed back")
}
