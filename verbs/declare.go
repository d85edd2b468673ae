package verbs

import (
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// SetQueueFailurePolicy sets what the failure of an item does to a queue: that of Args.With.
var SetQueueFailurePolicy = row(Verb{
	Name: "set-queue-failure-policy", Command: "queues set", Procedure: jobsv1connect.QueueServiceSetQueueFailurePolicyProcedure,
	Role: RoleOperator, Kind: KindQueue,
	WhyNot: func(s Subject) string {
		if s.Queue.ended() {
			return queueEnded
		}
		return ""
	},
}, func(a Args) *jobsv1.SetQueueFailurePolicyRequest {
	return &jobsv1.SetQueueFailurePolicyRequest{Queue: a.object()}
}, func(a Args, answer *jobsv1.SetQueueFailurePolicyResponse) Done {
	if answer.GetUnchanged() {
		return unchangedQueue(a, answer.GetSummary(), "it has this policy already")
	}
	set, _ := a.With.(*jobsv1.SetQueueFailurePolicyRequest) // Without it, the API has refused.
	result := "on failure " + strings.ToLower(strings.TrimPrefix(set.GetOnFailure().String(), "FAILURE_POLICY_"))
	return Done{Text: "Queue " + a.object() + ": " + result, Result: result}
})

// SetBookmark moves the bookmark of a source, or makes one, at Args.Start. Its names are a job and
// a source. What lies between can be read again.
var SetBookmark = row(Verb{
	Name: "set-bookmark", Command: "bookmarks set", Procedure: jobsv1connect.BookmarkServiceSetBookmarkProcedure,
	Role: RoleOperator, Kind: KindBookmark, Question: "Set the bookmark of %s?",
}, func(a Args) *jobsv1.SetBookmarkRequest {
	return &jobsv1.SetBookmarkRequest{JobId: a.name(0), Source: a.name(1), Position: timestamppb.New(a.Start)}
}, func(_ Args, answer *jobsv1.SetBookmarkResponse) Done {
	b := answer.GetBookmark()
	result := "set to " + utc(b.GetPosition())
	return Done{Text: "Bookmark of " + b.GetJobId() + "/" + b.GetSource() + ": " + result, Result: result}
})

// declareVerbs are those whose requests hold whole definitions: only who has these builds them.
//
// What lets a caller choose a spec, which may name a secret and the server that it is sent to,
// is an admin's, and so is what ends or drops work for good.
func declareVerbs() []*Verb {
	return []*Verb{
		SetBookmark,
		CreateJob,
		{Name: "update-job", Procedure: jobsv1connect.JobServiceUpdateJobProcedure, Role: RoleAdmin, Kind: KindJob},
		{Name: "delete-job", Procedure: jobsv1connect.JobServiceDeleteJobProcedure, Role: RoleAdmin, Kind: KindJob},
		ApplyJobSet, EnqueueJobs,
	}
}

// CreateJob makes a job.
var CreateJob = &Verb{Name: "create-job", Procedure: jobsv1connect.JobServiceCreateJobProcedure, Role: RoleAdmin, Kind: KindJob}

// ApplyJobSet makes the jobs of a provider those of a set.
var ApplyJobSet = &Verb{
	Name: "apply-job-set", Command: "apply", Procedure: jobsv1connect.JobSetServiceApplyJobSetProcedure, Role: RoleAdmin, Kind: KindJobSet,
}

// EnqueueJobs puts jobs into a queue.
var EnqueueJobs = &Verb{
	Name: "enqueue-jobs", Command: "queues enqueue", Procedure: jobsv1connect.QueueServiceEnqueueJobsProcedure, Role: RoleAdmin, Kind: KindQueue,
}
