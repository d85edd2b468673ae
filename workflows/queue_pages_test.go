package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
)

// overflowPages are the overflow pages that a queue has started, by workflow id.
type overflowPages struct {
	sync.Mutex
	byID map[string]contract.QueuePage
	// latest are the latest runs, by job.
	latest map[string]startedRun
}

// startedRun is what the memo of a run has.
type startedRun struct {
	contract.ItemOfRun
	job job.Job
}

// pagedEnvironment runs queues with pages, and gives these as they are started.
func pagedEnvironment(t *testing.T, handle handler) (*testsuite.TestWorkflowEnvironment, *overflowPages) {
	t.Helper()
	pages := &overflowPages{byID: map[string]contract.QueuePage{}, latest: map[string]startedRun{}}
	env := newEnvironment(t, handle)
	env.SetOnChildWorkflowStartedListener(func(info *workflow.Info, _ workflow.Context, args converter.EncodedValues) {
		if info.WorkflowType.Name == contract.RunJobType {
			var in contract.RunInput
			require.NoError(t, args.Get(&in))
			state := queueState(t, env) // The environment keeps no memos.
			pages.Lock()
			defer pages.Unlock()
			pages.latest[in.Job.ID] = startedRun{contract.ItemOfRun{Instance: state.Instance, Accepted: state.Accepted}, in.Job}
			return
		}
		var page contract.QueuePage
		require.NoError(t, args.Get(&page))
		pages.Lock()
		defer pages.Unlock()
		pages.byID[info.WorkflowExecution.ID] = page
	})
	env.RegisterActivityWithOptions(func(_ context.Context, in contract.ReadPageInput) (contract.ReadPageOutput, error) {
		id := contract.QueuePageWorkflowID(in.Queue, in.Instance, in.Page)
		pages.Lock()
		defer pages.Unlock()
		page, ok := pages.byID[id]
		if !ok {
			return contract.ReadPageOutput{}, temporal.NewNonRetryableApplicationError("no page "+id, "PageNotFound", nil)
		}
		out := contract.ReadPageOutput{Items: page.Items}
		for _, item := range page.Items {
			if run := pages.latest[item.Job.ID]; contract.IsRepeat(item, in.Instance, run.ItemOfRun, run.job) {
				out.Ran = append(out.Ran, item.Sequence)
			}
		}
		return out, nil
	}, activity.RegisterOptions{Name: contract.ReadPageActivity})
	return env, pages
}

// remove forgets the page with a number.
func (p *overflowPages) remove(first int64) (removed int) {
	p.Lock()
	defer p.Unlock()
	for id, page := range p.byID {
		if page.First == first {
			delete(p.byID, id)
			removed++
		}
	}
	return removed
}

func succeed(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
	return contract.ActivityOutput{}, nil
}

func batchOf(keys ...string) contract.EnqueueRequest {
	var in contract.EnqueueRequest
	for _, key := range keys {
		in.Items = append(in.Items, contract.EnqueueItem{Job: queued(key)})
	}
	return in
}

func TestBatchIsTakenWholeAndInOrder(t *testing.T) {
	t.Parallel()
	var ran []string
	env := newEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		ran = append(ran, in.Job.ID)
		return contract.ActivityOutput{}, nil
	})
	paused := contract.QueueState{Name: "tables", Paused: true, PageSize: contract.DefaultPageSize()}
	in := batchOf("a", "b", "a", "c")
	in.RequestID = "r1"
	first := send(t, env, time.Second, contract.MessageEnqueue, in)
	again := send(t, env, 2*time.Second, contract.MessageEnqueue, in)
	foreign := batchOf("d", "e")
	foreign.Items[1].Job.Queued = &job.Queued{Queue: "others"}
	refused := send(t, env, 3*time.Second, contract.MessageEnqueue, foreign)
	other := batchOf("b")
	other.Items[0].Job.Spec = []byte(`{"other": true}`)
	conflict := send(t, env, 4*time.Second, contract.MessageEnqueue, other)
	tooMany := contract.EnqueueRequest{Items: make([]contract.EnqueueItem, contract.MaxBatchItems+1)}
	big := send(t, env, 5*time.Second, contract.MessageEnqueue, tooMany)
	send(t, env, 6*time.Second, contract.MessageResumeQueue, contract.ResumeRequest{})
	state := endQueue(t, env, time.Hour, paused)
	want := contract.EnqueueReceipts{Receipts: []contract.EnqueueReceipt{
		{Sequence: 1}, {Sequence: 2, Ahead: 1}, {Sequence: 1, Duplicate: true}, {Sequence: 3, Ahead: 2},
	}}
	require.Equal(t, want, first.value)
	require.Equal(t, want, again.value, "a request whose answer was lost is not done twice")
	require.ErrorContains(t, refused.rejected, "it belongs to queue others")
	require.ErrorContains(t, conflict.rejected, "it waits in it with another spec")
	require.ErrorContains(t, big.rejected, "1 to 100 may be put in at once")
	require.Equal(t, []string{"count_things.a", "count_things.b", "count_things.c"}, ran, "nothing of a refused batch is in")
	require.EqualValues(t, 3, state.Accepted)
}

