package client

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

const (
	// shortestWait is that of a span: what is shorter is how Temporal works.
	shortestWait = 100 * time.Millisecond
	// late is how much later than it is due something begins that has waited.
	late = time.Second
)

// story makes the spans of a run of the events of its history.
type story struct {
	run        *RunDetail
	spans      []Span
	idle       time.Time                // when what came before has ended
	activities map[int64]*activityStory // by the event that scheduled them
	open       *activityStory           // the one that has not ended
	made       int                      // attempts of the activities before
	latest     int                      // number of the latest attempt
	worker     string                   // of the latest attempt
	left       string                   // why that worker does not go on
}

// activityStory is what the history says of an activity before its end.
type activityStory struct {
	chooses bool          // a service
	toTake  time.Duration // that its service has to take an attempt
	started *historypb.HistoryEvent
}

func (s *story) take(event *historypb.HistoryEvent) {
	at := event.GetEventTime().AsTime()
	switch event.GetEventType() { //nolint:exhaustive // The others tell nothing of attempts.
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		s.begin(at, event.GetWorkflowExecutionStartedEventAttributes())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		scheduled := event.GetActivityTaskScheduledEventAttributes()
		s.open = &activityStory{
			chooses: scheduled.GetActivityType().GetName() == contract.ChooseServiceActivity,
			toTake:  scheduled.GetScheduleToStartTimeout().AsDuration(),
		}
		s.activities[event.GetEventId()] = s.open
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		if a := s.activities[event.GetActivityTaskStartedEventAttributes().GetScheduledEventId()]; a != nil {
			a.started = event
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		end := event.GetActivityTaskCompletedEventAttributes()
		s.close(end.GetScheduledEventId(), at, nil, eachAttempt(end.GetResult()))
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		end := event.GetActivityTaskFailedEventAttributes()
		s.close(end.GetScheduledEventId(), at, end.GetFailure(), attemptsOfFailure(end.GetFailure()))
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		end := event.GetActivityTaskTimedOutEventAttributes()
		s.close(end.GetScheduledEventId(), at, end.GetFailure(), attemptsOfFailure(end.GetFailure()))
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		end := event.GetActivityTaskCanceledEventAttributes()
		canceled := &failurepb.Failure{FailureInfo: &failurepb.Failure_CanceledFailureInfo{CanceledFailureInfo: &failurepb.CanceledFailureInfo{}}}
		s.close(end.GetScheduledEventId(), at, canceled, eachAttempt(end.GetDetails()))
	}
}

// begin tells how the run came to be started.
func (s *story) begin(at time.Time, started *historypb.WorkflowExecutionStartedEventAttributes) {
	var item contract.ItemOfRun
	queued := temporalclient.MemoField(started.GetMemo(), contract.MemoItem, &item) && !item.Since.IsZero()
	delay := started.GetFirstWorkflowTaskBackoff().AsDuration()
	s.idle = at.Add(delay)
	switch due := s.run.Scheduled; {
	case queued:
		s.wait(Span{Kind: SpanWaited, Start: item.Since, End: at, Reason: "for its turn in queue " + s.run.Queue})
	case delay > 0:
		end := s.idle
		if s.run.Delayed() {
			end = time.Time{}
		} else if ended := s.run.Ended; !ended.IsZero() && ended.Before(end) {
			end, s.idle = ended, ended
		}
		s.wait(Span{Kind: SpanWaited, Start: at, End: end, Reason: "for its time"})
	case !due.IsZero() && at.Sub(due) >= late:
		s.wait(Span{Kind: SpanWaited, Start: due, End: at, Reason: "to be started"})
	}
}

// wait adds a span that is no attempt, unless it is short.
func (s *story) wait(span Span) {
	if span.End.IsZero() || span.End.Sub(span.Start) >= shortestWait {
		s.spans = append(s.spans, span)
	}
}

// close takes in the end of an activity.
func (s *story) close(scheduled int64, at time.Time, failure *failurepb.Failure, each []contract.Attempt) {
	a := s.activities[scheduled]
	if a == nil {
		return
	}
	if s.open == a {
		s.open = nil
	}
	begun := a.started.GetActivityTaskStartedEventAttributes()
	if a.chooses {
		s.wait(Span{Kind: SpanWaitedForWorker, Start: s.idle, End: at, Reason: cmp.Or(firstLine(begun.GetLastFailure().GetMessage()), "a service was looked for")})
		s.idle = at
		return
	}
	if a.started == nil { // No worker has taken it, or its next attempt.
		if n := len(each); n > 0 && each[n-1].End.IsZero() { // Its service fell silent, and had this time to return.
			each[n-1].End = later(each[n-1].Start, at.Add(-a.toTake))
		}
		s.before(each, 0, failure.GetCause())
		reason, _ := reasonOf(failure)
		s.wait(Span{Kind: SpanWaitedForWorker, Start: s.idle, End: at, Reason: reason})
		s.idle = at
		return
	}
	last := int(begun.GetAttempt())
	s.before(each, last, begun.GetLastFailure())
	s.attempt(Span{Start: a.started.GetEventTime().AsTime(), End: at, Attempt: last, Worker: begun.GetIdentity()}, dueOf(each, last-1), failure)
	s.made += last
}

// before tells of the attempts of an activity before its last one, whose number is 0 if it was
// not begun. The failure is that of the one before the last.
func (s *story) before(each []contract.Attempt, last int, failure *failurepb.Failure) {
	for i, a := range each {
		if last != 0 && a.Number >= last {
			break
		}
		span := Span{Start: a.Start, End: a.End, Attempt: a.Number, Worker: a.Worker, Class: a.Class, Reason: a.Error}
		if span.End.IsZero() {
			span.Reason = "its worker did not tell how it ended"
			if i+1 < len(each) {
				span.End = each[i+1].Start
			}
		}
		var how *failurepb.Failure
		if a.Number == last-1 || last == 0 && i+1 == len(each) {
			how = failure
		}
		s.attempt(span, dueOf(each, a.Number-1), how)
		if last == 0 && i+1 == len(each) {
			s.made += a.Number
		}
	}
}

// dueOf is when the attempt after one is due, zero if that is not known.
func dueOf(each []contract.Attempt, number int) time.Time {
	for _, a := range each {
		if a.Number == number {
			return a.Next
		}
	}
	return time.Time{}
}

// attempt adds an attempt, and what was before it since the last one. The failure of one that
// failed says why.
func (s *story) attempt(span Span, due time.Time, failure *failurepb.Failure) {
	span.Attempt += s.made
	if first := s.latest + 1; span.Attempt > first {
		unknown := Span{Kind: SpanRan, Start: s.idle, End: span.Start, Attempt: first, Reason: "when it ran, and how it ended, is not known"}
		if span.Attempt > first+1 {
			unknown.Reason = fmt.Sprintf("of the attempts %d to %d this time alone is known", first, span.Attempt-1)
		}
		s.spans = append(s.spans, unknown)
	} else {
		s.pause(span.Start, due)
	}
	if s.worker != "" && span.Worker != s.worker {
		s.spans = append(s.spans, Span{Kind: SpanMoved, Start: span.Start, End: span.Start, Worker: span.Worker, Reason: s.left})
	}
	span.Kind = SpanRan
	if failure != nil {
		span.Reason, span.Class = reasonOf(failure)
	}
	if span.End.IsZero() && !s.run.Ended.IsZero() {
		span.End = s.run.Ended
	}
	s.idle, s.latest, s.worker, s.left = span.End, span.Attempt, span.Worker, whyLeft(span)
	if span.Class == contract.ErrorTypeDraining {
		span.Class = "" // It did not fail: the reason says what it did.
	}
	s.spans = append(s.spans, span)
}

// pause tells what was before something that begins at a time, and was due at another.
func (s *story) pause(begins, due time.Time) {
	if s.idle.IsZero() || begins.Before(s.idle) {
		return
	}
	if !due.IsZero() {
		end := due
		if begins.Sub(due) < late {
			end = begins
		}
		s.wait(Span{Kind: SpanBackedOff, Start: s.idle, End: end})
		s.idle = end
	}
	s.wait(Span{Kind: SpanWaitedForWorker, Start: s.idle, End: begins})
}

// end tells of what has not ended, or has ended without an event of its own.
func (s *story) end() {
	ended := s.run.Ended
	switch a, pending := s.open, s.run.pending; {
	case s.run.Delayed():
	case s.run.Status == RunHeldBack:
		s.spans = append(s.spans, Span{Kind: SpanHeldBack, Start: s.idle, End: ended, Reason: s.run.Message})
	case s.run.Status == RunSuperseded && len(s.activities) == 0:
		s.spans = append(s.spans, Span{Kind: SpanGaveWay, Start: s.idle, End: ended, Reason: s.run.Message})
	case a != nil && !a.chooses && pending != nil:
		s.addPending(pending)
	// Before its first activity a run waits for a worker that takes the run itself.
	case ended.IsZero() && (s.run.WaitReason != "" || len(s.activities) == 0) || a != nil:
		s.wait(Span{Kind: SpanWaitedForWorker, Start: s.idle, End: ended, Reason: s.run.WaitReason})
	}
}

// addPending tells of an activity that has not ended.
func (s *story) addPending(pending *workflowpb.PendingActivityInfo) {
	failure := pending.GetLastFailure()
	each := eachAttempt(pending.GetHeartbeatDetails())
	if len(each) == 0 {
		each = attemptsOfFailure(failure)
	}
	present := int(pending.GetAttempt())
	if pending.GetState() != enumspb.PENDING_ACTIVITY_STATE_SCHEDULED {
		s.before(each, present, failure)
		s.attempt(Span{Start: pending.GetLastStartedTime().AsTime(), Attempt: present, Worker: pending.GetLastWorkerIdentity()}, dueOf(each, present-1), nil)
		return
	}
	if n := len(each); n > 0 && each[n-1].End.IsZero() && pending.GetLastAttemptCompleteTime() != nil {
		each[n-1].End = pending.GetLastAttemptCompleteTime().AsTime()
	}
	s.before(each, present, failure)
	due := pending.GetScheduledTime().AsTime()
	switch {
	case due.After(time.Now()):
		s.wait(Span{Kind: SpanBackedOff, Start: s.idle, End: s.run.Ended})
		return
	case present > 1:
		s.wait(Span{Kind: SpanBackedOff, Start: s.idle, End: due})
		s.idle = due
	}
	s.wait(Span{Kind: SpanWaitedForWorker, Start: s.idle, End: s.run.Ended, Reason: s.run.WaitReason})
}

// whyLeft is why the worker of an attempt does not go on.
func whyLeft(span Span) string {
	switch span.Class {
	case contract.ErrorTypeDraining:
		return span.Worker + " shut down"
	case errclass.HeartbeatTimeout:
		return span.Worker + " fell silent"
	case errclass.RunLost:
		return span.Worker + " did not reach Temporal"
	}
	return "any worker may take a retry"
}

// reasonOf is the reason of a failure in a line, and its class.
func reasonOf(failure *failurepb.Failure) (reason, class string) {
	if failure.GetCanceledFailureInfo() != nil {
		return "it was asked to stop", ""
	}
	err := temporal.GetDefaultFailureConverter().FailureToError(failure)
	return firstLine(contract.ErrorReason(err)), contract.ErrorClass(err)
}

// eachAttempt are the attempts that an activity's result, or its heartbeats, tell of.
func eachAttempt(payloads *commonpb.Payloads) []contract.Attempt {
	var told struct {
		EachAttempt []contract.Attempt `json:"each_attempt"`
	}
	if temporalclient.DecodeOnly(payloads, &told) != nil {
		return nil
	}
	return told.EachAttempt
}

// attemptsOfFailure are those that the failure of an activity tells of.
func attemptsOfFailure(failure *failurepb.Failure) []contract.Attempt {
	for ; failure != nil; failure = failure.GetCause() {
		for _, details := range []*commonpb.Payloads{
			failure.GetApplicationFailureInfo().GetDetails(), failure.GetTimeoutFailureInfo().GetLastHeartbeatDetails(), failure.GetCanceledFailureInfo().GetDetails(),
		} {
			if each := eachAttempt(details); len(each) > 0 {
				return each
			}
		}
	}
	return nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
