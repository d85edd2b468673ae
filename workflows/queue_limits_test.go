package workflows_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// mostInput is what Temporal takes as the input of a workflow; a queue whose state is
// more than that is terminated when it continues as new.
const mostInput = 2 << 20

func stored(t *testing.T, state contract.QueueState) int {
	t.Helper()
	text, err := json.Marshal(state)
	require.NoError(t, err)
	return len(text)
}

// Texts full of escapes, and tags of services, count with what they are stored with.
func TestQueueCountsItemsAsTheyAreStored(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, succeed)
	const signaled = 500
	env.RegisterDelayedCallback(func() {
		for i := range signaled {
			j := queued(fmt.Sprint(i))
			j.Options.Description = strings.Repeat("<", job.MaxDescriptionBytes)
			env.SignalWorkflow(contract.SignalEnqueue, put(j))
		}
	}, time.Second)
	state := endQueue(t, env, time.Minute, contract.QueueState{
		Name: "tables", Paused: true, PageSize: contract.PageSize{Items: 1000, Bytes: contract.MaxQueueBytes},
	})
	require.Less(t, stored(t, state), mostInput)
	require.Less(t, state.Accepted, int64(signaled), "the queue says that it is full")
	require.Equal(t, state.Accepted, signaled-state.Failed)
	require.Contains(t, state.Recent[0].Error, "queue tables is full")
	require.Greater(t, state.Accepted, int64(contract.MaxQueueBytes/mostInput*signaled))

	usual := contract.EnqueueItem{Job: queued("a")}
	bound := usual
	bound.Job.Options.Bind = map[string]string{}
	for i := range 32 {
		bound.Job.Options.Bind[fmt.Sprint("tag", i)] = strings.Repeat("v", 128)
	}
	require.Greater(t, bound.Size(), usual.Size()+32*128)
	sent, err := json.Marshal(bound)
	require.NoError(t, err)
	require.GreaterOrEqual(t, bound.Size(), len(sent))
}

// What is not an item is part of the state too.
func TestQueueBoundsTheTextsOfMessages(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, succeed)
	long := strings.Repeat("x", 1<<20)
	send(t, env, time.Second, contract.MessagePauseQueue, contract.PauseRequest{Reason: long})
	requested := send(t, env, 2*time.Second, contract.MessageEnqueue, contract.EnqueueRequest{Items: []contract.EnqueueItem{{Job: queued("a")}}, RequestID: long})
	retried := send(t, env, 3*time.Second, contract.MessageEnqueue, contract.EnqueueRequest{Items: []contract.EnqueueItem{{Job: queued("a"), RetryOf: long}}})
	env.RegisterDelayedCallback(func() {
		for range 3 {
			j := queued("a")
			j.ID = long
			env.SignalWorkflow(contract.SignalEnqueue, contract.EnqueueRequest{Items: []contract.EnqueueItem{{Job: j}}, RequestID: long})
		}
		env.SignalWorkflow(contract.SignalEnqueue, put(queued("b")))
	}, 4*time.Second)
	var paused contract.QueueState
	env.RegisterDelayedCallback(func() { paused = queueState(t, env) }, 5*time.Second)
	state := endQueue(t, env, time.Minute, contract.QueueState{Name: "tables"})
	require.ErrorContains(t, requested.rejected, "its request id has 1048576 bytes, more than 200")
	require.ErrorContains(t, retried.rejected, "its retried run id has 1048576 bytes, more than 200")
	require.Less(t, len(paused.PauseReason), 2000)
	require.EqualValues(t, 3, state.Failed)
	require.EqualValues(t, 1, state.Accepted)
	require.Less(t, stored(t, state), 64<<10)
}

func TestContinuousJobRefusesADefinitionThatIsNotRight(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, succeed)
	j := newJob("a", job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Hour)}})
	owned := j
	owned.Options.Owner.User = strings.Repeat("o", 129)
	refused := send(t, env, time.Minute, contract.MessageSetJob, contract.SetJobRequest{Job: owned})
	send(t, env, 2*time.Minute, contract.MessageStop, contract.StopRequest{})
	env.ExecuteWorkflow(contract.ContinuousJobType, contract.NewContinuousState(j))
	require.NoError(t, env.GetWorkflowError())
	require.ErrorContains(t, refused.rejected, "job count_things.a does not take the definition: owner: the owner has 134 bytes, more than 128")
}

// What a caller counts before it sends an item is what the queue counts that gets it.
func TestSizeOfAnItemIsTheSameOnceItIsSent(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{}`,
		`{"url": "https://vendor.example/api?station=12&from=1&to=2&format=csv"}`,
		`{"text": "` + strings.Repeat("a & b < c > d \u2028", 200) + `"}`,
		`{ "n" : [ 1, 2,  3 ] }`,
	} {
		item := contract.EnqueueItem{Job: queued("a"), Cursor: json.RawMessage(text)}
		item.Job.Spec = json.RawMessage(text)
		sent, err := json.Marshal(item)
		require.NoError(t, err)
		var got contract.EnqueueItem
		require.NoError(t, json.Unmarshal(sent, &got))
		require.Equal(t, item.Size(), got.Size(), text)
		require.GreaterOrEqual(t, item.Size(), len(sent))
	}
}

// Purges of single numbers are remembered, as many as there is room for.
func TestPurgesOfSingleNumbersAreBounded(t *testing.T) {
	t.Parallel()
	const ranges, last = 500, 2000
	env, _ := pagedEnvironment(t, succeed)
	env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(nil)
	state := contract.QueueState{
		Name: "tables", Paused: true, PageSize: contract.PageSize{Items: last, Bytes: 1 << 20}, Accepted: last + 1,
		Halted:   &contract.Halt{Error: "so that no page is read", Page: 1},
		Instance: "e", Overflow: contract.Overflow{Pages: []int64{1}, Last: last},
		Tail: []contract.QueueItem{{Sequence: last + 1, Job: queued("a")}},
	}
	purge := func(at time.Duration, from, to int64) *answer {
		return send(t, env, at, contract.MessagePurge, contract.PurgeRequest{From: from, To: to})
	}
	single := make([]*answer, ranges)
	for i := range single {
		n := int64(2*i + 2)
		single[i] = purge(time.Duration(i+1)*time.Millisecond, n, n)
	}
	refused := purge(10*time.Second, 1500, 1500)
	inTail := purge(11*time.Second, last+1, last+1)
	joining := purge(12*time.Second, 3, 3)
	room := purge(13*time.Second, 1500, 1500)
	nothing := purge(14*time.Second, last+5, last+5)
	var full contract.QueueState
	env.RegisterDelayedCallback(func() { full = queueState(t, env) }, 15*time.Second)
	all := purge(16*time.Second, 0, 0)
	state = endQueue(t, env, time.Minute, state)
	for _, a := range single {
		a.requireTaken()
	}
	for _, a := range []*answer{refused, inTail} {
		require.ErrorContains(t, a.rejected, "queue tables remembers no more than 500 ranges of numbers that left its pages: purge one that joins some of them")
	}
	for _, a := range []*answer{joining, room, nothing, all} {
		a.requireTaken()
	}
	require.Len(t, full.Overflow.Removed, ranges)
	require.Equal(t, last+1-ranges-2, full.Depth())
	require.Zero(t, state.Depth())
	require.Empty(t, state.Overflow.Removed)
}
