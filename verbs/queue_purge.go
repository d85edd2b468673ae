package verbs

import (
	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// PurgeQueue takes the waiting items out of a queue.
var PurgeQueue = row(Verb{
	Name: "purge-queue", Command: "queues purge", Procedure: jobsv1connect.QueueServicePurgeQueueProcedure, Role: RoleAdmin, Kind: KindQueue,
	Label: "Purge…", Previews: true,
	WhyNot: func(s Subject) string {
		switch q := s.Queue; {
		case q.ended():
			return queueEnded
		case q.Waiting == 0:
			return "no item waits in it"
		}
		return ""
	},
}, func(a Args) *jobsv1.PurgeQueueRequest {
	return &jobsv1.PurgeQueueRequest{Queue: a.object(), Force: !a.Preview}
}, func(a Args, answer *jobsv1.PurgeQueueResponse) Done {
	n := int(answer.GetPurgeCount())
	if a.Preview {
		return Done{
			Text:  "Remove " + plantext.Counted(n, "waiting item", "waiting items") + " from queue " + a.object() + "?",
			Names: answer.GetPurgeSample(),
		}
	}
	result := plantext.Counted(n, "item", "items") + " removed"
	return Done{Text: "Queue " + a.object() + ": " + result, Result: result}
})
