package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
)

// Environment variables of Worker Versioning, as Temporal's worker controller sets them.
const (
	variableDeployment = "TEMPORAL_DEPLOYMENT_NAME"
	variableBuildID    = "TEMPORAL_WORKER_BUILD_ID"
)

// maxVersionBytes is the server's limit on the name of a deployment with a build id.
const maxVersionBytes = 200

// buildIDOfRevision is how much of a commit is a build id.
const buildIDOfRevision = 12

// withBuildID fills in the build id of a versioned worker: the commit that the program was
// built from.
func (c Config) withBuildID() Config {
	if c.Deployment != "" && c.BuildID == "" {
		built := readBuild().Revision
		c.BuildID = built[:min(len(built), buildIDOfRevision)]
	}
	return c
}

func (c Config) validateVersion() []error {
	var problems []error
	switch {
	case c.Deployment == "" && c.BuildID != "":
		problems = append(problems, fmt.Errorf("build id %.40q is of no use without the name of a deployment", c.BuildID))
	case c.Deployment == "":
	case c.BuildID == "":
		problems = append(problems, errors.New("this program does not know its commit: a versioned worker needs a build id"))
	case strings.ContainsAny(c.Deployment, ".:"):
		problems = append(problems, fmt.Errorf("name of deployment %.80q has a dot or a colon", c.Deployment))
	case strings.Contains(c.BuildID, ":"):
		problems = append(problems, fmt.Errorf("build id %.80q has a colon", c.BuildID))
	case len(c.Deployment)+len(c.BuildID) > maxVersionBytes:
		problems = append(problems, fmt.Errorf("the name of the deployment and the build id have %d bytes, more than %d",
			len(c.Deployment)+len(c.BuildID), maxVersionBytes))
	}
	return problems
}

// versioning are the SDK's options of a worker of the shared task queues. The process's own
// task queue is not versioned: a bound job runs on its service, whichever build that is.
func (h *host) versioning(on taskQueue) worker.DeploymentOptions {
	if h.Deployment == "" || on == serviceTaskQueue {
		return worker.DeploymentOptions{}
	}
	return worker.DeploymentOptions{
		UseVersioning:             true,
		Version:                   worker.WorkerDeploymentVersion{DeploymentName: h.Deployment, BuildID: h.BuildID},
		DefaultVersioningBehavior: workflow.VersioningBehaviorPinned,
	}
}

// errUnknownBuild says that no poll of the build has reached the server yet.
var errUnknownBuild = errors.New("temporal does not know the build yet")

// becomeCurrent makes the build the current one of a deployment that has none: without one,
// nothing is given to versioned workers. It keeps trying until Temporal knows the build, so
// that it can be promoted, and one is current, or until ctx ends.
func (h *host) becomeCurrent(ctx context.Context) {
	if h.Deployment == "" {
		return
	}
	backoff := job.Backoff{Initial: job.Duration(250 * time.Millisecond), Max: job.Duration(15 * time.Second), Coefficient: 2}
	for attempt := 1; ctx.Err() == nil; attempt++ {
		current, err := h.currentBuild(ctx)
		if err == nil {
			h.logger.Info("versioned", "deployment", h.Deployment, "build", h.BuildID, "current", current)
			return
		}
		var unknown *serviceerror.NotFound // Until the first poll has reached the server.
		if !errors.As(err, &unknown) && !errors.Is(err, errUnknownBuild) {
			h.logger.Warn("the current build of the deployment is not known yet", "deployment", h.Deployment, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(backoff.Wait(attempt)):
		}
	}
}

// currentBuild is the current build of the deployment: this one, if there was none.
func (h *host) currentBuild(ctx context.Context) (string, error) {
	handle := h.client.WorkerDeploymentClient().GetHandle(h.Deployment)
	described, err := handle.Describe(ctx, client.WorkerDeploymentDescribeOptions{})
	if err != nil {
		return "", fmt.Errorf("describe deployment %s: %w", h.Deployment, err)
	}
	if !slices.ContainsFunc(described.Info.VersionSummaries, func(v client.WorkerDeploymentVersionSummary) bool { return v.Version.BuildID == h.BuildID }) {
		return "", errUnknownBuild
	}
	if current := described.Info.RoutingConfig.CurrentVersion; current != nil {
		return current.BuildID, nil
	}
	// Another worker may do the same at this moment: then the token is an old one.
	_, err = handle.SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{
		BuildID: h.BuildID, ConflictToken: described.ConflictToken, IgnoreMissingTaskQueues: true,
	})
	if err != nil {
		return "", fmt.Errorf("make build %s the first current one of deployment %s: %w", h.BuildID, h.Deployment, err)
	}
	return h.BuildID, nil
}
