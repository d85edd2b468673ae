package verbs

import (
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// CancelRun asks the handler of a run to stop.
var CancelRun = row(Verb{
	Name: "cancel-run", Command: "runs cancel", Procedure: jobsv1connect.RunServiceCancelRunProcedure, Role: RoleOperator, Kind: KindRun, ReasonShown: true,
	Label: "Cancel…", Question: "Cancel %s? A handler has its grace period to end.", WhyNot: hasEnded,
}, func(a Args) *jobsv1.CancelRunRequest {
	return &jobsv1.CancelRunRequest{Name: a.object()}
},
	func(a Args, _ *jobsv1.CancelRunResponse) Done { return ofRun(a, "stop requested") })
