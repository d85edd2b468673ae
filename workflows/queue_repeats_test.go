package workflows_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
)

// smallPages is a paused queue with pages of five items.
func smallPages() contract.QueueState {
	return contract.QueueState{Name: "tables", Paused: true, PageSize: contract.PageSize{Items: 5, Bytes: 48 << 10}}
}

// keysOf are n keys.
func keysOf(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("j%02d", i)
	}
	return keys
}

// A repeat of an item that waits in a page is accepted, and skipped at its turn. So is
// the second copy of a request whose answer was lost, long after the queue has
// forgotten the request, even if the run of the first failed or may be repeated.
func TestRepeatsOfItemsInPagesRunOnce(t *testing.T) {
	t.Parallel()
	var ran []string
	env, _ := pagedEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		ran = append(ran, in.Job.ID[len("count_things."):])
		if in.Job.ID == "count_things.j20" {
			return contract.ActivityOutput{}, temporal.NewNonRetryableApplicationError("bad table", "Bad", nil)
		}
		return contract.ActivityOutput{}, nil
	})
	keys := keysOf(30)
	first := batchOf(keys...)
	for i := range first.Items {
		first.Items[i].AllowRerun = true
	}
	first.RequestID = "first"
	send(t, env, time.Second, contract.MessageEnqueue, first)
	for n := range 40 { // More requests than the queue remembers.
		other := batchOf(fmt.Sprintf("other%02d", n))
		other.RequestID = fmt.Sprint("other", n)
		send(t, env, time.Duration(2+n)*time.Second, contract.MessageEnqueue, other)
	}
	repeat := send(t, env, time.Minute, contract.MessageEnqueue, first)
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(contract.SignalEnqueue, put(queued("j21")))
	}, 61*time.Second)
	send(t, env, 2*time.Minute, contract.MessageResumeQueue, contract.ResumeRequest{})
	state := endQueue(t, env, time.Hour, smallPages())
	repeat.requireTaken()
	want := keys
	for n := range 40 {
		want = append(want, fmt.Sprintf("other%02d", n))
	}
	require.Equal(t, want, ran)
	require.EqualValues(t, 1, state.Failed)
	require.EqualValues(t, 69, state.Completed)
	require.EqualValues(t, 26, state.Skipped, "the head of five is known at once")
	require.Zero(t, state.WaitingBytes)
}

// What was put in after the run of the first has started is new, and so is other work.
func TestWhatIsNoRepeatRuns(t *testing.T) {
	t.Parallel()
	var ran []string
	env, _ := pagedEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		ran = append(ran, in.Job.ID[len("count_things."):]+string(in.Job.Spec))
		return contract.ActivityOutput{}, nil
	})
	again := func(spec string, keys ...string) contract.EnqueueRequest {
		in := batchOf(keys...)
		for i := range in.Items {
			in.Items[i].AllowRerun, in.Items[i].Job.Spec = true, []byte(spec)
		}
		return in
	}
	send(t, env, time.Second, contract.MessageEnqueue, again(`{}`, keysOf(12)...))
	send(t, env, 2*time.Second, contract.MessageEnqueue, again(`{"other":true}`, "j08"))
	send(t, env, 3*time.Second, contract.MessageResumeQueue, contract.ResumeRequest{})
	send(t, env, time.Minute, contract.MessagePauseQueue, contract.PauseRequest{})
	send(t, env, 2*time.Minute, contract.MessageEnqueue, again(`{}`, keysOf(12)...))
	send(t, env, 3*time.Minute, contract.MessageResumeQueue, contract.ResumeRequest{})
	state := endQueue(t, env, time.Hour, smallPages())
	var want []string
	for _, key := range keysOf(12) {
		want = append(want, key+`{}`)
	}
	require.Equal(t, slices.Concat(want, []string{`j08{"other":true}`}, want), ran)
	require.Zero(t, state.Skipped)
}

