package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
)

// changesBuild reports whether the workflow should go on with another build of the workers, by
// continuing as new. A workflow task says so: whoever makes a build the current one sends
// contract.SignalNewBuild to those that wait.
func changesBuild(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetTargetWorkerDeploymentVersionChanged()
}

// mustContinueAsNew reports whether the history has grown enough, or another build is to go on.
func mustContinueAsNew(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() || changesBuild(ctx)
}

// continueAsNew goes on in a new run: with the current build, where workers are versioned.
func continueAsNew(ctx workflow.Context, workflowType string, state any) error {
	signals := workflow.GetSignalChannel(ctx, contract.SignalNewBuild)
	for signals.ReceiveAsync(nil) { //nolint:revive // Nothing is in them, and what is unread would be reported.
	}
	return workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{
		InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade,
	}, workflowType, state)
}
