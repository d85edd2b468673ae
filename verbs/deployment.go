package verbs

import (
	"fmt"
	"strings"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// DeploymentVerbs are the verbs of Worker Deployments. The first name is that of the deployment,
// the next ones are builds. Whether one applies is Temporal's to say.
func DeploymentVerbs() []*Verb {
	return []*Verb{RampBuild, PromoteBuild, RollbackDeployment, MoveRuns, PruneBuilds}
}

// RampBuild gives a build a part of the new runs: that of Args.With.
var RampBuild = row(Verb{
	Name: "ramp-build", Command: "deploy ramp", Procedure: jobsv1connect.DeploymentServiceRampBuildProcedure, Role: RoleAdmin, Kind: KindDeployment,
}, func(a Args) *jobsv1.RampBuildRequest {
	return &jobsv1.RampBuildRequest{Deployment: a.name(0), BuildId: a.name(1)}
}, func(a Args, answer *jobsv1.RampBuildResponse) Done {
	result := "it takes none of the new runs"
	for _, b := range answer.GetDeployment().GetBuilds() {
		if b.GetId() == a.name(1) && b.GetStatus() == jobsv1.BuildStatus_BUILD_STATUS_RAMPING {
			result = fmt.Sprintf("it takes %g %% of the new runs", b.GetPercentage())
		}
	}
	return Done{Text: "Build " + a.name(1) + ": " + result, Result: result}
})

// PromoteBuild makes a build the current one.
var PromoteBuild = row(Verb{
	Name: "promote-build", Command: "deploy promote", Procedure: jobsv1connect.DeploymentServicePromoteBuildProcedure, Role: RoleAdmin, Kind: KindDeployment,
}, func(a Args) *jobsv1.PromoteBuildRequest {
	return &jobsv1.PromoteBuildRequest{Deployment: a.name(0), BuildId: a.name(1)}
}, func(_ Args, answer *jobsv1.PromoteBuildResponse) Done { return ofRouting(answer.GetDeployment()) })

// RollbackDeployment takes the last change of the routing back.
var RollbackDeployment = row(Verb{
	Name: "rollback-deployment", Command: "deploy rollback", Procedure: jobsv1connect.DeploymentServiceRollbackDeploymentProcedure,
	Role: RoleAdmin, Kind: KindDeployment,
}, func(a Args) *jobsv1.RollbackDeploymentRequest {
	return &jobsv1.RollbackDeploymentRequest{Deployment: a.name(0)}
}, func(_ Args, answer *jobsv1.RollbackDeploymentResponse) Done { return ofRouting(answer.GetDeployment()) })

// ofRouting says which build takes the new runs.
func ofRouting(d *jobsv1.Deployment) Done {
	var held []string
	result := "no build is current"
	for _, b := range d.GetBuilds() {
		if b.GetStatus() == jobsv1.BuildStatus_BUILD_STATUS_CURRENT {
			result = "build " + b.GetId() + " takes all new runs"
		} else if b.GetHeld() != "" && b.GetRuns()+b.GetLongRunning() > 0 {
			held = append(held, About("build "+b.GetId(), b.GetHeld()))
		}
	}
	if len(held) > 0 {
		result += "; " + strings.Join(held, "; ")
	}
	return Done{Text: strings.ToUpper(result[:1]) + result[1:], Result: result}
}

// MoveRuns moves what one build holds to another.
var MoveRuns = row(Verb{
	Name: "move-runs", Command: "deploy move", Procedure: jobsv1connect.DeploymentServiceMoveRunsProcedure, Role: RoleAdmin, Kind: KindDeployment,
	Question: "Move what is under way to build %s? It goes on there in the middle of its history, and fails if the code does not fit.",
}, func(a Args) *jobsv1.MoveRunsRequest {
	return &jobsv1.MoveRunsRequest{Deployment: a.name(0), FromBuildId: a.name(1), ToBuildId: a.name(2)}
}, func(a Args, answer *jobsv1.MoveRunsResponse) Done {
	result := plantext.Counted(int(answer.GetMoveCount()), "workflow", "workflows") + " moved to build " + a.name(2)
	return Done{Text: result, Result: result, Unchanged: answer.GetMoveCount() == 0}
})

// PruneBuilds removes builds that hold nothing.
var PruneBuilds = row(Verb{
	Name: "prune-builds", Command: "deploy prune", Procedure: jobsv1connect.DeploymentServicePruneBuildsProcedure, Role: RoleAdmin, Kind: KindDeployment,
}, func(a Args) *jobsv1.PruneBuildsRequest { return &jobsv1.PruneBuildsRequest{Deployment: a.name(0)} },
	func(_ Args, answer *jobsv1.PruneBuildsResponse) Done {
		removed := answer.GetBuildIds()
		result := plantext.Counted(len(removed), "build", "builds") + " removed"
		if len(removed) > 0 {
			result += ": " + strings.Join(removed, ", ")
		}
		return Done{Text: result, Result: result, Unchanged: len(removed) == 0}
	})