func TestFailureHaltsTheQueueIfItsJobOrTheQueueSaysSo(t *testing.T) {
	t.Parallel()
	var ran []string
	healed := false
	env := newEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		ran = append(ran, in.Job.ID[len("count_things."):])
		if in.Job.ID == "count_things.good" || healed {
			return contract.ActivityOutput{}, nil
		}
		return contract.ActivityOutput{}, temporal.NewNonRetryableApplicationError("bad table", "Bad", nil)
	})
	halting := queued("halting")
	halting.Queued = &job.Queued{Queue: "tables", OnFailure: job.OnFailureHalt}
	going := queued("going")
	going.Queued = &job.Queued{Queue: "tables", OnFailure: job.OnFailureContinue}
	send(t, env, time.Second, contract.MessageEnqueue, contract.EnqueueRequest{Items: []contract.EnqueueItem{
		{Job: queued("by-queue")}, {Job: going}, {Job: halting}, {Job: queued("good")},
	}})
	early := send(t, env, time.Millisecond, contract.MessageSkip, contract.SkipRequest{})
	env.RegisterDelayedCallback(func() {
		state := queueState(t, env)
		require.Equal(t, []string{"by-queue", "going", "halting"}, ran)
		require.Equal(t, "job count_things.halting failed: bad table", state.Halted.Reason())
		require.Len(t, state.DeadLetters, 2)
		require.EqualValues(t, 1, state.Depth())
	}, 2*time.Minute)
	again := send(t, env, 150*time.Second, contract.MessageEnqueue, put(halting))
	canceled := send(t, env, 150*time.Second, contract.MessageCancelItem, contract.CancelItemRequest{JobID: halting.ID})
	send(t, env, 3*time.Minute, contract.MessageResumeQueue, contract.ResumeRequest{})
	env.RegisterDelayedCallback(func() {
		require.Equal(t, []string{"by-queue", "going", "halting", "halting"}, ran, "resume tries it again")
	}, 4*time.Minute)
	send(t, env, 5*time.Minute, contract.MessageSkip, contract.SkipRequest{})
	send(t, env, 6*time.Minute, contract.MessageSetQueue, contract.SetQueueRequest{OnFailure: job.OnFailureHalt})
	send(t, env, 7*time.Minute, contract.MessageEnqueue, batchOf("by-queue-2"))
	env.RegisterDelayedCallback(func() {
		require.NotNil(t, queueState(t, env).Halted, "the queue's own policy")
		healed = true
	}, 8*time.Minute)
	send(t, env, 9*time.Minute, contract.MessageResumeQueue, contract.ResumeRequest{})
	retry := batchOf("going")
	retry.Items[0].DeadLetter = 2
	send(t, env, 10*time.Minute, contract.MessageEnqueue, retry)
	twice := send(t, env, 11*time.Minute, contract.MessageEnqueue, retry)
	dropped := send(t, env, 12*time.Minute, contract.MessageDropDead, contract.DropDeadRequest{Sequences: []int64{1, 99}})
	state := endQueue(t, env, time.Hour, contract.QueueState{Name: "tables"})
	require.ErrorContains(t, early.rejected, "queue tables is not halted")
	require.Equal(t, contract.EnqueueReceipt{Sequence: 3, Duplicate: true}, again.value.(contract.EnqueueReceipts).Receipts[0])
	require.ErrorContains(t, canceled.rejected, "queue tables is halted over it: skip or resume the queue")
	require.ErrorContains(t, twice.rejected, "has no dead letter 2")
	require.Equal(t, contract.DropDeadReceipt{Dropped: 1}, dropped.value)
	require.Len(t, state.DeadLetters, 1)
	require.Equal(t, "count_things.halting", state.DeadLetters[0].JobID)
	require.Nil(t, state.Halted)
	require.EqualValues(t, 3, state.Completed)
}

func TestDeadLettersAreBounded(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		return contract.ActivityOutput{}, temporal.NewNonRetryableApplicationError("bad table", "Bad", nil)
	})
	for batch := range 3 {
		var keys []string
		for i := range 50 {
			keys = append(keys, fmt.Sprintf("j%d-%d", batch, i))
		}
		send(t, env, time.Duration(batch+1)*time.Minute, contract.MessageEnqueue, batchOf(keys...))
	}
	state := endQueue(t, env, time.Hour, contract.QueueState{Name: "tables"})
	require.Len(t, state.DeadLetters, 100)
	require.EqualValues(t, 50, state.DeadDropped)
	require.EqualValues(t, 51, state.DeadLetters[0].Sequence, "the oldest made room")
	require.EqualValues(t, 150, state.Pace.LastHour(state.Recent[len(state.Recent)-1].Ended))
}

