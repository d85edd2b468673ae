package verbs

import (
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// DrainQueue makes a queue refuse new items, and run those that wait.
var DrainQueue = row(Verb{
	Name: "drain-queue", Command: "queues drain", Procedure: jobsv1connect.QueueServiceDrainQueueProcedure, Role: RoleOperator, Kind: KindQueue,
	Label: "Drain…", Question: "Drain queue %s? It takes no more items until someone resumes it.",
	WhyNot: func(s Subject) string {
		switch q := s.Queue; {
		case q.ended():
			return queueEnded
		case q.Status == jobsv1.QueueStatus_QUEUE_STATUS_DRAINING, q.Status == jobsv1.QueueStatus_QUEUE_STATUS_DRAINED:
			return drained
		}
		return ""
	},
}, func(a Args) *jobsv1.DrainQueueRequest { return &jobsv1.DrainQueueRequest{Queue: a.object()} },
	func(a Args, answer *jobsv1.DrainQueueResponse) Done {
		if answer.GetUnchanged() {
			return unchangedQueue(a, answer.GetSummary(), drained)
		}
		return ofQueue(a, answer.GetSummary(), "draining", "")
	})

const drained = "it is drained already"
