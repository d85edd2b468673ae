package client

import (
	"context"
	"errors"
	"sync"
	"time"

	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// Move has the open workflows that one build holds go on with another, in the middle of their
// histories. It is for a build whose workers are gone, or whose code fails: what replays another
// history than its own fails until it is moved back.
func (c *DeploymentClient) Move(ctx context.Context, name, from, to string) (moved int, err error) {
	d, err := c.routing(ctx, name)
	if err != nil {
		return 0, err
	}
	for _, id := range []string{from, to} {
		if d.Find(id) == nil {
			return 0, d.unknown(id)
		}
	}
	if from == to {
		return 0, stateErrorf("build %s is both where from and where to", from)
	}
	version := &deploymentpb.WorkerDeploymentVersion{DeploymentName: name, BuildId: to}
	var mu sync.Mutex
	err = c.each(ctx, held(name, from), func(ctx context.Context, run *workflowpb.WorkflowExecutionInfo) error {
		_, err := call(ctx, c.conn, c.temporal.WorkflowService().UpdateWorkflowExecutionOptions, &workflowservice.UpdateWorkflowExecutionOptionsRequest{
			Namespace: c.namespace, WorkflowExecution: run.GetExecution(), Identity: c.identity,
			WorkflowExecutionOptions: &workflowpb.WorkflowExecutionOptions{VersioningOverride: &workflowpb.VersioningOverride{
				Override: &workflowpb.VersioningOverride_OneTime{
					OneTime: &workflowpb.VersioningOverride_OneTimeOverride{TargetDeploymentVersion: version},
				},
			}},
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"versioning_override"}},
		})
		if isNotFound(err) {
			return nil
		}
		if err == nil { // A workflow that waits has no workflow task that could go there.
			err = c.wake(ctx, run)
		}
		mu.Lock()
		defer mu.Unlock()
		moved++
		return explain("move "+run.GetExecution().GetWorkflowId(), err)
	})
	return moved, err
}

// Prune removes the builds that hold nothing and have no workers, and gives their ids.
func (c *DeploymentClient) Prune(ctx context.Context, name string) (pruned []string, err error) {
	d, err := c.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, b := range d.Builds {
		if b.Workers > 0 || b.Holds(time.Now()) != "" {
			continue
		}
		_, err := call(ctx, c.conn, c.temporal.WorkflowService().DeleteWorkerDeploymentVersion, &workflowservice.DeleteWorkerDeploymentVersionRequest{
			Namespace: c.namespace, Identity: c.identity, SkipDrainage: true, // What it holds was counted.
			DeploymentVersion: &deploymentpb.WorkerDeploymentVersion{DeploymentName: name, BuildId: b.ID},
		})
		var refused *serviceerror.FailedPrecondition
		switch {
		case errors.As(err, &refused): // Its pollers are remembered for five minutes.
		case err != nil:
			return pruned, explain("remove build "+b.ID, err)
		default:
			pruned = append(pruned, b.ID)
		}
	}
	return pruned, nil
}

// movesAtOnce bounds the workflows that are woken or moved at a time.
const movesAtOnce = 16

// each does something with each workflow that a query finds, several at a time.
func (c *conn) each(ctx context.Context, query string, do func(context.Context, *workflowpb.WorkflowExecutionInfo) error) error {
	var found []*workflowpb.WorkflowExecutionInfo
	if err := c.listWorkflows(ctx, query, 0, func(info *workflowpb.WorkflowExecutionInfo) { found = append(found, info) }); err != nil {
		return err
	}
	var wait sync.WaitGroup
	errs := make([]error, len(found))
	slots := make(chan struct{}, movesAtOnce)
	for n, info := range found {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			errs[n] = do(ctx, info)
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}
