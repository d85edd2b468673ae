package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// Workers are the worker processes of a namespace.
type Workers struct {
	// Services are the live worker processes, by worker type and name.
	Services []LiveService `json:"services"`
	// Lost are those that fell silent within the last hour and have not returned.
	Lost []LiveService `json:"lost"`
	// Unserved are the job types that nobody serves.
	Unserved []UnservedType `json:"unserved"`
	// UnservedTags are tags that jobs are bound to and that no live worker that serves their
	// type has.
	UnservedTags []UnservedTags `json:"unserved_tags"`
}

// UnservedTags are tags that jobs of a type are bound to.
type UnservedTags struct {
	Type string            `json:"type"`
	Tags map[string]string `json:"tags"`
	Jobs int               `json:"jobs"`
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
// from their turn on. The tags that a recurring job is bound to are known once it has run. A
// service that died is taken for dead after its service timeout, 15 seconds by default;
// jobs may take a second to show.
func (c *WorkerClient) List(ctx context.Context) (*Workers, error) {
	services, err := c.Services(ctx, time.Now().Add(-lostFor))
	if err := errors.Join(err, services.Unreadable); err != nil {
		return nil, err
	}
	needs, err := c.needs(ctx)
	if err != nil {
		return nil, err
	}
	w := &Workers{Services: services.Live, Lost: services.Lost}
	w.addUnserved(needs)
	return w, nil
}

// need is what a job asks of a worker.
type need struct {
	typeName string
	bind     map[string]string
}

// serves says that a live worker takes runs of a job type with some tags.
func (w *Workers) serves(typeName string, tags map[string]string) bool {
	return slices.ContainsFunc(w.Services, func(s LiveService) bool {
		return s.State == ServiceServing && s.Serves(typeName) && s.Has(tags)
	})
}

// addUnserved adds what jobs, by their ids, need and nobody offers.
func (w *Workers) addUnserved(needs map[string]need) {
	types := map[string]int{}
	bound := map[string]*UnservedTags{}
	for _, n := range needs {
		switch {
		case !w.serves(n.typeName, nil):
			types[n.typeName]++
		case !w.serves(n.typeName, n.bind):
			key := fmt.Sprint(n.typeName, n.bind) // Maps are printed in the order of their keys.
			if bound[key] == nil {
				bound[key] = &UnservedTags{Type: n.typeName, Tags: n.bind}
			}
			bound[key].Jobs++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		w.Unserved = append(w.Unserved, UnservedType{Type: name, Jobs: types[name]})
	}
	for _, key := range slices.Sorted(maps.Keys(bound)) {
		w.UnservedTags = append(w.UnservedTags, *bound[key])
	}
}

// needs are what the jobs on schedule and under way ask of workers, by their ids. Lists of
// schedules have no definitions: their latest runs do.
func (c *conn) needs(ctx context.Context) (map[string]need, error) {
	jobs, latest, err := c.scanSchedules(ctx, "")
	if err != nil {
		return nil, err
	}
	needs := map[string]need{}
	for id, facts := range jobs {
		if facts.Type != "" {
			needs[id] = need{typeName: facts.Type}
		}
	}
	add := func(info *workflowpb.WorkflowExecutionInfo) {
		attribute := func(name string) string { return temporalclient.Attribute(info.GetSearchAttributes(), name) }
		n := need{typeName: attribute(contract.AttributeJobType.GetName())}
		if j, ok := temporalclient.MemoDefinition(info.GetMemo()); ok {
			n.bind = j.Options.Bind
		}
		if id := attribute(contract.AttributeJobID.GetName()); id != "" && n.typeName != "" {
			needs[id] = n
		}
	}
	if err := c.eachLatest(ctx, latest, add); err != nil {
		return nil, err
	}
	query := fmt.Sprintf("ExecutionStatus = 'Running' AND WorkflowType IN ('%s', '%s')", contract.RunJobType, contract.ContinuousJobType)
	return needs, c.listWorkflows(ctx, query, 0, add)
}
