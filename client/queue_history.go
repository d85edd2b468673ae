package client

import (
	"fmt"
	"slices"
	"strings"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// queueHistory is what the history of one run of a queue adds to the queue's state, once
// that run was ended from outside: someone terminated it, say. The state itself is the
// answer to QueryState, for which a worker replays the history.
type queueHistory struct {
	// input is the state that the run began with.
	input contract.QueueState
	// answers says that a worker has carried the run on, so that it answers queries.
	answers bool

	signals []contract.EnqueueRequest
	runs    map[int64]string // the run ids of started items, by number
	asked   map[int64]int64  // the numbers of the items whose start was asked for, by event
	pages   []string
}

// add takes in the next event of the history.
func (h *queueHistory) add(event *historypb.HistoryEvent) error {
	if started := event.GetWorkflowExecutionStartedEventAttributes(); started != nil {
		if err := temporalclient.DecodeOnly(started.GetInput(), &h.input); err != nil {
			return fmt.Errorf("the input of the queue: %w", err)
		}
		h.runs, h.asked = map[int64]string{}, map[int64]int64{}
	}
	if event.GetWorkflowTaskCompletedEventAttributes() != nil {
		h.answers = true
	}
	if signaled := event.GetWorkflowExecutionSignaledEventAttributes(); signaled.GetSignalName() == contract.SignalEnqueue {
		var in contract.EnqueueRequest
		// The queue never sees one that cannot be decoded.
		if temporalclient.DecodeOnly(signaled.GetInput(), &in) == nil {
			h.signals = append(h.signals, in)
		}
	}
	if child := event.GetStartChildWorkflowExecutionInitiatedEventAttributes(); child != nil {
		var item contract.ItemOfRun
		switch payload, ok := child.GetMemo().GetFields()[contract.MemoItem]; {
		case child.GetWorkflowType().GetName() == contract.JobQueuePageType:
			h.pages = append(h.pages, child.GetWorkflowId())
		case ok && temporalclient.DecodePayload(payload, &item) == nil:
			h.asked[event.GetEventId()] = item.Sequence
			delete(h.runs, item.Sequence) // The item is started again.
		}
	}
	if child := event.GetChildWorkflowExecutionStartedEventAttributes(); child != nil {
		if sequence, ok := h.asked[child.GetInitiatedEventId()]; ok {
			h.runs[sequence] = child.GetWorkflowExecution().GetRunId()
		}
	}
	return nil
}

// recover makes the state that the run left ready to be the input of another one that
// goes on: with the run of the item that was at work, or that item at the front if it
// has none, and with the signals that the run had not taken in. Orphans are the
// workflows that the run had asked for and that are not part of that state: if they are
// there, and its children, they hold ids that the queue needs.
func (h *queueHistory) recover(left contract.QueueState, now time.Time) (state contract.QueueState, orphans []string) {
	if item := left.Running; item != nil && item.RunID == "" {
		if run := h.runs[item.Sequence]; run != "" && run != item.RetryOf {
			item.RunID = run
		} else {
			orphans = append(orphans, contract.JobWorkflowID(item.Job.ID))
			putBack(&left, now)
		}
	}
	for _, page := range h.pages {
		if pageNumber(page) > left.Overflow.Last {
			orphans = append(orphans, page)
		}
	}
	h.addUnread(&left)
	left.Generation++
	left.SignalsRead = 0
	return left, orphans
}

// putBack makes the item whose run has not started the next one again, unless someone
// has canceled it.
func putBack(state *contract.QueueState, now time.Time) {
	item := state.Running
	state.Running = nil
	if !item.Canceled {
		state.Waiting = append([]contract.QueueItem{item.QueueItem}, state.Waiting...)
		state.WaitingBytes += item.Bytes
		return
	}
	state.Canceled++
	state.Recent = append(state.Recent, contract.FinishedItem{
		Sequence: item.Sequence, JobID: item.Job.ID, Status: contract.ItemCanceled,
		Accepted: item.Accepted, Ended: now, RequestID: item.RequestID,
	})
}

// addUnread hands on the signals that the run had not taken in, as far as the queue has
// room: it would refuse the others.
func (h *queueHistory) addUnread(state *contract.QueueState) {
	room := contract.MaxQueueBytes - state.WaitingBytes
	unread := slices.Concat(state.UnreadSignals, h.signals[min(state.SignalsRead, len(h.signals)):])
	state.UnreadSignals = nil
	for _, in := range unread {
		size := 0
		for _, item := range in.Items {
			size += item.Size()
		}
		if size > room {
			state.Failed += int64(len(in.Items))
			continue
		}
		room -= size
		state.UnreadSignals = append(state.UnreadSignals, in)
	}
}

// pageNumber is the number of the page of a QueuePageWorkflowID.
func pageNumber(workflowID string) int64 {
	var first int64
	if _, err := fmt.Sscan(workflowID[strings.LastIndex(workflowID, "-")+1:], &first); err != nil {
		return 0
	}
	return first
}