// A copy that is read while the first copy runs is a repeat all the same.
func TestFirstCopyRunsWhileThePageIsRead(t *testing.T) {
	t.Parallel()
	runs := map[string]int{}
	env, _ := pagedEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		runs[in.Job.ID]++
		return contract.ActivityOutput{}, temporal.NewNonRetryableApplicationError("bad table", "Bad", nil)
	})
	send(t, env, time.Second, contract.MessageEnqueue, batchOf(keysOf(12)...))
	send(t, env, 2*time.Second, contract.MessageEnqueue, batchOf("j05", "j06", "j07", "j08", "j09"))
	send(t, env, time.Minute, contract.MessageResumeQueue, contract.ResumeRequest{})
	state := endQueue(t, env, time.Hour, smallPages())
	for id, n := range runs {
		require.Equal(t, 1, n, id)
	}
	require.EqualValues(t, 5, state.Skipped)
	require.EqualValues(t, 12, state.Failed)
}

// Who cancels a job means all its items.
func TestCancelTakesRepeatsAway(t *testing.T) {
	t.Parallel()
	var ran []string
	env, _ := pagedEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		ran = append(ran, in.Job.ID[len("count_things."):])
		return contract.ActivityOutput{}, nil
	})
	send(t, env, time.Second, contract.MessageEnqueue, batchOf(keysOf(12)...))
	send(t, env, 2*time.Second, contract.MessageEnqueue, batchOf("j06", "j07", "j08", "j09", "x", "j06"))
	absent := send(t, env, 3*time.Second, contract.MessageCancelItem, contract.CancelItemRequest{JobID: "count_things.j06", Sequences: []int64{99}})
	one := send(t, env, 4*time.Second, contract.MessageCancelItem, contract.CancelItemRequest{JobID: "count_things.j07", ExpectedSequence: 8})
	all := send(t, env, 5*time.Second, contract.MessageCancelItem, contract.CancelItemRequest{JobID: "count_things.j06", Sequences: []int64{7, 13}})
	send(t, env, time.Minute, contract.MessageResumeQueue, contract.ResumeRequest{})
	state := endQueue(t, env, time.Hour, smallPages())
	require.ErrorContains(t, absent.rejected, "is not in queue tables")
	one.requireTaken()
	all.requireTaken()
	require.Equal(t, []string{"j00", "j01", "j02", "j03", "j04", "j05", "j08", "j09", "j10", "j11", "j07", "x"}, ran,
		"the other copy of j07 runs at its own place")
	require.EqualValues(t, 3, state.Canceled)
}

// modelItem is an item of the model of a queue.
type modelItem struct {
	sequence int64
	key      string
}

