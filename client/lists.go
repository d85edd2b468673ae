package client

import (
	"context"
	"fmt"
	"strings"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// listWorkflows goes through everything that a visibility query finds.
func (c *conn) listWorkflows(ctx context.Context, query string, limit int, visit func(*workflowpb.WorkflowExecutionInfo)) error {
	return c.eachWorkflow(ctx, query, limit, func(info *workflowpb.WorkflowExecutionInfo) error {
		visit(info)
		return nil
	})
}

// eachWorkflow is listWorkflows, and ends with the first error of visit.
func (c *conn) eachWorkflow(ctx context.Context, query string, limit int, visit func(*workflowpb.WorkflowExecutionInfo) error) error {
	var page []byte
	for count := 0; ; {
		response, err := c.temporal.ListWorkflow(ctx, listRequest(c.namespace, query, page, limit-count))
		if err != nil {
			return fmt.Errorf("list workflows: %w", ofServer(ctx, err))
		}
		for _, info := range response.GetExecutions() {
			if err := visit(info); err != nil {
				return err
			}
			if count++; limit > 0 && count == limit {
				return nil
			}
		}
		if page = response.GetNextPageToken(); len(page) == 0 {
			return nil
		}
	}
}

func listRequest(namespace, query string, page []byte, limit int) *workflowservice.ListWorkflowExecutionsRequest {
	const most = 1000
	size := int32(most)
	if limit > 0 && limit < most {
		size = int32(limit) //nolint:gosec // Below most.
	}
	return &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: namespace, Query: query, NextPageToken: page, PageSize: size,
	}
}

// quote writes a value for a visibility query.
func quote(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}
