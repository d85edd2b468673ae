package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

func queued(key string) job.Job {
	return newJob(key, job.Trigger{Queued: &job.Queued{Queue: "tables"}})
}

func queueState(t *testing.T, env *testsuite.TestWorkflowEnvironment) contract.QueueState {
	t.Helper()
	value, err := env.QueryWorkflow(contract.QueryState)
	require.NoError(t, err)
	var state contract.QueueState
	require.NoError(t, value.Get(&state))
	return state
}

// endQueue ends an otherwise endless queue with continue-as-new, and gives the
// state that it carries on.
func endQueue(t *testing.T, env *testsuite.TestWorkflowEnvironment, after time.Duration, state contract.QueueState) contract.QueueState {
	t.Helper()
	env.RegisterDelayedCallback(func() {
		env.SetContinueAsNewSuggested(true)
		env.UpdateWorkflow(string(contract.MessageResumeQueue), "end", &answer{t: t}, contract.ResumeRequest{})
	}, after)
	env.ExecuteWorkflow(contract.JobQueueType, state)
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &again)
	var next contract.QueueState
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &next))
	return next
}

func TestJobQueueRunsInOrderOneAtATime(t *testing.T) {
	t.Parallel()
	var order []string
	running := 0
	env := newEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		running++
		defer func() { running-- }()
		require.Equal(t, 1, running)
		order = append(order, strings.TrimPrefix(in.Job.ID, "count_things."))
		if in.Job.ID == "count_things.j3" {
			return contract.ActivityOutput{}, errors.New("bad table")
		}
		return contract.ActivityOutput{}, nil
	})
	var answers []*answer
	env.RegisterDelayedCallback(func() {
		for i := range 6 {
			a := &answer{t: t}
			answers = append(answers, a)
			env.UpdateWorkflow(string(contract.MessageEnqueue), fmt.Sprint(i), a, put(queued(fmt.Sprintf("j%d", i))))
		}
	}, time.Second)
	state := endQueue(t, env, time.Hour, contract.QueueState{Name: "tables"})
	require.Equal(t, []string{"j0", "j1", "j2", "j3", "j3", "j3", "j3", "j4", "j5"}, order, "j3 is retried three times, in its place")
	for i, a := range answers {
		a.requireTaken()
		require.Equal(t, contract.EnqueueReceipt{Sequence: int64(i + 1), Ahead: i}, a.receipt())
	}
	require.EqualValues(t, 5, state.Completed)
	require.EqualValues(t, 1, state.Failed)
	require.Equal(t, "bad table", state.Recent[3].Error)
	require.Zero(t, state.WaitingBytes)
}

func TestJobQueueRefusesWhatDoesNotBelong(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		return contract.ActivityOutput{}, nil
	})
	elsewhere := queued("a")
	elsewhere.Queued = &job.Queued{Queue: "others"}
	broken := queued("b")
	broken.Options.RunTimeout = 0
	cases := map[string]contract.EnqueueRequest{
		"it belongs to queue others":        put(elsewhere),
		"its mode is one-shot":              put(oneShot("c")),
		"run_timeout: PT0S is shorter than": put(broken),
	}
	answers := map[string]*answer{}
	for want, in := range cases {
		answers[want] = send(t, env, time.Duration(len(answers)+1)*time.Second, contract.MessageEnqueue, in)
	}
	absent := send(t, env, 9*time.Second, contract.MessageCancelItem, contract.CancelItemRequest{JobID: "count_things.x"})
	state := endQueue(t, env, time.Minute, contract.QueueState{Name: "tables"})
	for want, a := range answers {
		require.ErrorContains(t, a.rejected, want)
	}
	require.ErrorContains(t, absent.rejected, "job count_things.x is not in queue tables")
	require.Zero(t, state.Accepted)
}

