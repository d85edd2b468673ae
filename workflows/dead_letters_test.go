package workflows_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// A dead letter goes when a retry of its job with its spec is put in, and not for
// anything else.
func TestRetryTakesItsDeadLettersAway(t *testing.T) {
	t.Parallel()
	var cursors []string
	env := newEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		cursors = append(cursors, in.Job.ID+" "+string(in.Cursor))
		return contract.ActivityOutput{}, nil
	})
	hash := func(j job.Job) string {
		sum, err := j.DefinitionHash()
		require.NoError(t, err)
		return sum
	}
	other := queued("a")
	other.Spec = json.RawMessage(`{"other": true}`)
	state := contract.QueueState{Name: "tables", Accepted: 10, DeadLetters: []contract.DeadLetter{
		{Sequence: 1, JobID: "count_things.a", RunID: "r1", DefinitionHash: hash(queued("a"))},
		{Sequence: 2, JobID: "count_things.a", RunID: "r2", DefinitionHash: hash(other)},
		{Sequence: 3, JobID: "count_things.b", RunID: "r3", DefinitionHash: hash(queued("b"))},
		{Sequence: 4, JobID: "count_things.a", RunID: "r4"}, // Of an earlier version.
		{Sequence: 5, JobID: "count_things.a", RunID: "r5", DefinitionHash: hash(queued("a"))},
	}}
	send(t, env, time.Second, contract.MessageEnqueue, contract.EnqueueRequest{Items: []contract.EnqueueItem{{Job: queued("b"), AllowRerun: true}}})
	left := func(sequences ...int64) func() {
		return func() {
			var got []int64
			for _, letter := range queueState(t, env).DeadLetters {
				got = append(got, letter.Sequence)
			}
			require.Equal(t, sequences, got)
		}
	}
	env.RegisterDelayedCallback(left(1, 2, 3, 4, 5), 10*time.Second)
	send(t, env, 11*time.Second, contract.MessageEnqueue, contract.EnqueueRequest{Items: []contract.EnqueueItem{{Job: queued("a"), AllowRerun: true, RetryOf: "r4", Cursor: json.RawMessage(`7`)}}})
	env.RegisterDelayedCallback(left(2, 3), 20*time.Second)
	tooLarge := send(t, env, 21*time.Second, contract.MessageEnqueue, contract.EnqueueRequest{Items: []contract.EnqueueItem{{Job: queued("a"), AllowRerun: true, RetryOf: "r1", Cursor: json.RawMessage(`"` + strings.Repeat("x", contract.MaxCursorBytes) + `"`)}}})
	state = endQueue(t, env, time.Minute, state)
	require.ErrorContains(t, tooLarge.rejected, "its cursor has 32770 bytes")
	require.Equal(t, []string{"count_things.b ", "count_things.a 7"}, cursors)
	require.EqualValues(t, 2, state.Completed)
}

// Who retries many sends several batches: that one of them took away the letters of
// another does not refuse it.
func TestRetryOfALetterThatARetryTookAway(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		return contract.ActivityOutput{}, nil
	})
	hash, err := queued("a").DefinitionHash() // They all have one spec.
	require.NoError(t, err)
	state := contract.QueueState{Name: "tables", Accepted: 10, Paused: true, DeadLetters: []contract.DeadLetter{
		{Sequence: 1, JobID: "count_things.a", RunID: "r1", DefinitionHash: hash},
		{Sequence: 5, JobID: "count_things.a", RunID: "r5", DefinitionHash: hash},
		{Sequence: 6, JobID: "count_things.b", RunID: "r6", DefinitionHash: hash},
	}}
	retry := func(at time.Duration, items ...contract.EnqueueItem) *answer {
		return send(t, env, at, contract.MessageEnqueue, contract.EnqueueRequest{Items: items})
	}
	first := retry(time.Second, contract.EnqueueItem{Job: queued("a"), DeadLetter: 5, RetryOf: "r5"})
	second := retry(2*time.Second, contract.EnqueueItem{Job: queued("a"), DeadLetter: 1, RetryOf: "r1"},
		contract.EnqueueItem{Job: queued("b"), DeadLetter: 6, RetryOf: "r6"})
	absent := retry(3*time.Second, contract.EnqueueItem{Job: queued("c"), DeadLetter: 7, RetryOf: "r7"})
	noRun := retry(4*time.Second, contract.EnqueueItem{Job: queued("a"), DeadLetter: 1})
	state = endQueue(t, env, time.Minute, state)
	first.requireTaken()
	second.requireTaken()
	require.Equal(t, contract.EnqueueReceipts{Receipts: []contract.EnqueueReceipt{
		{Sequence: 11, Duplicate: true}, {Sequence: 12, Ahead: 1},
	}}, second.value)
	require.ErrorContains(t, absent.rejected, "queue tables has no dead letter 7")
	require.ErrorContains(t, noRun.rejected, "queue tables has no dead letter 1")
	require.Empty(t, state.DeadLetters)
	require.Len(t, state.Waiting, 2)
	require.Equal(t, "r5", state.Waiting[0].RetryOf, "the latest")
}