func TestHaltedQueueIsDrainedOnAfterResume(t *testing.T) {
	t.Parallel()
	failed := false
	env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		if !failed {
			failed = true
			return contract.ActivityOutput{}, temporal.NewNonRetryableApplicationError("bad table", "Bad", nil)
		}
		return contract.ActivityOutput{}, nil
	})
	send(t, env, time.Second, contract.MessageSetQueue, contract.SetQueueRequest{OnFailure: job.OnFailureHalt})
	send(t, env, 2*time.Second, contract.MessageEnqueue, batchOf("a", "b"))
	send(t, env, time.Minute, contract.MessageDrainQueue, contract.DrainRequest{})
	send(t, env, 2*time.Minute, contract.MessageResumeQueue, contract.ResumeRequest{})
	refused := send(t, env, 3*time.Minute, contract.MessageEnqueue, batchOf("c"))
	send(t, env, 4*time.Minute, contract.MessageResumeQueue, contract.ResumeRequest{})
	taken := send(t, env, 5*time.Minute, contract.MessageEnqueue, batchOf("c"))
	state := endQueue(t, env, time.Hour, contract.QueueState{Name: "tables"})
	require.ErrorContains(t, refused.rejected, "queue tables is being drained")
	taken.requireTaken()
	require.EqualValues(t, 3, state.Completed)
}

// TestFullStateOfADeepQueueStaysSmall fills everything that the state of a queue
// may hold at a depth of 100,000 items of usual size.
func TestFullStateOfADeepQueueStaysSmall(t *testing.T) {
	t.Parallel()
	paging := contract.DefaultPageSize()
	state := contract.QueueState{Name: "tables", PageSize: paging}
	at := time.Date(2026, 11, 21, 9, 30, 15, 123456789, time.UTC)
	item := func(n int) contract.QueueItem {
		j := queued(fmt.Sprintf("a-key-of-usual-length-%06d", n))
		j.Spec = []byte(`{"bucket":"uploads","key":"stations/ridge/2026/11/21/photo.jpg","prefix":"photos/ridge"}`)
		j.Options.Owner = job.Owner{Organization: "an-organization"}
		return contract.QueueItem{Sequence: int64(n), Job: j, Accepted: at, RequestID: "01m7yfsqzdzyabs0c49b000000"}
	}
	perPage := paging.Bytes / (contract.EnqueueItem{Job: item(1).Job}).Size()
	for n := range perPage + perPage/4 {
		state.Waiting = append(state.Waiting, item(n))
	}
	for n := range perPage {
		state.Tail = append(state.Tail, item(100_000+n))
	}
	for n := 0; n < 100_000; n += perPage {
		state.Overflow.Pages = append(state.Overflow.Pages, int64(100_000+n))
	}
	for n := range 100 {
		state.Overflow.Removed = append(state.Overflow.Removed, contract.Range{int64(100_000 + 9*n), int64(100_000 + 9*n)})
		state.DeadLetters = append(state.DeadLetters, contract.DeadLetter{
			Sequence: int64(n), JobID: item(n).Job.ID, Ended: at, RunID: "01a1fcfc-e2fb-79f2-8653-c5bbdd97e30f",
			Error:          "photo uploads/missing.jpg: object uploads/missing.jpg does not exist on 127.0.0.1:9000",
			DefinitionHash: "0123456789abcdef",
		})
	}
	text, err := json.Marshal(state)
	require.NoError(t, err)
	t.Logf("%d pages of %d items: %d KiB", len(state.Overflow.Pages), perPage, len(text)>>10)
	require.Less(t, len(text), 256<<10, "what Temporal takes without a warning")
}

func TestDrainRefusesNewItems(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, succeed)
	send(t, env, 2*time.Second, contract.MessageEnqueue, batchOf("a", "b"))
	send(t, env, 3*time.Second, contract.MessageDrainQueue, contract.DrainRequest{})
	refused := send(t, env, 4*time.Second, contract.MessageEnqueue, put(queued("c")))
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(contract.SignalEnqueue, put(queued("d")))
	}, 5*time.Second)
	state := endQueue(t, env, time.Hour, contract.QueueState{Name: "tables"})
	require.ErrorContains(t, refused.rejected, "queue tables is being drained")
	require.EqualValues(t, 1, state.Failed, "a signal that is refused leaves a record")
	require.EqualValues(t, 2, state.Completed)
}

