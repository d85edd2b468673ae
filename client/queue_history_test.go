package client_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// queueEvents writes the history of a queue's run, as far as a recovery reads it.
type queueEvents struct {
	t       *testing.T
	history client.QueueHistory
	last    int64
}

func newQueueEvents(t *testing.T, input contract.QueueState) *queueEvents {
	t.Helper()
	e := &queueEvents{t: t}
	e.add(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: e.payloads(input)},
	}})
	return e
}

func (e *queueEvents) payloads(value any) *commonpb.Payloads {
	e.t.Helper()
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(value)
	require.NoError(e.t, err)
	return payloads
}

func (e *queueEvents) add(event *historypb.HistoryEvent) {
	e.t.Helper()
	e.last++
	event.EventId = e.last
	require.NoError(e.t, e.history.Add(event))
}

func (e *queueEvents) completeTask() {
	e.t.Helper()
	e.add(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
		WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{},
	}})
}

func (e *queueEvents) signal(name string, value any) {
	e.t.Helper()
	e.add(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
		WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: name, Input: e.payloads(value)},
	}})
}

// ask is the queue's request to start a child; the memo of an item's run has its number.
func (e *queueEvents) ask(workflowType, id string, memo map[string]*commonpb.Payload) (initiated int64) {
	e.t.Helper()
	e.add(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_StartChildWorkflowExecutionInitiatedEventAttributes{
		StartChildWorkflowExecutionInitiatedEventAttributes: &historypb.StartChildWorkflowExecutionInitiatedEventAttributes{
			WorkflowId: id, WorkflowType: &commonpb.WorkflowType{Name: workflowType}, Memo: &commonpb.Memo{Fields: memo},
		},
	}})
	return e.last
}

func (e *queueEvents) askItem(sequence int64, jobID string) (initiated int64) {
	e.t.Helper()
	return e.ask(contract.RunJobType, contract.JobWorkflowID(jobID),
		map[string]*commonpb.Payload{contract.MemoItem: e.payloads(contract.ItemOfRun{Sequence: sequence}).GetPayloads()[0]})
}

func (e *queueEvents) started(initiated int64, runID string) {
	e.t.Helper()
	e.add(&historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ChildWorkflowExecutionStartedEventAttributes{
		ChildWorkflowExecutionStartedEventAttributes: &historypb.ChildWorkflowExecutionStartedEventAttributes{
			InitiatedEventId: initiated, WorkflowExecution: &commonpb.WorkflowExecution{RunId: runID},
		},
	}})
}

// waitingJobs are the ids of what waits in the queue itself, without the type.
func waitingJobs(state contract.QueueState) []string {
	var ids []string
	for _, item := range append(append([]contract.QueueItem(nil), state.Waiting...), state.Tail...) {
		ids = append(ids, fmt.Sprintf("%d %s", item.Sequence, item.Job.ID[len("count_things."):]))
	}
	return ids
}

func queued(key string) job.Job {
	trigger := job.Trigger{Queued: &job.Queued{Queue: "tables"}}
	return job.Job{
		ID: "count_things." + key, Type: "CountThings", Worker: "counting", Provider: job.ProviderAPI,
		Spec: []byte(`{}`), Trigger: trigger, Options: job.DefaultOptions(trigger.Mode()),
	}
}

func put(j job.Job) contract.EnqueueRequest {
	return contract.EnqueueRequest{Items: []contract.EnqueueItem{{Job: j}}}
}

// unreadJobs are the ids of the items in unread signals, without the type.
func unreadJobs(state contract.QueueState) []string {
	var ids []string
	for _, in := range state.UnreadSignals {
		for _, item := range in.Items {
			ids = append(ids, item.Job.ID[len("count_things."):])
		}
	}
	return ids
}

// A signal is part of no state until the queue has read it. The next run gets those that
// were not read, as far as there is room for them.
func TestRecoverKeepsUnreadSignals(t *testing.T) {
	t.Parallel()
	e := newQueueEvents(t, contract.QueueState{Name: "tables"})
	e.signal(contract.SignalEnqueue, put(queued("read")))
	e.signal(contract.SignalEnqueue, "this is no request: the queue never sees it")
	e.signal("other", put(queued("other")))
	e.completeTask()
	e.signal(contract.SignalEnqueue, put(queued("late")))
	e.signal(contract.SignalEnqueue, put(queued("later")))
	require.True(t, e.history.Answers())
	left := contract.QueueState{
		Name: "tables", Accepted: 2, SignalsRead: 1, Generation: 4, PageSize: contract.DefaultPageSize(),
		Waiting: []contract.QueueItem{{Sequence: 2, Job: queued("read")}},
	}
	state, orphans := e.history.Recover(left, time.Now())
	require.Empty(t, orphans)
	require.Equal(t, []string{"2 read"}, waitingJobs(state))
	require.Equal(t, []string{"late", "later"}, unreadJobs(state))
	require.Zero(t, state.SignalsRead)
	require.Equal(t, 5, state.Generation)

	size := put(queued("later")).Items[0].Size()
	left.WaitingBytes = contract.MaxQueueBytes - size - size/2 // There is room for one.
	state, _ = e.history.Recover(left, time.Now())
	require.Equal(t, []string{"late"}, unreadJobs(state))
	require.EqualValues(t, 1, state.Failed)
}

