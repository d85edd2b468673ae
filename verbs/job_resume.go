package verbs

import (
	"cmp"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// ResumeJob ends all pauses of a job. It also makes a failing continuous job forget its failures,
// but nobody offers that.
var ResumeJob = row(Verb{
	Name: "resume-job", Command: "jobs resume", Procedure: jobsv1connect.JobServiceResumeJobProcedure, Role: RoleOperator, Kind: KindJob, ReasonShown: true,
	Label: "Resume", ManyJobs: true, Action: jobsv1.AlertAction_ALERT_ACTION_RESUME_JOB,
	WhyNot: func(s Subject) string {
		if !s.Job.paused() {
			return cmp.Or(s.Job.takesNoPause(), notPaused)
		}
		return ""
	},
}, func(a Args) *jobsv1.ResumeJobRequest {
	return &jobsv1.ResumeJobRequest{Id: a.object()}
},
	func(a Args, answer *jobsv1.ResumeJobResponse) Done {
		switch {
		case answer.GetUnchanged():
			done := ofJob(a, noted(unchanged, notPaused))
			done.Unchanged = true
			return done
		case answer.GetFailuresReset():
			return ofJob(a, noted("resumed", "it was not paused; its count of failures is reset"))
		}
		return ofJob(a, "resumed")
	})

const notPaused = "it is not paused; to run it now, trigger it"

// unchanged is the result of a verb that had nothing to do.
const unchanged = "unchanged"
