package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// Find lists the recurring jobs, and the continuous jobs that have not been stopped, that
// match the filter, by id. A recurring job whose schedule is gone is there as long as it
// has a run. Unlike [JobClient.List] it reads nothing of other jobs. The lists behind it
// lag by about a second.
func (c *JobClient) Find(ctx context.Context, filter job.Filter) ([]job.Summary, error) {
	jobs, err := c.scan(ctx, findQuery(filter), "("+openLoops+") OR ("+openScheduledRuns+")", filter.State)
	if err == nil && filter.State {
		err = c.lookAtFailing(ctx, jobs)
	}
	if err != nil {
		return nil, err
	}
	var list []job.Summary
	for _, id := range slices.Sorted(maps.Keys(jobs)) {
		found, err := jobs[id].found()
		if err != nil {
			return nil, err
		}
		if !filter.Matches(found) {
			continue
		}
		if !filter.State {
			found.Paused, found.Failing = false, nil
		}
		list = append(list, found)
	}
	return list, nil
}

// lookAtFailing looks at the continuous jobs that are failing: one whose present iteration
// has something done is not.
func (c *conn) lookAtFailing(ctx context.Context, jobs map[string]*Facts) error {
	var failing []*Facts
	for _, f := range jobs {
		if _, ok := f.UnderWay(time.Now()); ok && f.Mode == job.ModeContinuous && f.Failing != nil {
			failing = append(failing, f)
		}
	}
	return temporalclient.Each(len(failing), 0, func(n int) (err error) {
		failing[n].Look, err = c.lookAt(ctx, RunRef{WorkflowID: contract.JobWorkflowID(failing[n].ID)})
		return err
	})
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

func failure(f *contract.Failing) *job.Failing {
	if f == nil {
		return nil
	}
	return &job.Failing{Failures: f.Failures, Since: f.Since, Class: f.Class, Error: f.Error}
}

// found is the job as handlers see it.
func (f *Facts) found() (job.Summary, error) {
	found := job.Summary{
		ID: f.ID, Type: f.Type, Mode: f.Mode, Provider: f.Provider, DefinitionHash: f.DefinitionHash,
		Paused: f.paused(), Failing: failure(f.failing()),
	}
	err := found.Owner.UnmarshalText([]byte(f.Owner))
	return found, err
}