// A run that no worker has carried on has left what it began with.
func TestRecoverWithoutAWorkersAnswer(t *testing.T) {
	t.Parallel()
	e := newQueueEvents(t, contract.QueueState{
		Name: "tables", Accepted: 1, Waiting: []contract.QueueItem{{Sequence: 1, Job: queued("a")}},
		UnreadSignals: []contract.EnqueueRequest{put(queued("b"))},
	})
	e.signal(contract.SignalEnqueue, put(queued("c")))
	require.False(t, e.history.Answers())
	state, _ := e.history.Recover(e.history.Input(), time.Now())
	require.Equal(t, []string{"1 a"}, waitingJobs(state))
	require.Equal(t, []string{"b", "c"}, unreadJobs(state))
}

// The item at work keeps its run. One whose run has not started waits again, first.
func TestRecoverOfTheItemAtWork(t *testing.T) {
	t.Parallel()
	running := func(change func(*contract.RunningItem)) contract.QueueState {
		item := &contract.RunningItem{QueueItem: contract.QueueItem{Sequence: 2, Job: queued("a"), AllowRerun: true}}
		change(item)
		return contract.QueueState{Name: "tables", Accepted: 3, Running: item, Waiting: []contract.QueueItem{{Sequence: 3, Job: queued("b")}}}
	}
	const again = "2 a"
	for name, c := range map[string]struct {
		events   func(*queueEvents)
		change   func(*contract.RunningItem)
		run      string
		waiting  []string
		canceled int64
	}{
		"it is known to run": {change: func(i *contract.RunningItem) { i.RunID = "r9" }, run: "r9", waiting: []string{"3 b"}},
		"its start was not read": {
			events: func(e *queueEvents) { e.started(e.askItem(2, "count_things.a"), "r2") }, run: "r2", waiting: []string{"3 b"},
		},
		"it was asked for": {
			events: func(e *queueEvents) { e.askItem(2, "count_things.a") }, waiting: []string{again, "3 b"},
		},
		"it was not asked for": {waiting: []string{again, "3 b"}},
		"an earlier item of the job ran": {
			events: func(e *queueEvents) { e.started(e.askItem(1, "count_things.a"), "r1") }, waiting: []string{again, "3 b"},
		},
		"it ran, failed, and was to be tried again": {
			events: func(e *queueEvents) { e.started(e.askItem(2, "count_things.a"), "r2") },
			change: func(i *contract.RunningItem) { i.RetryOf = "r2" }, waiting: []string{again, "3 b"},
		},
		"it was canceled before it started": {
			change: func(i *contract.RunningItem) { i.Canceled = true }, waiting: []string{"3 b"}, canceled: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newQueueEvents(t, contract.QueueState{Name: "tables"})
			if c.events != nil {
				c.events(e)
			}
			if c.change == nil {
				c.change = func(*contract.RunningItem) {}
			}
			state, orphans := e.history.Recover(running(c.change), time.Now())
			require.Equal(t, c.waiting, waitingJobs(state))
			require.Equal(t, c.canceled, state.Canceled)
			if c.run != "" {
				require.Equal(t, c.run, state.Running.RunID)
				require.Empty(t, orphans)
				return
			}
			require.Nil(t, state.Running)
			require.Equal(t, []string{"job/count_things.a"}, orphans)
			size := 0
			for _, item := range state.Waiting {
				size += item.Bytes
			}
			require.GreaterOrEqual(t, state.WaitingBytes, size)
		})
	}
}

// A page that the queue had asked for, and whose items are still in its tail, is started
// anew: the id must be free.
func TestRecoverFreesPagesThatWereNotTakenOver(t *testing.T) {
	t.Parallel()
	e := newQueueEvents(t, contract.QueueState{Name: "a-1"})
	for _, first := range []int64{5, 9, 13} {
		e.started(e.ask(contract.JobQueuePageType, contract.QueuePageWorkflowID("a-1", "0badcafe", first), nil), "p")
	}
	_, orphans := e.history.Recover(contract.QueueState{
		Name: "a-1", Accepted: 16, Instance: "0badcafe", Overflow: contract.Overflow{Pages: []int64{5}, Last: 8},
	}, time.Now())
	require.Equal(t, []string{"queue/a-1/page/0badcafe-9", "queue/a-1/page/0badcafe-13"}, orphans)
}
