package verbs

import (
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// ResumeQueue ends a pause or a drain, and runs the failed item of a halted queue again.
var ResumeQueue = row(Verb{
	Name: "resume-queue", Command: "queues resume", Procedure: jobsv1connect.QueueServiceResumeQueueProcedure, Role: RoleOperator, Kind: KindQueue,
	Label: "Resume", Action: jobsv1.AlertAction_ALERT_ACTION_RESUME_QUEUE,
	WhyNot: func(s Subject) string {
		switch q := s.Queue; {
		case q.ended():
			return queueEnded
		case q.open():
			return "it is not paused, drained or halted"
		}
		return ""
	},
}, func(a Args) *jobsv1.ResumeQueueRequest { return &jobsv1.ResumeQueueRequest{Queue: a.object()} },
	func(a Args, answer *jobsv1.ResumeQueueResponse) Done {
		if !answer.GetUnchanged() {
			return ofQueue(a, answer.GetSummary(), "resumed", "")
		}
		return unchangedQueue(a, answer.GetSummary(), "it was not paused, drained or halted")
	})
