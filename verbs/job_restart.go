package verbs

import (
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// RestartJob starts a continuous job again, at its last checkpoint.
var RestartJob = row(Verb{
	Name: "restart-job", Command: "jobs restart", Procedure: jobsv1connect.JobServiceRestartJobProcedure, Role: RoleOperator, Kind: KindJob, ReasonShown: true,
	Label: "Restart", ManyJobs: true, Action: jobsv1.AlertAction_ALERT_ACTION_RESTART_JOB,
	WhyNot: func(s Subject) string {
		switch {
		case s.Job.Mode != Continuous:
			return "it is not continuous: trigger it instead"
		case s.Job.paused():
			return "it is paused: resume it first"
		}
		return ""
	},
}, func(a Args) *jobsv1.RestartJobRequest {
	return &jobsv1.RestartJobRequest{Id: a.object()}
},
	func(a Args, _ *jobsv1.RestartJobResponse) Done { return ofJob(a, "restarted") })
