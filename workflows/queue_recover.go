package workflows

import (
	"fmt"
	"strings"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"github.com/dendrascience/dendra-jobs/contract"
)

// QueueHistory is what the history of one run of a queue has beside the queue's state,
// once that run was ended from outside: someone terminated it, for example. The state
// itself is the answer to QueryState, for which a worker replays the history.
type QueueHistory struct {
	// Input is the state that the run began with.
	Input contract.QueueState
	// Answers says that a worker has carried the run on, so that it answers queries.
	Answers bool

	signals []contract.EnqueueRequest
	items   map[int64]startedItem // by number
	asked   map[int64]int64       // the numbers of the items that were asked for, by event
	pages   []string
}

// startedItem is the latest start of an item's run.
type startedItem struct {
	workflowID string
	runID      string // "" if the history does not have its start
}

// Add takes in the next event of the history.
func (h *QueueHistory) Add(event *historypb.HistoryEvent) error {
	data := converter.GetDefaultDataConverter()
	if started := event.GetWorkflowExecutionStartedEventAttributes(); started != nil {
		if err := data.FromPayloads(started.GetInput(), &h.Input); err != nil {
			return fmt.Errorf("the input of the queue: %w", err)
		}
		h.items, h.asked = map[int64]startedItem{}, map[int64]int64{}
	}
	if event.GetWorkflowTaskCompletedEventAttributes() != nil {
		h.Answers = true
	}
	if signaled := event.GetWorkflowExecutionSignaledEventAttributes(); signaled.GetSignalName() == contract.SignalEnqueue {
		var in contract.EnqueueRequest
		// The queue never receives one that cannot be decoded.
		if data.FromPayloads(signaled.GetInput(), &in) == nil {
			h.signals = append(h.signals, in)
		}
	}
	if child := event.GetStartChildWorkflowExecutionInitiatedEventAttributes(); child != nil {
		var item contract.ItemOfRun
		switch payload, ok := child.GetMemo().GetFields()[contract.MemoItem]; {
		case child.GetWorkflowType().GetName() == contract.JobQueuePageType:
			h.pages = append(h.pages, child.GetWorkflowId())
		case ok && data.FromPayload(payload, &item) == nil:
			h.asked[event.GetEventId()] = item.Sequence
			h.items[item.Sequence] = startedItem{workflowID: child.GetWorkflowId()}
		}
	}
	if child := event.GetChildWorkflowExecutionStartedEventAttributes(); child != nil {
		if sequence, ok := h.asked[child.GetInitiatedEventId()]; ok {
			h.items[sequence] = startedItem{child.GetWorkflowExecution().GetWorkflowId(), child.GetWorkflowExecution().GetRunId()}
		}
	}
	return nil
}

// Recover makes the state that the run left ready to be the input of another one that
// goes on: with the run of the item that was at work, or that item at the front if it
// has none, and with the signals that the run had not taken in. Orphans are the
// workflows that the run had asked for and that are not part of that state: if they are
// there, and its children, they hold ids that the queue needs.
func (h *QueueHistory) Recover(left contract.QueueState, now time.Time) (state contract.QueueState, orphans []string) {
	q := &queue{QueueState: left}
	if item := q.Running; item != nil && item.RunID == "" {
		started := h.items[item.Sequence]
		if started.runID != "" && started.runID != item.RetryOf {
			item.RunID = started.runID
		} else {
			orphans = append(orphans, contract.JobWorkflowID(item.Job.ID))
			q.putBack(now)
		}
	}
	for _, in := range h.signals[min(left.SignalsRead, len(h.signals)):] {
		q.takeSignaled(in, now, func() []string { return problemsOf(q.Name, in) })
	}
	for _, page := range h.pages {
		if pageNumber(page) > q.Overflow.Last {
			orphans = append(orphans, page)
		}
	}
	return q.next(), orphans
}

// putBack makes the item whose run has not started the next one again, unless someone
// has canceled it.
func (q *queue) putBack(now time.Time) {
	item := q.Running
	q.Running = nil
	if !item.Canceled {
		q.toFront(item.QueueItem)
		return
	}
	q.finish(contract.FinishedItem{
		Sequence: item.Sequence, JobID: item.Job.ID, Status: contract.ItemCanceled,
		Accepted: item.Accepted, Ended: now, RequestID: item.RequestID,
	})
}

// pageNumber is the number of the page of a QueuePageWorkflowID.
func pageNumber(workflowID string) int64 {
	var first int64
	if _, err := fmt.Sscan(workflowID[strings.LastIndex(workflowID, "-")+1:], &first); err != nil {
		return 0
	}
	return first
}
