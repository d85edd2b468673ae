package client

import (
	"context"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// Span is what a run did for a time.
type Span struct {
	Kind  SpanKind
	Start time.Time
	End   time.Time // zero while it goes on
	// Attempt is the number of the attempt over all workers, and Worker that which had it, or
	// to which the run moved.
	Attempt int
	Worker  string
	// Class and Reason say why an attempt failed, or why the run waited or moved.
	Class, Reason string
}

// SpanKind is what a run did.
type SpanKind string

// The kinds of spans.
const (
	SpanWaited          SpanKind = "waited" // for its time, or for its turn in a queue
	SpanWaitedForWorker SpanKind = "waited_for_worker"
	SpanRan             SpanKind = "ran"        // an attempt
	SpanBackedOff       SpanKind = "backed_off" // between an attempt that failed and the next
	SpanMoved           SpanKind = "moved"      // another worker has the next attempt
	SpanHeldBack        SpanKind = "held_back"
	SpanGaveWay         SpanKind = "gave_way"
)

// maxSpanEvents is how many events of a history are read: with more than a hundred hand-overs
// the later ones are left out.
const maxSpanEvents = 1000

// Spans tells what a run did, the oldest first, with one call. Waits of less than 0.1 s are left
// out.
func (c *RunClient) Spans(ctx context.Context, d *RunDetail) ([]Span, error) {
	answer, err := read(ctx, c.conn, c.temporal.WorkflowService().GetWorkflowExecutionHistory, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: c.namespace, MaximumPageSize: maxSpanEvents,
		Execution: &commonpb.WorkflowExecution{WorkflowId: d.WorkflowID, RunId: d.RunID},
	})
	if err != nil {
		return nil, explain("run "+d.WorkflowID, err)
	}
	s := story{run: d, activities: map[int64]*activityStory{}}
	for _, event := range answer.GetHistory().GetEvents() {
		s.take(event)
	}
	s.end()
	return s.spans, nil
}

// IterationSpans tells what an iteration did, as far as its job remembers.
func IterationSpans(run Run) []Span {
	span := Span{Kind: SpanRan, Start: run.Started, End: run.Ended, Attempt: max(run.Attempts, 1), Worker: run.Worker, Class: run.Class, Reason: firstLine(run.Error)}
	if run.WaitReason != "" {
		span = Span{Kind: SpanWaitedForWorker, Start: run.Started, Reason: run.WaitReason}
	}
	return []Span{span}
}
