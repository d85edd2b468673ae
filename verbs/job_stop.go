package verbs

import (
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// StopJob ends what a job does now.
var StopJob = row(Verb{
	Name: "stop-job", Command: "jobs stop", Procedure: jobsv1connect.JobServiceStopJobProcedure, Role: RoleOperator, Kind: KindJob, ReasonShown: true,
	Label: "Stop…", ManyJobs: true, Question: "Stop %s? What runs now ends. A continuous job stays stopped until it is restarted.",
	WhyNot: func(s Subject) string {
		switch j := s.Job; {
		case j.over():
			return "it does not run"
		case j.Mode == Recurring && !j.UnderWay:
			return "it has no run under way"
		}
		return ""
	},
}, func(a Args) *jobsv1.StopJobRequest { return &jobsv1.StopJobRequest{Id: a.object()} },
	func(a Args, _ *jobsv1.StopJobResponse) Done { return ofJob(a, "stop requested") })
