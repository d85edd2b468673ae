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
	"github.com/dendrascience/dendra-jobs/job"
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
	w.Unserved, w.UnservedTags = Unserved(slices.Collect(maps.Values(needs)), services.Live)
	return w, nil
}

// Need is what a job asks of a worker: that it serves a type, has tags, and is of the build that
// its run is pinned to, as in [Run]. A bound job runs on any build of its service.
type Need struct {
	Type  string
	Bind  map[string]string
	Build string
}

// offered says that a service that may be so serves the type, and that one of these has the
// tags.
func (n Need) offered(services []LiveService, may func(ServiceState) bool) (serves, bound bool) {
	for _, s := range services {
		if may(s.State) && s.Serves(n.Type) && n.fits(s) {
			serves, bound = true, bound || s.Has(n.Bind)
		}
	}
	return serves, bound
}

// fits reports whether a service is of the build that is asked for.
func (n Need) fits(s LiveService) bool {
	return n.Build == "" || len(n.Bind) > 0 || s.DeploymentVersion() == n.Build
}

// unserved says why none of some services can be at work on a run, "" if one can. One that
// ends its runs may be.
func (n Need) unserved(services []LiveService) string {
	serves, bound := n.offered(services, func(s ServiceState) bool { return s != ServiceLost })
	switch {
	case !serves && n.Build != "" && len(n.Bind) == 0:
		return "no live worker of build " + n.Build + " serves " + n.Type
	case !serves:
		return "no live worker serves " + n.Type
	case !bound:
		return "no live worker that serves " + n.Type + " has the tags " + job.TagsText(n.Bind)
	}
	return ""
}

// Unserved are the types, and the tags, that jobs need and that no service offers to a run
// that begins now.
func Unserved(needs []Need, services []LiveService) (types []UnservedType, tags []UnservedTags) {
	asked := map[string]int{}
	bound := map[string]*UnservedTags{}
	for _, n := range needs {
		serves, has := n.offered(services, func(s ServiceState) bool { return s == ServiceServing })
		switch {
		case !serves:
			asked[n.Type]++
		case !has:
			key := fmt.Sprint(n.Type, n.Bind) // Maps are printed in the order of their keys.
			if bound[key] == nil {
				bound[key] = &UnservedTags{Type: n.Type, Tags: n.Bind}
			}
			bound[key].Jobs++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		types = append(types, UnservedType{Type: name, Jobs: asked[name]})
	}
	for _, key := range slices.Sorted(maps.Keys(bound)) {
		tags = append(tags, *bound[key])
	}
	return types, tags
}

// serve notes of the jobs under way whether a live worker serves them. Where workers cannot
// be read, that is not known.
func (c *conn) serve(ctx context.Context, jobs ...*Facts) error {
	now := time.Now()
	jobs = slices.DeleteFunc(jobs, func(f *Facts) bool { return !f.underWay(now) })
	if len(jobs) == 0 {
		return nil
	}
	services, err := (&WorkerClient{c}).Services(ctx, time.Time{})
	if errors.Join(err, services.Unreadable) != nil {
		return ctx.Err()
	}
	for _, f := range jobs {
		f.Serve(services.Live)
	}
	return nil
}

// needs are what the jobs on schedule and under way ask of workers, by their ids. Lists of
// schedules have no definitions: their latest runs do.
func (c *conn) needs(ctx context.Context) (map[string]Need, error) {
	jobs, latest, err := c.scanSchedules(ctx, "")
	if err != nil {
		return nil, err
	}
	needs := map[string]Need{}
	for id, facts := range jobs {
		if facts.Type != "" {
			needs[id] = Need{Type: facts.Type}
		}
	}
	add := func(info *workflowpb.WorkflowExecutionInfo) {
		attribute := func(name string) string { return temporalclient.Attribute(info.GetSearchAttributes(), name) }
		n := Need{Type: attribute(contract.AttributeJobType.GetName())}
		if j, ok := temporalclient.MemoDefinition(info.GetMemo()); ok {
			n.Bind = j.Options.Bind
		}
		if id := attribute(contract.AttributeJobID.GetName()); id != "" && n.Type != "" {
			needs[id] = n
		}
	}
	if err := c.eachLatest(ctx, latest, add); err != nil {
		return nil, err
	}
	query := fmt.Sprintf("ExecutionStatus = 'Running' AND WorkflowType IN ('%s', '%s')", contract.RunJobType, contract.ContinuousJobType)
	return needs, c.listWorkflows(ctx, query, 0, add)
}
