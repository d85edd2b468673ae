package verbs

import (
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// SkipFailedItem lets a halted queue go on with its next item.
var SkipFailedItem = row(Verb{
	Name: "skip-failed-item", Command: "queues skip", Procedure: jobsv1connect.QueueServiceSkipFailedItemProcedure, Role: RoleOperator,
	Kind: KindQueue, Label: "Skip failed item…", Action: jobsv1.AlertAction_ALERT_ACTION_SKIP_FAILED_ITEM,
	Question: "Skip the failed item of queue %s? The queue goes on with the next one.",
	WhyNot: func(s Subject) string {
		if !s.Queue.halted() {
			return "it is not halted"
		}
		return ""
	},
}, func(a Args) *jobsv1.SkipFailedItemRequest { return &jobsv1.SkipFailedItemRequest{Queue: a.object()} },
	func(a Args, answer *jobsv1.SkipFailedItemResponse) Done {
		return ofQueue(a, answer.GetSummary(), "failed item skipped", "")
	})
