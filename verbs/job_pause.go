package verbs

import (
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// PauseJob keeps a job from starting. It adds its reason to those of a paused job, but nobody
// offers that.
var PauseJob = row(Verb{
	Name: "pause-job", Command: "jobs pause", Procedure: jobsv1connect.JobServicePauseJobProcedure, Role: RoleOperator, Kind: KindJob, ReasonShown: true,
	Label: "Pause", ManyJobs: true,
	WhyNot: func(s Subject) string {
		if s.Job.paused() {
			return "it is paused already"
		}
		return s.Job.takesNoPause()
	},
}, func(a Args) *jobsv1.PauseJobRequest {
	return &jobsv1.PauseJobRequest{Id: a.object(), Duration: lasting(a)}
}, func(a Args, answer *jobsv1.PauseJobResponse) Done {
	return ofJob(a, noted(pausedUntil(answer.GetEndTime()), already(answer.GetPreviousReason())))
})

// lasting is how long a pause lasts, nil for no end.
func lasting(a Args) *durationpb.Duration {
	if a.For == 0 {
		return nil
	}
	return durationpb.New(a.For)
}

// pausedUntil is the result of a pause with its end, if it has one.
func pausedUntil(end *timestamppb.Timestamp) string {
	if end == nil {
		return "paused"
	}
	return "paused until " + utc(end)
}

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
