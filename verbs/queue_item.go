package verbs

import (
	"fmt"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// ItemVerbs are the verbs of items that wait in a queue. Whoever shows an item shows that they
// apply.
func ItemVerbs() []*Verb { return []*Verb{MoveQueueItem, CancelQueueItem} }

// DeadLetterVerbs are the verbs of dead letters, as ItemVerbs.
func DeadLetterVerbs() []*Verb { return []*Verb{RetryDeadLetters, DropDeadLetters} }

// MoveQueueItem makes a waiting item the next one. Its names are a queue and a job.
var MoveQueueItem = row(Verb{
	Name: "move-item", Command: "queues move", Procedure: jobsv1connect.QueueServiceMoveQueueItemProcedure, Role: RoleOperator,
	Kind: KindQueue, Label: "Run next",
}, func(a Args) *jobsv1.MoveQueueItemRequest {
	return &jobsv1.MoveQueueItemRequest{Queue: a.name(0), JobId: a.name(1)}
}, func(a Args, answer *jobsv1.MoveQueueItemResponse) Done {
	return ofJob(a, fmt.Sprintf("the next one of queue %s, %d waiting", a.name(0), answer.GetSummary().GetWaiting()))
})

// CancelQueueItem takes a waiting item out of its queue, and asks a running one to stop. Its
// names are a queue and a job.
var CancelQueueItem = row(Verb{
	Name: "cancel-item", Command: "queues cancel", Procedure: jobsv1connect.QueueServiceCancelQueueItemProcedure, Role: RoleOperator,
	Kind: KindQueue, Label: "Take out…", Question: "Take %s out of its queue?",
}, func(a Args) *jobsv1.CancelQueueItemRequest {
	return &jobsv1.CancelQueueItemRequest{Queue: a.name(0), JobId: a.name(1)}
}, func(a Args, answer *jobsv1.CancelQueueItemResponse) Done {
	if answer.GetRunning() {
		return ofJob(a, "running in queue "+a.name(0)+": stop requested")
	}
	return ofJob(a, "removed from queue "+a.name(0))
})

// RetryDeadLetters puts failed items into their queue again.
var RetryDeadLetters = row(Verb{
	Name: "retry-dead-letters", Command: "queues dead retry", Procedure: jobsv1connect.QueueServiceRetryDeadLettersProcedure,
	Role: RoleOperator, Kind: KindQueue, Label: "Retry",
}, func(a Args) *jobsv1.RetryDeadLettersRequest {
	return &jobsv1.RetryDeadLettersRequest{Queue: a.name(0), Sequences: a.Sequences}
}, func(a Args, answer *jobsv1.RetryDeadLettersResponse) Done {
	result := plantext.Counted(len(answer.GetRetried()), "dead letter is", "dead letters are") + " in the queue again"
	done := Done{Text: "Queue " + a.name(0) + ": " + result, Result: result}
	for _, stays := range append(answer.GetLater(), answer.GetLeft()...) {
		done.Names = append(done.Names, stays.GetJobId()+" stays: "+stays.GetErrorMessage())
	}
	return done
})

// DropDeadLetters forgets failed items.
var DropDeadLetters = row(Verb{
	Name: "drop-dead-letters", Command: "queues dead drop", Procedure: jobsv1connect.QueueServiceDropDeadLettersProcedure, Role: RoleAdmin,
	Kind: KindQueue, Label: "Drop…", Question: "Drop these dead letters of queue %s?", QuestionOfOne: "Drop this dead letter of queue %s?",
}, func(a Args) *jobsv1.DropDeadLettersRequest {
	return &jobsv1.DropDeadLettersRequest{Queue: a.name(0), Sequences: a.Sequences}
}, func(a Args, answer *jobsv1.DropDeadLettersResponse) Done {
	result := plantext.Counted(int(answer.GetDropped()), "dead letter", "dead letters") + " dropped"
	return Done{Text: "Queue " + a.name(0) + ": " + result, Result: result}
})