// A job that failed with two specs has two works to do: no letter of the one goes for
// the sake of the other, and a batch with both is refused.
func TestRetryOfAJobThatFailedWithTwoSpecs(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, succeed)
	hash := func(j job.Job) string {
		sum, err := j.DefinitionHash()
		require.NoError(t, err)
		return sum
	}
	other := queued("a")
	other.Spec = json.RawMessage(`{"other": true}`)
	state := contract.QueueState{Name: "tables", Accepted: 10, Paused: true, DeadLetters: []contract.DeadLetter{
		{Sequence: 5, JobID: "count_things.a", RunID: "r5", DefinitionHash: hash(queued("a"))},
		{Sequence: 9, JobID: "count_things.a", RunID: "r9", DefinitionHash: hash(other)},
	}}
	first := contract.EnqueueItem{Job: queued("a"), DeadLetter: 5, RetryOf: "r5"}
	second := contract.EnqueueItem{Job: other, DeadLetter: 9, RetryOf: "r9"}
	both := send(t, env, time.Second, contract.MessageEnqueue, contract.EnqueueRequest{Items: []contract.EnqueueItem{first, second}})
	one := send(t, env, 2*time.Second, contract.MessageEnqueue, contract.EnqueueRequest{Items: []contract.EnqueueItem{first}})
	late := send(t, env, 3*time.Second, contract.MessageEnqueue, contract.EnqueueRequest{Items: []contract.EnqueueItem{second}})
	env.RegisterDelayedCallback(func() { // A signal is not refused, and so may not take the letter.
		env.SignalWorkflow(contract.SignalEnqueue, contract.EnqueueRequest{Items: []contract.EnqueueItem{{Job: other, RetryOf: "r9"}}})
	}, 4*time.Second)
	var waiting contract.QueueState
	env.RegisterDelayedCallback(func() { waiting = queueState(t, env) }, 5*time.Second)
	endQueue(t, env, time.Minute, state)
	require.ErrorContains(t, both.rejected, "queue tables refuses job count_things.a: it is in the batch with another spec")
	one.requireTaken()
	require.ErrorContains(t, late.rejected, "it waits in it with another spec")
	require.Len(t, waiting.Waiting, 1)
	require.Len(t, waiting.DeadLetters, 1)
	require.EqualValues(t, 9, waiting.DeadLetters[0].Sequence)
}

// A queue that is resumed over an item that failed goes on where its run was, whether
// it awaited the run or, having continued as new, watched it.
func TestResumeOfAHaltedQueueGoesOnAtTheCursor(t *testing.T) {
	t.Parallel()
	for name, watched := range map[string]bool{"awaited": false, "watched": true} {
		t.Run(name, func(t *testing.T) {
			left := contract.ActivityOutput{Worker: "w", Result: job.Result{Cursor: json.RawMessage(`"seven"`)}}
			var cursors []string
			env := newEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
				cursors = append(cursors, string(in.Cursor))
				if len(in.Cursor) == 0 {
					return contract.ActivityOutput{}, temporal.NewNonRetryableApplicationError("bad table", "Bad", nil, left)
				}
				if len(cursors) < 3 { // Without getting any further.
					return contract.ActivityOutput{}, temporal.NewNonRetryableApplicationError("bad table", "Bad", nil)
				}
				return contract.ActivityOutput{}, nil
			})
			env.RegisterActivityWithOptions(func(context.Context, contract.WatchRunInput) error {
				cursors = append(cursors, "watched")
				return temporal.NewNonRetryableApplicationError("it ended", "RunFailed", nil, left)
			}, activity.RegisterOptions{Name: contract.WatchRunActivity})
			halting := queued("a")
			halting.Queued = &job.Queued{Queue: "tables", OnFailure: job.OnFailureHalt}
			item := contract.QueueItem{Sequence: 1, Job: halting}
			state := contract.QueueState{Name: "tables", Accepted: 1, Waiting: []contract.QueueItem{item}}
			if watched {
				state.Waiting, state.Running = nil, &contract.RunningItem{QueueItem: item, RunID: "r1"}
			}
			env.RegisterDelayedCallback(func() {
				halt := queueState(t, env).Halted
				require.JSONEq(t, `"seven"`, string(halt.Item.Cursor))
				require.Equal(t, halt.RunID, halt.Item.RetryOf)
				require.NotEmpty(t, halt.RunID)
			}, 10*time.Second)
			send(t, env, 20*time.Second, contract.MessageResumeQueue, contract.ResumeRequest{})
			send(t, env, 30*time.Second, contract.MessageResumeQueue, contract.ResumeRequest{})
			state = endQueue(t, env, time.Minute, state)
			require.Equal(t, []string{`"seven"`, `"seven"`}, cursors[1:])
			require.EqualValues(t, 2, state.Failed)
			require.EqualValues(t, 1, state.Completed)
		})
	}
}

// An item that is tried again counts with the cursor that it goes on at.
func TestAHaltedItemCountsWithItsCursor(t *testing.T) {
	t.Parallel()
	const length = 5000
	left := contract.ActivityOutput{Worker: "w", Result: job.Result{Cursor: job.EncodeJSON(strings.Repeat("x", length))}}
	tried := 0
	env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		if tried++; tried == 1 {
			return contract.ActivityOutput{}, temporal.NewNonRetryableApplicationError("bad table", "Bad", nil, left)
		}
		return contract.ActivityOutput{}, nil
	})
	halting := queued("a")
	halting.Queued = &job.Queued{Queue: "tables", OnFailure: job.OnFailureHalt}
	var halt *contract.Halt
	env.RegisterDelayedCallback(func() { halt = queueState(t, env).Halted }, 10*time.Second)
	send(t, env, 20*time.Second, contract.MessageResumeQueue, contract.ResumeRequest{})
	state := endQueue(t, env, time.Minute, contract.QueueState{Name: "tables", Accepted: 1, WaitingBytes: 700, Waiting: []contract.QueueItem{
		{Sequence: 1, Job: halting, Bytes: 700},
	}})
	require.Equal(t, 700+length+len(`""`), halt.Item.Bytes)
	require.EqualValues(t, 1, state.Completed)
	require.Zero(t, state.WaitingBytes)
}
