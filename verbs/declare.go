package verbs

import (
	"strings"

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

// declareVerbs are those whose requests hold more than names: only their commands build them.
//
// What lets a caller choose a spec, which may name a secret and the server that it is sent to,
// is an admin's, and so is what ends or drops work for good.
func declareVerbs() []*Verb {
	return []*Verb{
		{Name: "create-job", Procedure: jobsv1connect.JobServiceCreateJobProcedure, Role: RoleAdmin, Kind: KindJob},
		{Name: "update-job", Procedure: jobsv1connect.JobServiceUpdateJobProcedure, Role: RoleAdmin, Kind: KindJob},
		{Name: "delete-job", Command: "jobs delete", Procedure: jobsv1connect.JobServiceDeleteJobProcedure, Role: RoleAdmin, Kind: KindJob},
		{Name: "apply-job-set", Command: "apply", Procedure: jobsv1connect.JobSetServiceApplyJobSetProcedure, Role: RoleAdmin, Kind: KindJobSet},
		{Name: "enqueue-jobs", Command: "enqueue", Procedure: jobsv1connect.QueueServiceEnqueueJobsProcedure, Role: RoleAdmin, Kind: KindQueue},
		// What lies between can be read again.
		{Name: "set-bookmark", Command: "bookmarks set", Procedure: jobsv1connect.BookmarkServiceSetBookmarkProcedure, Role: RoleOperator, Kind: KindBookmark},
		{
			Name: "enable-integration", Command: "integrations enable", Procedure: jobsv1connect.IntegrationServiceEnableIntegrationProcedure,
			Role: RoleOperator, Kind: KindIntegration,
		},
		{
			Name: "disable-integration", Command: "integrations disable", Procedure: jobsv1connect.IntegrationServiceDisableIntegrationProcedure,
			Role: RoleOperator, Kind: KindIntegration,
		},
		// Its run changes nothing.
		{Name: "plan-teardown", Command: "teardown plan", Procedure: jobsv1connect.TeardownServicePlanTeardownProcedure, Role: RoleOperator, Kind: KindOrganization},
		{Name: "start-teardown", Command: "teardown start", Procedure: jobsv1connect.TeardownServiceStartTeardownProcedure, Role: RoleAdmin, Kind: KindOrganization},
		{Name: "undo-teardown", Command: "teardown undo", Procedure: jobsv1connect.TeardownServiceUndoTeardownProcedure, Role: RoleAdmin, Kind: KindOrganization},
	}
}