// TestDeepQueueRunsItsPagesInOrder puts random batches into a queue with
// small pages, while items are canceled, moved and purged, and compares what ran
// with a plain list to which the same was done.
func TestDeepQueueRunsItsPagesInOrder(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	var ran []string
	env, pages := pagedEnvironment(t, func(_ context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
		ran = append(ran, in.Job.ID)
		return contract.ActivityOutput{}, nil
	})
	const items = 300
	at := time.Second
	sequences := map[string]int64{}
	var model []string
	for next := 0; next < items; {
		var keys []string
		for range 1 + random.IntN(12) {
			key := fmt.Sprintf("j%03d", next)
			next++
			keys = append(keys, key)
			model = append(model, "count_things."+key)
			sequences["count_things."+key] = int64(next)
		}
		a := send(t, env, at, contract.MessageEnqueue, batchOf(keys...))
		at += time.Second
		want := len(model) - len(keys)
		env.RegisterDelayedCallback(func() {
			a.requireTaken()
			require.Equal(t, want, a.value.(contract.EnqueueReceipts).Receipts[0].Ahead)
		}, at)
	}
	removeID := func(id string) {
		kept := model[:0]
		for _, other := range model {
			if other != id {
				kept = append(kept, other)
			}
		}
		model = kept
	}
	for range 40 {
		id := model[random.IntN(len(model))]
		sequence := sequences[id]
		switch random.IntN(3) {
		case 0:
			send(t, env, at, contract.MessageCancelItem, contract.CancelItemRequest{JobID: id, Sequences: []int64{sequence}})
			removeID(id)
		case 1:
			key := id[len("count_things."):]
			send(t, env, at, contract.MessageMoveItem, contract.MoveItemRequest{JobID: id,
				Item: &contract.QueueItem{Sequence: sequence, Job: queued(key)}})
			removeID(id)
			model = append([]string{id}, model...)
		default:
			to := sequence + int64(random.IntN(4))
			removed := send(t, env, at, contract.MessagePurge, contract.PurgeRequest{From: sequence, To: to})
			before := len(model)
			for other, number := range sequences {
				if number >= sequence && number <= to {
					removeID(other)
				}
			}
			want := before - len(model)
			env.RegisterDelayedCallback(func() {
				require.Equal(t, contract.PurgeReceipt{Removed: want}, removed.value)
			}, at+time.Millisecond)
		}
		at += time.Second
		want := len(model)
		env.RegisterDelayedCallback(func() {
			state := queueState(t, env)
			require.Equal(t, want, state.Depth())
			require.NotEmpty(t, state.Overflow.Pages)
		}, at)
	}
	send(t, env, at+time.Second, contract.MessageResumeQueue, contract.ResumeRequest{})
	state := endQueue(t, env, time.Hour, contract.QueueState{Name: "tables", Paused: true, PageSize: contract.PageSize{Items: 5, Bytes: 48 << 10}})
	require.Equal(t, model, ran)
	require.Zero(t, state.Depth())
	require.Zero(t, state.WaitingBytes)
	require.Empty(t, state.Overflow.Pages)
	require.Empty(t, state.Overflow.Released, "no page is left to be ended")
	require.Empty(t, state.Overflow.Removed)
	t.Logf("%d pages", len(pages.byID))
}

func TestQueueHaltsOverAMissingPage(t *testing.T) {
	t.Parallel()
	var ran int
	env, pages := pagedEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		ran++
		return contract.ActivityOutput{}, nil
	})
	var keys []string
	for i := range 23 {
		keys = append(keys, fmt.Sprintf("j%02d", i))
	}
	send(t, env, time.Second, contract.MessageEnqueue, batchOf(keys...))
	env.RegisterDelayedCallback(func() { require.Equal(t, 1, pages.remove(11)) }, time.Minute)
	send(t, env, 2*time.Minute, contract.MessageResumeQueue, contract.ResumeRequest{})
	env.RegisterDelayedCallback(func() {
		state := queueState(t, env)
		require.NotNil(t, state.Halted)
		require.EqualValues(t, 11, state.Halted.Page)
		require.Equal(t, 5, state.Halted.Items)
		require.Contains(t, state.Halted.Error, "no page ")
	}, 10*time.Minute)
	send(t, env, 11*time.Minute, contract.MessageResumeQueue, contract.ResumeRequest{})
	env.RegisterDelayedCallback(func() { require.NotNil(t, queueState(t, env).Halted, "it is still missing") }, 20*time.Minute)
	send(t, env, 21*time.Minute, contract.MessageSkip, contract.SkipRequest{})
	state := endQueue(t, env, time.Hour, contract.QueueState{Name: "tables", Paused: true, PageSize: contract.PageSize{Items: 5, Bytes: 48 << 10}})
	require.EqualValues(t, 5, state.Lost)
	require.EqualValues(t, 18, state.Completed)
	require.Equal(t, 18, ran)
	require.Zero(t, state.Depth())
}
