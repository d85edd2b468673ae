package verbs

import (
	"fmt"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// RunJob starts a run of a job. While another one is under way, the overlap policy of a recurring
// job may refuse it: the answer says so.
var RunJob = row(Verb{
	Name: "run-job", Command: "jobs trigger", Procedure: jobsv1connect.JobServiceRunJobProcedure, Role: RoleOperator, Kind: KindJob,
	Label: "Run now", ManyJobs: true, Action: jobsv1.AlertAction_ALERT_ACTION_RUN_JOB,
	WhyNot: func(s Subject) string {
		switch j := s.Job; {
		case j.Mode == Continuous && j.over():
			return "it does not run: restart it"
		case j.Mode == Continuous && j.paused():
			return "it is paused: resume it first"
		}
		return ""
	},
}, func(a Args) *jobsv1.RunJobRequest { return &jobsv1.RunJobRequest{Id: a.object()} },
	func(a Args, answer *jobsv1.RunJobResponse) Done {
		if a.object() == "" { // Its definition came with the request.
			a.Names = []string{answer.GetJobId()}
		}
		done := ofJob(a, ran(answer))
		done.Run, done.Unchanged = answer.GetRunName(), answer.GetExistingStatus() != jobsv1.RunStatus_RUN_STATUS_UNSPECIFIED
		return done
	})

// ran is what became of the request for a run.
func ran(answer *jobsv1.RunJobResponse) string {
	switch answer.GetExistingStatus() {
	case jobsv1.RunStatus_RUN_STATUS_UNSPECIFIED:
	case jobsv1.RunStatus_RUN_STATUS_COMPLETED:
		return "it has completed already"
	case jobsv1.RunStatus_RUN_STATUS_WAITING:
		return "no other run is started, one waits until " + utc(answer.GetBeginTime())
	default:
		return "no other run is started, one is running"
	}
	switch {
	case answer.GetIteration() > 0:
		return fmt.Sprintf("iteration %d triggered", answer.GetIteration())
	case answer.GetPlace().GetDuplicate():
		return fmt.Sprintf("in queue %s already, number %d, %d ahead", answer.GetQueue(), answer.GetPlace().GetSequence(), answer.GetPlace().GetAhead())
	case answer.GetPlace() != nil:
		return fmt.Sprintf("in queue %s, number %d, %d ahead", answer.GetQueue(), answer.GetPlace().GetSequence(), answer.GetPlace().GetAhead())
	case answer.GetBeginTime() != nil:
		return "begins at " + utc(answer.GetBeginTime())
	case answer.GetRunName() != "":
		return "started"
	}
	return "asked to run"
}
