package client

import (
	"context"
	"errors"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/dendrascience/dendra-jobs/contract"
)

// Ramp gives a part of the new runs to a build, in percent; the current build keeps the rest.
// With 0 it takes none any more.
func (c *DeploymentClient) Ramp(ctx context.Context, name, build string, percentage float32) (*Deployment, error) {
	d, err := c.routing(ctx, name)
	if err != nil {
		return nil, err
	}
	id := build
	switch b := d.Find(build); {
	case b == nil:
		return nil, d.unknown(build)
	case b.Status == enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_CURRENT:
		return nil, stateErrorf("build %s is the current build of deployment %s: it takes all new runs but those of a ramping build", build, name)
	case percentage == 0 && b.Status != enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_RAMPING:
		return nil, stateErrorf("build %s takes no part of the new runs", build)
	case percentage == 0:
		build = "" // Temporal's way to end a ramp.
	}
	taken := func(b *Build) bool { return b.Percentage == percentage } // 0 of a build that does not ramp
	return c.changed(ctx, d, id, taken, func() error {
		_, err := call(ctx, c.conn, c.temporal.WorkflowService().SetWorkerDeploymentRampingVersion, &workflowservice.SetWorkerDeploymentRampingVersionRequest{
			Namespace: c.namespace, DeploymentName: name, BuildId: build, Percentage: percentage, ConflictToken: d.token, Identity: c.identity,
		})
		return err
	})
}

// Promote makes a build the current one: it takes all new runs. Loops, queues and records of
// applied jobs are asked to go on with it. Force does it although the build has no workers for a
// task queue that the present one serves. It is no error if the build is the current one: then
// who has not gone on is asked again.
func (c *DeploymentClient) Promote(ctx context.Context, name, build string, force bool) (*Deployment, error) {
	d, err := c.routing(ctx, name)
	if err != nil {
		return nil, err
	}
	if d.Find(build) == nil {
		return nil, d.unknown(build)
	}
	taken := func(b *Build) bool { return b.Status == enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_CURRENT }
	return c.changed(ctx, d, build, taken, func() error {
		_, err := call(ctx, c.conn, c.temporal.WorkflowService().SetWorkerDeploymentCurrentVersion, &workflowservice.SetWorkerDeploymentCurrentVersionRequest{
			Namespace: c.namespace, DeploymentName: name, BuildId: build, ConflictToken: d.token, Identity: c.identity,
			IgnoreMissingTaskQueues: force, AllowNoPollers: force,
		})
		return err
	})
}

// lacksWorkers reports whether Temporal refused to give runs to a build since it does not serve
// all that the current build serves. Nothing but the text of the error says so.
func lacksWorkers(err error) bool {
	var refused *serviceerror.FailedPrecondition
	return errors.As(err, &refused) && strings.Contains(refused.Message, "missing active task queues")
}

// Rollback ends a ramp, or makes the build the current one that was it before.
func (c *DeploymentClient) Rollback(ctx context.Context, name string) (*Deployment, error) {
	d, err := c.routing(ctx, name)
	if err != nil {
		return nil, err
	}
	if ramping := d.withStatus(enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_RAMPING); ramping != nil {
		return c.Ramp(ctx, name, ramping.ID, 0)
	}
	before := d.before()
	if before == nil {
		return nil, stateErrorf("no other build of deployment %s was the current one", name)
	}
	return c.Promote(ctx, name, before.ID, false)
}

// unknown says that a deployment has no such build.
func (d *Deployment) unknown(build string) error {
	var known []string
	for _, b := range d.Builds {
		known = append(known, b.ID)
	}
	return absentErrorf("deployment %s has no build %s: it has %s", d.Name, build, strings.Join(known, ", "))
}

// changed makes a change of the routing to a build, waits until the task queues know of it, and
// asks those that last to go on with their new build. Taken says whether the build is as the change
// makes it.
func (c *DeploymentClient) changed(ctx context.Context, d *Deployment, build string, taken func(*Build) bool, change func() error) (*Deployment, error) {
	began := time.Now()
	err := change()
	// Workers that have just started are not known on all their task queues.
	for try := 1; lacksWorkers(err) && time.Since(began) < propagationWait && pause(ctx, callBackoff.Wait(try)) == nil; try++ {
		err = change()
	}
	if errors.Is(err, ErrSlow) {
		err = c.awaitTaken(ctx, d.Name, build, taken)
	}
	var refused *serviceerror.FailedPrecondition
	switch {
	case lacksWorkers(err):
		return nil, stateErrorf("build %s has no workers for a task queue that the current build serves: start them first", build)
	case errors.As(err, &refused):
		return nil, stateErrorf("deployment %s: %s", d.Name, refused.Message)
	case err != nil:
		return nil, explain("deployment "+d.Name, err)
	}
	if err := c.awaitPropagation(ctx, d.Name); err != nil {
		return nil, err
	}
	if err := c.wakeLongRunning(ctx, d.Name); err != nil {
		return nil, err
	}
	return c.Get(ctx, d.Name)
}

// awaitTaken waits until a build is as a change makes it whose answer did not come: Temporal may take
// longer than a call waits. Who rolls back again may undo what was rolled back.
func (c *DeploymentClient) awaitTaken(ctx context.Context, name, build string, taken func(*Build) bool) error {
	ctx, cancel := context.WithTimeout(ctx, propagationWait)
	defer cancel()
	for try := 1; ; try++ {
		d, err := c.routing(ctx, name)
		if err == nil && d.Find(build) != nil && taken(d.Find(build)) {
			return nil
		}
		if pause(ctx, callBackoff.Wait(try)) != nil {
			return ErrOutcomeUnknown
		}
	}
}

// propagationWait bounds the wait for the task queues to know of a build, and of a change.
const propagationWait = 10 * time.Second

func (c *DeploymentClient) awaitPropagation(ctx context.Context, name string) error {
	began := time.Now()
	for try := 1; ; try++ {
		d, err := c.routing(ctx, name)
		if err != nil || d.propagated || time.Since(began) > propagationWait {
			return err
		}
		if err := pause(ctx, callBackoff.Wait(try)); err != nil {
			return err
		}
	}
}

// wakeLongRunning signals all that lasts, and that another build than the current one holds. Those whose
// part of the new runs has not changed stay where they are.
func (c *DeploymentClient) wakeLongRunning(ctx context.Context, name string) error {
	d, err := c.routing(ctx, name)
	if err != nil {
		return err
	}
	for _, b := range d.Builds {
		if b.Status == enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_CURRENT && d.withStatus(enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_RAMPING) == nil {
			continue
		}
		if err := c.each(ctx, heldLongRunning(name, b.ID), c.wake); err != nil {
			return err
		}
	}
	return nil
}

func (c *DeploymentClient) wake(ctx context.Context, run *workflowpb.WorkflowExecutionInfo) error {
	err := c.temporal.SignalWorkflow(ctx, run.GetExecution().GetWorkflowId(), "", contract.SignalNewBuild, nil)
	if isNotFound(err) {
		return nil // It has ended meanwhile.
	}
	return explain("wake "+run.GetExecution().GetWorkflowId(), err)
}