// TestDeepQueueAgainstAModel does random things to a queue with small pages, and
// compares what ran with a plain list: of the items of a job that wait at the same time,
// the first runs, once, at its place.
func TestDeepQueueAgainstAModel(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	var ran []string
	env, _ := pagedEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		ran = append(ran, in.Job.ID[len("count_things."):])
		return contract.ActivityOutput{}, nil
	})
	var model []modelItem
	accepted := int64(0)
	keep := func(which func(modelItem) bool) {
		model = slices.DeleteFunc(model, func(item modelItem) bool { return !which(item) })
	}
	for step := range 120 {
		at := time.Duration(step+1) * time.Second
		key := fmt.Sprintf("k%02d", random.IntN(60))
		env.RegisterDelayedCallback(func() {
			state := queueState(t, env)
			known := slices.Concat(state.Waiting, state.Tail)
			inPages := slices.DeleteFunc(slices.Clone(model), func(item modelItem) bool {
				return item.key != key || !state.Overflow.Waits(item.sequence)
			})
			a := &answer{t: t}
			send := func(message string, in any) { env.UpdateWorkflow(message, fmt.Sprint(message, step), a, in) }
			id := job.ID(testType, key)
			switch random.IntN(8) {
			default:
				if !slices.ContainsFunc(known, func(item contract.QueueItem) bool { return item.Job.ID == id }) {
					accepted++
					model = append(model, modelItem{accepted, key})
				}
				send(string(contract.MessageEnqueue), batchOf(key))
			case 0:
				var numbers []int64
				for _, item := range inPages {
					numbers = append(numbers, item.sequence)
				}
				send(string(contract.MessageCancelItem), contract.CancelItemRequest{JobID: id, Sequences: numbers})
				keep(func(item modelItem) bool { return item.key != key })
			case 1:
				i := slices.IndexFunc(model, func(item modelItem) bool { return item.key == key })
				if i < 0 {
					return
				}
				moved := model[i]
				in := contract.MoveItemRequest{JobID: id}
				if len(inPages) > 0 {
					in.Item = &contract.QueueItem{Sequence: moved.sequence, Job: queued(key)}
				}
				send(string(contract.MessageMoveItem), in)
				model = slices.Concat([]modelItem{moved}, slices.Delete(slices.Clone(model), i, i+1))
			case 2:
				from := random.Int64N(accepted + 1)
				send(string(contract.MessagePurge), contract.PurgeRequest{From: from, To: from + 2})
				keep(func(item modelItem) bool { return item.sequence < from || item.sequence > from+2 })
			}
		}, at)
	}
	env.RegisterDelayedCallback(func() {
		state := queueState(t, env)
		t.Logf("%d items wait, %d of them in %d pages", state.Depth(), state.Overflow.Count(), len(state.Overflow.Pages))
		require.LessOrEqual(t, state.Depth(), len(model), "the head may have dropped repeats already")
	}, 3*time.Minute)
	send(t, env, 4*time.Minute, contract.MessageResumeQueue, contract.ResumeRequest{})
	state := endQueue(t, env, time.Hour, smallPages())
	var want []string
	for _, item := range model {
		if !slices.Contains(want, item.key) {
			want = append(want, item.key)
		}
	}
	require.Equal(t, want, ran)
	require.Zero(t, state.Depth())
	require.Zero(t, state.WaitingBytes)
}

// A request that is asked for again is answered as at first, although the items that it
// found in the queue have ended. A signal of which items were refused is not taken again,
// and not answered as if all of it had been put in.
func TestRequestIsAnsweredAsAtFirst(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, succeed)
	again := func(at time.Duration, in contract.EnqueueRequest) *answer {
		return send(t, env, at, contract.MessageEnqueue, in)
	}
	known := batchOf("a", "b", "a", "c")
	known.RequestID = "known"
	again(time.Second, batchOf("a"))
	first := again(2*time.Second, known)
	other := queued("b")
	other.Spec = []byte(`{"other":true}`)
	refused := contract.EnqueueRequest{RequestID: "refused", Items: []contract.EnqueueItem{{Job: other}, {Job: queued("d")}}}
	signal := func() { env.SignalWorkflow(contract.SignalEnqueue, refused) }
	env.RegisterDelayedCallback(signal, 3*time.Second)
	signaled := again(4*time.Second, refused)
	send(t, env, time.Minute, contract.MessageResumeQueue, contract.ResumeRequest{})
	env.RegisterDelayedCallback(signal, 2*time.Minute)
	later := again(3*time.Minute, refused) // Its first item would be taken by now.
	second := again(4*time.Minute, known)
	state := endQueue(t, env, time.Hour, contract.QueueState{Name: "tables", Paused: true})
	require.Equal(t, contract.EnqueueReceipts{Receipts: []contract.EnqueueReceipt{
		{Sequence: 1, Duplicate: true}, {Sequence: 2, Ahead: 1}, {Sequence: 1, Duplicate: true}, {Sequence: 3, Ahead: 2},
	}}, first.value)
	require.Equal(t, contract.EnqueueReceipts{Receipts: []contract.EnqueueReceipt{
		{Sequence: 1, Duplicate: true}, {Sequence: 2}, {Sequence: 1, Duplicate: true}, {Sequence: 3},
	}}, second.value, "with the same numbers, and nothing ahead of them")
	for _, a := range []*answer{signaled, later} {
		require.ErrorContains(t, a.rejected, "queue tables took request refused by a signal and refused 1 of its items")
	}
	require.EqualValues(t, 4, state.Accepted)
	require.EqualValues(t, 4, state.Completed)
	require.EqualValues(t, 1, state.Failed, "it is refused once")
}
