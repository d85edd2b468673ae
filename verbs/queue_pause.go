package verbs

import (
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// PauseQueue keeps a queue from starting more items. As with a job, it adds its reason to those
// of a paused queue, but nobody offers that.
var PauseQueue = row(Verb{
	Name: "pause-queue", Command: "queues pause", Procedure: jobsv1connect.QueueServicePauseQueueProcedure, Role: RoleOperator, Kind: KindQueue, ReasonShown: true,
	Label: "Pause",
	WhyNot: func(s Subject) string {
		switch q := s.Queue; {
		case q.ended():
			return queueEnded
		case q.Status == jobsv1.QueueStatus_QUEUE_STATUS_PAUSED:
			return "it is paused already"
		}
		return ""
	},
}, func(a Args) *jobsv1.PauseQueueRequest {
	return &jobsv1.PauseQueueRequest{Queue: a.object(), Duration: lasting(a)}
},
	func(a Args, answer *jobsv1.PauseQueueResponse) Done {
		note := ""
		if answer.GetAlreadyPaused() {
			note = already(answer.GetPreviousReason())
		}
		return ofQueue(a, answer.GetSummary(), pausedUntil(answer.GetEndTime()), note)
	})
