package client

import (
	"context"
	"fmt"
	"slices"
	"strings"

	schedulepb "go.temporal.io/api/schedule/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// Find lists the recurring jobs, and the continuous jobs that have not been stopped, that
// match the filter, by id. A recurring job whose schedule is gone is there as long as it
// has a run. Unlike [JobClient.List] it reads nothing of other jobs. The lists behind it
// lag by about a second.
func (c *JobClient) Find(ctx context.Context, filter job.Filter) ([]job.Found, error) {
	var list []job.Found
	add := func(found job.Found, err error) error {
		if err == nil && filter.Matches(found) {
			if !filter.State {
				found.Paused, found.Failing = false, nil
			}
			list = append(list, found)
		}
		return err
	}
	latest := latestRuns{}
	err := c.findSchedules(ctx, findQuery(filter), latest, add)
	if err == nil && filter.State {
		err = c.addFailures(ctx, list, latest)
	}
	if err == nil {
		err = c.findContinuous(ctx, findQuery(filter), add)
	}
	if err == nil && filter.State {
		err = c.leaveOutProgressing(ctx, list)
	}
	if err == nil {
		err = c.findLeft(ctx, filter, list, add)
	}
	slices.SortFunc(list, func(a, b job.Found) int { return strings.Compare(a.ID, b.ID) })
	return list, err
}

// findQuery is a visibility query, "" for all jobs.
func findQuery(filter job.Filter) string {
	var terms []string
	if p := string(filter.Provider); p != "" {
		name := contract.AttributeProvider.GetName()
		terms = append(terms, fmt.Sprintf("(%s = %s OR %s STARTS_WITH %s)", name, quote(p), name, quote(p+".")))
	}
	if filter.Type != "" {
		terms = append(terms, contract.AttributeJobType.GetName()+" = "+quote(filter.Type))
	}
	if owner := filter.Owner.String(); owner != "" {
		terms = append(terms, contract.AttributeOwner.GetName()+" = "+quote(owner))
	}
	return strings.Join(terms, " AND ")
}

// addFailures notes which recurring jobs are failing.
func (c *conn) addFailures(ctx context.Context, list []job.Found, latest latestRuns) error {
	failing, err := c.failing(ctx, latest)
	for i := range list {
		list[i].Failing = failure(failing[list[i].ID])
	}
	return err
}

// leaveOutProgressing takes the failures from the continuous jobs whose present iteration
// has something done.
func (c *JobClient) leaveOutProgressing(ctx context.Context, list []job.Found) error {
	var failing []*job.Found
	for i := range list {
		if list[i].Mode == job.ModeContinuous && list[i].Failing != nil {
			failing = append(failing, &list[i])
		}
	}
	return temporalclient.Each(len(failing), 0, func(n int) error {
		progresses, err := c.Progresses(ctx, failing[n].ID)
		if progresses {
			failing[n].Failing = nil
		}
		return err
	})
}

func failure(f *contract.Failing) *job.Failing {
	if f == nil {
		return nil
	}
	return &job.Failing{Failures: f.Failures, Since: f.Since, Class: f.Class, Error: f.Error}
}

func (c *conn) findSchedules(ctx context.Context, query string, latest latestRuns, add func(job.Found, error) error) error {
	request := &workflowservice.ListSchedulesRequest{Namespace: c.namespace, MaximumPageSize: 1000, Query: query}
	for {
		response, err := read(ctx, c, c.temporal.WorkflowService().ListSchedules, request)
		if err != nil {
			return fmt.Errorf("list schedules: %w", err)
		}
		for _, entry := range response.GetSchedules() {
			if err := addSchedule(entry, latest, add); err != nil {
				return err
			}
		}
		if request.NextPageToken = response.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

func addSchedule(entry *schedulepb.ScheduleListEntry, latest latestRuns, add func(job.Found, error) error) error {
	id, named := contract.JobIDOfSchedule(entry.GetScheduleId())
	found, err := foundIn(func(name string) string { return temporalclient.Attribute(entry.GetSearchAttributes(), name) })
	if !named || found.ID != id {
		return nil // Not ours.
	}
	found.Mode, found.Paused = job.ModeRecurring, entry.GetInfo().GetPaused()
	latest.add(id, found.DefinitionHash, entry.GetInfo().GetRecentActions())
	return add(found, err)
}

func (c *conn) findContinuous(ctx context.Context, query string, add func(job.Found, error) error) error {
	running := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", contract.ContinuousJobType)
	if query != "" {
		running += " AND " + query
	}
	return c.eachWorkflow(ctx, running, 0, func(info *workflowpb.WorkflowExecutionInfo) error {
		found, err := foundIn(func(name string) string { return temporalclient.Attribute(info.GetSearchAttributes(), name) })
		if info.GetExecution().GetWorkflowId() != contract.JobWorkflowID(found.ID) {
			return nil // Not ours.
		}
		found.Mode, found.Paused = job.ModeContinuous, pauseOf(info.GetMemo()).Paused
		found.Failing = failure(failingLoop(info.GetMemo()))
		return add(found, err)
	})
}

// findLeft finds recurring jobs whose schedule is not in the list and that have a run.
func (c *conn) findLeft(ctx context.Context, filter job.Filter, list []job.Found, add func(job.Found, error) error) error {
	known := map[string]bool{}
	for _, found := range list {
		known[found.ID] = true
	}
	return c.eachWorkflow(ctx, scheduledRunsQuery(findQuery(filter)), 0, func(info *workflowpb.WorkflowExecutionInfo) error {
		found, err := foundIn(func(name string) string { return temporalclient.Attribute(info.GetSearchAttributes(), name) })
		if known[found.ID] {
			return nil
		}
		known[found.ID], found.Mode = true, job.ModeRecurring
		return add(found, err)
	})
}

// scheduledRunsQuery is the visibility query for runs of recurring jobs that are under way.
func scheduledRunsQuery(terms string) string {
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND %s = '%s'",
		contract.RunJobType, contract.AttributeJobMode.GetName(), job.ModeRecurring)
	if terms != "" {
		query += " AND " + terms
	}
	return query
}

// foundIn reads the search attributes of a job.
func foundIn(get func(name string) string) (job.Found, error) {
	found := job.Found{
		ID: get(contract.AttributeJobID.GetName()), Type: get(contract.AttributeJobType.GetName()),
		Provider:       job.Provider(get(contract.AttributeProvider.GetName())),
		DefinitionHash: get(contract.AttributeDefinitionHash.GetName()),
	}
	err := found.Owner.UnmarshalText([]byte(get(contract.AttributeOwner.GetName())))
	return found, err
}
