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
	Label: "Run now", Action: jobsv1.AlertAction_ALERT_ACTION_RUN_JOB,
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
		done := ofJob(a, "asked to run")
		switch {
		case answer.GetPlace() != nil:
			done = ofJob(a, fmt.Sprintf("in queue %s, %d ahead", answer.GetQueue(), answer.GetPlace().GetAhead()))
		case answer.GetRunName() != "":
			done = ofJob(a, "started")
		}
		done.Run = answer.GetRunName()
		return done
	})
