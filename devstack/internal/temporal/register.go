package temporal

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"
)

// retention is how long a closed workflow is kept: the time for which its id
// tells a repeated start from a new one.
const retention = 30 * 24 * time.Hour

// register brings the namespace up to date, which an older stack may have made
// with fewer search attributes, and returns once they can be used.
func register(ctx context.Context, address, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	c, err := dial(ctx, address, namespace)
	if err != nil {
		return fmt.Errorf("the frontend does not answer: %w", err)
	}
	defer c.Close()
	if err := setRetention(ctx, c, namespace); err != nil {
		return fmt.Errorf("retention: %w", err)
	}
	if err := addSearchAttributes(ctx, c, namespace); err != nil {
		return fmt.Errorf("search attributes: %w", err)
	}
	return waitSearchable(ctx, c, namespace)
}

// dial waits for the frontend and for its view of the namespace.
func dial(ctx context.Context, address, namespace string) (client.Client, error) {
	c, err := client.NewLazyClient(client.Options{
		HostPort: address, Namespace: namespace, Logger: log.NewStructuredLogger(discard),
	})
	if err != nil {
		return nil, err
	}
	err = retry(ctx, func() error {
		_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
		return err
	})
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func setRetention(ctx context.Context, c client.Client, namespace string) error {
	found, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if err != nil {
		return err
	}
	if found.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration() == retention {
		return nil
	}
	_, err = c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: namespace,
		Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(retention)},
	})
	return err
}

func addSearchAttributes(ctx context.Context, c client.Client, namespace string) error {
	found, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return err
	}
	missing := make(map[string]enumspb.IndexedValueType)
	for name, want := range searchAttributes() {
		switch has, ok := found.GetCustomAttributes()[name]; {
		case !ok:
			missing[name] = want
		case has != want:
			return fmt.Errorf("%s has the type %s in this data folder and has to be %s", name, has, want)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: missing,
	})
	return err
}

// waitSearchable waits until a query may name the search attributes: the
// frontend reads the namespace anew every few seconds.
func waitSearchable(ctx context.Context, c client.Client, namespace string) error {
	for name := range searchAttributes() {
		err := retry(ctx, func() error {
			_, err := c.WorkflowService().CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
				Namespace: namespace, Query: name + " = 'none'",
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("search attribute %s cannot be used: %w", name, err)
		}
	}
	return nil
}

func retry(ctx context.Context, call func() error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := call()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w, last error: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}
