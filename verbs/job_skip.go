package verbs

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/job/wording"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// SkipNextStart leaves out the next start of a recurring job.
var SkipNextStart = row(Verb{
	Name: "skip-next", Command: "jobs skip-next", Procedure: jobsv1connect.JobServiceSkipNextStartProcedure, Role: RoleOperator, Kind: KindJob,
	Label: "Skip next start",
	WhyNot: func(s Subject) string {
		if s.Job.Mode != Recurring {
			return "it is not recurring"
		}
		return ""
	},
}, func(a Args) *jobsv1.SkipNextStartRequest { return &jobsv1.SkipNextStartRequest{Id: a.object()} },
	func(a Args, answer *jobsv1.SkipNextStartResponse) Done {
		result := "the start of " + utc(answer.GetSkippedTime()) + " is skipped; no start is left"
		if answer.GetNextStartTime() != nil {
			result = "the start of " + utc(answer.GetSkippedTime()) + " is skipped; the next start is " + utc(answer.GetNextStartTime())
		}
		return ofJob(a, result)
	})

// utc is a time as sentences have it.
func utc(at *timestamppb.Timestamp) string { return wording.Stamp(at.AsTime()) }