func TestJobQueuePausesCancelsAndKnowsDuplicates(t *testing.T) {
	t.Parallel()
	var ran []string
	env := newEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		ran = append(ran, in.Job.ID)
		return contract.ActivityOutput{}, nil
	})
	send(t, env, 1*time.Second, contract.MessagePauseQueue, contract.PauseRequest{Reason: "by hand"})
	send(t, env, 2*time.Second, contract.MessageEnqueue, put(queued("a")))
	send(t, env, 3*time.Second, contract.MessageEnqueue, put(queued("b")))
	twice := send(t, env, 4*time.Second, contract.MessageEnqueue, put(queued("b")))
	send(t, env, 5*time.Second, contract.MessageCancelItem, contract.CancelItemRequest{JobID: "count_things.a"})
	env.RegisterDelayedCallback(func() {
		state := queueState(t, env)
		require.Len(t, state.Waiting, 1)
		require.Empty(t, ran)
	}, 10*time.Second)
	send(t, env, 11*time.Second, contract.MessageResumeQueue, contract.ResumeRequest{})
	state := endQueue(t, env, time.Minute, contract.QueueState{Name: "tables"})
	require.Equal(t, contract.EnqueueReceipt{Sequence: 2, Ahead: 1, Duplicate: true}, twice.receipt())
	require.Equal(t, []string{"count_things.b"}, ran)
	require.EqualValues(t, 1, state.Canceled)
	require.EqualValues(t, 1, state.Completed)
}

func TestJobQueueTakesSignals(t *testing.T) {
	t.Parallel()
	var ran []string
	env := newEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		ran = append(ran, in.Job.ID)
		return contract.ActivityOutput{}, nil
	})
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(contract.SignalEnqueue, put(queued("a")))
		env.SignalWorkflow(contract.SignalEnqueue, put(oneShot("b")))
	}, time.Second)
	state := endQueue(t, env, time.Minute, contract.QueueState{Name: "tables"})
	require.Equal(t, []string{"count_things.a"}, ran)
	require.EqualValues(t, 1, state.Failed, "a signal that is refused leaves a record")
	require.Contains(t, state.Recent[0].Error, "its mode is one-shot")
}

func TestJobQueueAnswersARepeatedRequestWithItsItem(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		return contract.ActivityOutput{}, errors.New(strings.Repeat("long ", 100_000))
	})
	j := queued("a")
	j.Options.MaxRetryCount = 0
	in := contract.EnqueueRequest{Items: []contract.EnqueueItem{{Job: j, AllowRerun: true}}, RequestID: "r1"}
	first := send(t, env, time.Second, contract.MessageEnqueue, in)
	again := send(t, env, time.Minute, contract.MessageEnqueue, in)
	state := endQueue(t, env, time.Hour, contract.QueueState{Name: "tables"})
	require.Equal(t, contract.EnqueueReceipt{Sequence: 1}, first.receipt())
	require.Equal(t, contract.EnqueueReceipt{Sequence: 1}, again.receipt())
	require.EqualValues(t, 1, state.Accepted, "a request whose answer was lost is not done twice")
	require.LessOrEqual(t, len(state.Recent[0].Error), 500)
}

func TestJobQueueKeepsARunningItemWhoseCancelMeansWaitingOnly(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, func(ctx context.Context, _ contract.ActivityInput) (contract.ActivityOutput, error) {
		return contract.ActivityOutput{}, nil
	})
	running := contract.RunningItem{QueueItem: contract.QueueItem{Sequence: 1, Job: queued("a")}, RunID: "r"}
	env.RegisterActivityWithOptions(func(context.Context, contract.WatchRunInput) error { return nil },
		activity.RegisterOptions{Name: contract.WatchRunActivity})
	refused := send(t, env, 0, contract.MessageCancelItem, contract.CancelItemRequest{JobID: "count_things.a", WaitingOnly: true})
	state := endQueue(t, env, time.Minute, contract.QueueState{Name: "tables", Accepted: 1, Running: &running})
	require.ErrorContains(t, refused.rejected, "runs now in queue tables")
	require.EqualValues(t, 1, state.Completed, "what an earlier run of the queue started is awaited")
}

