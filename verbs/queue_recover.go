package verbs

import (
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// RecoverQueue starts a queue again whose workflow has ended.
var RecoverQueue = row(Verb{
	Name: "recover-queue", Command: "queues recover", Procedure: jobsv1connect.QueueServiceRecoverQueueProcedure, Role: RoleOperator,
	Kind: KindQueue, Label: "Recover", Action: jobsv1.AlertAction_ALERT_ACTION_RECOVER_QUEUE,
	WhyNot: func(s Subject) string {
		if !s.Queue.ended() {
			return "its workflow is running"
		}
		return ""
	},
}, func(a Args) *jobsv1.RecoverQueueRequest { return &jobsv1.RecoverQueueRequest{Queue: a.object()} },
	func(a Args, answer *jobsv1.RecoverQueueResponse) Done {
		if !answer.GetUnchanged() {
			return ofQueue(a, answer.GetSummary(), "recovered", "")
		}
		return unchangedQueue(a, answer.GetSummary(), "its workflow is running")
	})
