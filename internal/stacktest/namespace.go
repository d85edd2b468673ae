package stacktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// serverQueue is the task queue from which Temporal itself works off the schedules
// of a namespace.
const serverQueue = "temporal-sys-per-ns-tq"

// registerNamespace makes a namespace like the stack's own, and returns its name
// when jobs and schedules work in it.
func registerNamespace(t testing.TB, s *Stack) string {
	t.Helper()
	c := s.Dial(t)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	like, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: s.Namespace})
	if err != nil {
		t.Fatalf("namespace %s: %v", s.Namespace, err)
	}
	name := fmt.Sprintf("test-%016x", rand.Uint64())
	// The server has one version for all namespaces: a change beside others is refused.
	WaitFor(t, "namespace "+name, func() (bool, error) {
		_, err := c.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
			Namespace:                        name,
			WorkflowExecutionRetentionPeriod: like.GetConfig().GetWorkflowExecutionRetentionTtl(),
		})
		var there *serviceerror.NamespaceAlreadyExists
		if errors.As(err, &there) {
			return true, nil
		}
		return err == nil, err
	})
	WaitFor(t, "the search attributes of namespace "+name, func() (bool, error) {
		_, err := c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
			Namespace: name,
			Config:    &namespacepb.NamespaceConfig{CustomSearchAttributeAliases: like.GetConfig().GetCustomSearchAttributeAliases()},
		})
		return err == nil, err
	})
	for _, attribute := range like.GetConfig().GetCustomSearchAttributeAliases() {
		WaitFor(t, "search attribute "+attribute, func() (bool, error) {
			_, err := c.WorkflowService().CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
				Namespace: name, Query: attribute + " = 'none'",
			})
			return err == nil, err
		})
	}
	WaitFor(t, "Temporal's own worker in namespace "+name, func() (bool, error) { return schedulesWork(ctx, c, name) })
	return name
}

// schedulesWork reports whether the server works off the schedules of a namespace.
func schedulesWork(ctx context.Context, c client.Client, namespace string) (bool, error) {
	queue, err := c.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: serverQueue},
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_WORKFLOW,
	})
	return len(queue.GetPollers()) > 0, err
}

// dropNamespace ends the work of the server in a namespace. What is in it stays.
func dropNamespace(t testing.TB, s *Stack) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	c := s.Dial(t)
	WaitFor(t, "the end of namespace "+s.Namespace, func() (bool, error) {
		_, err := c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
			Namespace:  s.Namespace,
			UpdateInfo: &namespacepb.UpdateNamespaceInfo{State: enumspb.NAMESPACE_STATE_DELETED},
		})
		return err == nil, err
	})
}
