package verbs

import (
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// TerminateRun ends a run at once.
var TerminateRun = row(Verb{
	Name: "terminate-run", Command: "runs terminate", Procedure: jobsv1connect.RunServiceTerminateRunProcedure, Role: RoleAdmin, Kind: KindRun, ReasonShown: true,
	Label: "Terminate…", WhyNot: hasEnded,
	Question: "Terminate %s? A terminated run does not save its position: its progress since its last checkpoint is lost.",
}, func(a Args) *jobsv1.TerminateRunRequest {
	return &jobsv1.TerminateRunRequest{Name: a.object()}
},
	func(a Args, _ *jobsv1.TerminateRunResponse) Done { return ofRun(a, "terminated") })