func TestJobQueueKeepsAnItemWhoseCancelMeansAnother(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		return contract.ActivityOutput{}, nil
	})
	paused := contract.QueueState{
		Name: "tables", Accepted: 2, Paused: true, Waiting: []contract.QueueItem{{Sequence: 2, Job: queued("a")}},
	}
	other := send(t, env, time.Second, contract.MessageCancelItem, contract.CancelItemRequest{JobID: "count_things.a", ExpectedSequence: 1})
	this := send(t, env, 2*time.Second, contract.MessageCancelItem, contract.CancelItemRequest{JobID: "count_things.a", ExpectedSequence: 2})
	state := endQueue(t, env, time.Minute, paused)
	require.ErrorContains(t, other.rejected, "is not in queue tables")
	require.NoError(t, this.rejected)
	require.EqualValues(t, 1, state.Canceled)
}

func TestJobQueueRefusesMoreThanItsStateMayHold(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		return contract.ActivityOutput{}, nil
	})
	paused := contract.QueueState{
		Name: "tables", Paused: true, PauseReason: "by test", PageSize: contract.PageSize{Items: 1000, Bytes: contract.MaxQueueBytes},
	}
	const items = 500
	for i := range items {
		j := queued(fmt.Sprintf("a-key-of-usual-length-%d", i))
		j.Spec = []byte(`{"bucket":"uploads","key":"stations/ridge/2026/11/21/photo.jpg","prefix":"photos/ridge"}`)
		j.Options.Owner = job.Owner{Organization: "an-organization"}
		send(t, env, time.Minute+time.Duration(i)*time.Millisecond, contract.MessageEnqueue,
			contract.EnqueueRequest{Items: []contract.EnqueueItem{{Job: j}}, RequestID: fmt.Sprintf("01m7yfsqzdzyabs0c49b%06d", i)})
	}
	state := endQueue(t, env, time.Hour, paused)
	require.Len(t, state.Waiting, items)
	text, err := json.Marshal(state)
	require.NoError(t, err)
	perItem := len(text) / items
	t.Logf("%d bytes an item, counted as %d", perItem, state.WaitingBytes/items)
	require.Less(t, contract.MaxQueueBytes/(state.WaitingBytes/items)*perItem, 3*contract.MaxQueueBytes/2,
		"a full queue is the input of continue-as-new, which stays below 2 MiB")

	full := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		return contract.ActivityOutput{}, nil
	})
	paused.WaitingBytes = contract.MaxQueueBytes - 100
	refused := send(t, full, time.Minute, contract.MessageEnqueue, put(queued("a")))
	endQueue(t, full, time.Hour, paused)
	require.ErrorContains(t, refused.rejected, "queue tables is full")
}

// A recovered queue first takes in the signals that it had not read.
func TestJobQueueTakesInUnreadSignals(t *testing.T) {
	t.Parallel()
	var ran []string
	env := newEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		ran = append(ran, strings.TrimPrefix(in.Job.ID, "count_things."))
		return contract.ActivityOutput{}, nil
	})
	state := endQueue(t, env, time.Hour, contract.QueueState{
		Name: "tables", Accepted: 1, Waiting: []contract.QueueItem{{Sequence: 1, Job: queued("known")}},
		UnreadSignals: []contract.EnqueueRequest{put(queued("a")), put(queued("known")), put(oneShot("refused")), put(queued("b"))},
	})
	require.Equal(t, []string{"known", "a", "b"}, ran)
	require.EqualValues(t, 3, state.Accepted)
	require.EqualValues(t, 3, state.Completed)
	require.EqualValues(t, 1, state.Failed, "what the queue would refuse is refused")
	require.Empty(t, state.UnreadSignals)
}
