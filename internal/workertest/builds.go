package workertest

import (
	"context"
	"testing"

	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

// StartBuild has a bare worker ask for work as a build of a deployment, on a task queue of its own,
// until the test ends. Nobody gives it any, and it announces nothing: that leaves tests beside it
// alone.
func StartBuild(t testing.TB, c sdk.Client, deployment, build string) {
	t.Helper()
	w := worker.New(c, "build-of-"+deployment, worker.Options{
		DisableWorkflowWorker: true,
		DeploymentOptions: worker.DeploymentOptions{
			UseVersioning: true, Version: worker.WorkerDeploymentVersion{DeploymentName: deployment, BuildID: build},
		},
	})
	w.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: "Nothing"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}
