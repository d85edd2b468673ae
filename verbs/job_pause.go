package verbs

import (
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// PauseJob keeps a job from starting. It adds its reason to those of a paused job, but nobody
// offers that.
var PauseJob = row(Verb{
	Name: "pause-job", Command: "jobs pause", Procedure: jobsv1connect.JobServicePauseJobProcedure, Role: RoleOperator, Kind: KindJob,
	Label: "Pause", ManyJobs: true,
	WhyNot: func(s Subject) string {
		if s.Job.paused() {
			return "it is paused already"
		}
		return s.Job.takesNoPause()
	},
}, func(a Args) *jobsv1.PauseJobRequest { return &jobsv1.PauseJobRequest{Id: a.object(), Reason: a.Reason} },
	func(a Args, answer *jobsv1.PauseJobResponse) Done {
		return ofJob(a, noted("paused", already(answer.GetPreviousReason())))
	})

// takesNoPause is why a job that is not paused can be neither paused nor resumed.
func (j JobState) takesNoPause() string {
	switch {
	case j.Mode != Recurring && j.Mode != Continuous:
		return "it cannot be paused: stop it, or pause its queue"
	case j.over():
		return "it does not run: restart it first"
	}
	return ""
}
