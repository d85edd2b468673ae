package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/metadata"
)

// Workers are the worker processes of a namespace.
type Workers struct {
	// Services are the live worker processes, by worker type and name.
	Services []LiveService `json:"services"`
	// Lost are those that fell silent within the last hour and have not returned.
	Lost []LiveService `json:"lost"`
	// Unserved are the job types that nobody serves.
	Unserved []UnservedType `json:"unserved"`
}

// UnservedType is a job type of jobs that no live worker serves.
type UnservedType struct {
	Type string `json:"type"`
	// Jobs counts them: those on schedule, and those that run or want to.
	Jobs int `json:"jobs"`
}

// lostFor is how long a service that fell silent is listed.
const lostFor = time.Hour

// List lists the live workers, and the job types that have none: of the jobs
// on schedule and of those that run or want to. Items that wait in a queue count
// from their turn on. A service that died is taken for dead after its service
// timeout, 15 seconds by default; jobs may take a second to show.
func (c *WorkerClient) List(ctx context.Context) (*Workers, error) {
	services, err := c.Services(ctx, time.Now().Add(-lostFor))
	if err := errors.Join(err, services.Unreadable); err != nil {
		return nil, err
	}
	jobs, err := c.jobsByType(ctx)
	if err != nil {
		return nil, err
	}
	w := &Workers{Services: services.Live, Lost: services.Lost}
	for typeName, ids := range jobs {
		served := slices.ContainsFunc(services.Live, func(s LiveService) bool {
			return s.State == ServiceServing && s.Serves(typeName)
		})
		if !served {
			w.Unserved = append(w.Unserved, UnservedType{Type: typeName, Jobs: len(ids)})
		}
	}
	slices.SortFunc(w.Unserved, func(a, b UnservedType) int { return strings.Compare(a.Type, b.Type) })
	return w, nil
}

// jobsByType gives the ids of the jobs on schedule and under way, by their type.
func (c *conn) jobsByType(ctx context.Context) (map[string]map[string]bool, error) {
	rows := map[string]JobRow{}
	if err := c.scheduledRows(ctx, rows, nil); err != nil {
		return nil, err
	}
	jobs := map[string]map[string]bool{}
	add := func(typeName, id string) {
		if typeName == "" || id == "" {
			return
		}
		if jobs[typeName] == nil {
			jobs[typeName] = map[string]bool{}
		}
		jobs[typeName][id] = true
	}
	for id, row := range rows {
		add(row.Type, id)
	}
	query := fmt.Sprintf("ExecutionStatus = 'Running' AND WorkflowType IN ('%s', '%s')", contract.RunJobType, contract.ContinuousJobType)
	err := c.listWorkflows(ctx, query, 0, func(info *workflowpb.WorkflowExecutionInfo) {
		add(metadata.Attribute(info.GetSearchAttributes(), contract.AttributeJobType.GetName()),
			metadata.Attribute(info.GetSearchAttributes(), contract.AttributeJobID.GetName()))
	})
	return jobs, err
}
