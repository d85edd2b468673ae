package verbs

import (
	"time"

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
		return ofJob(a, "the start at "+answer.GetSkippedTime().AsTime().UTC().Format(time.RFC3339)+" does not take place")
	})
