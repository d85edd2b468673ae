package verbs

import (
	"fmt"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// QueueState is what decides on the verbs of a queue.
type QueueState struct {
	Status  jobsv1.QueueStatus
	Waiting int32
}

// OfQueue is what decides on the verbs of a queue.
func OfQueue(q *jobsv1.Queue) Subject {
	return Subject{Queue: QueueState{Status: q.GetStatus(), Waiting: q.GetWaiting()}}
}

// QueueVerbs are the verbs of queues.
func QueueVerbs() []*Verb {
	return []*Verb{ResumeQueue, SkipFailedItem, RecoverQueue, PauseQueue, DrainQueue, PurgeQueue, SetQueueFailurePolicy}
}

const queueEnded = "its workflow has ended: recover it first"

func (q QueueState) ended() bool { return q.Status == jobsv1.QueueStatus_QUEUE_STATUS_ENDED }

func (q QueueState) halted() bool { return q.Status == jobsv1.QueueStatus_QUEUE_STATUS_HALTED }

// open reports whether the queue starts its items and takes new ones.
func (q QueueState) open() bool {
	switch q.Status {
	case jobsv1.QueueStatus_QUEUE_STATUS_IDLE, jobsv1.QueueStatus_QUEUE_STATUS_RUNNING, jobsv1.QueueStatus_QUEUE_STATUS_STOPPING:
		return true
	}
	return false
}

// unchangedQueue is what was done to a queue with which there was nothing to do.
func unchangedQueue(a Args, summary *jobsv1.QueueSummary, why string) Done {
	done := ofQueue(a, summary, unchanged, why)
	done.Unchanged = true
	return done
}

// ofQueue is what was done to a queue.
func ofQueue(a Args, summary *jobsv1.QueueSummary, result, note string) Done {
	result = noted(fmt.Sprintf("%s, %d waiting", result, summary.GetWaiting()), note)
	return Done{Text: "Queue " + a.name(0) + ": " + result, Result: result}
}
