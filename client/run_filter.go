package client

import (
	"context"
	"slices"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// RunFilter narrows a list of runs. Empty fields do not.
type RunFilter struct {
	JobID string
	Type  string
	Owner string // organization:NAME or user:NAME
	// Tags are those that the definition of the run's job has, all of them; ""
	// stands for any value. Runs are looked through for them.
	Tags     map[string]string
	Mode     job.Mode
	Queue    string
	Status   RunStatus
	Statuses []RunStatus // in place of Status, any of them
	Since    time.Time   // started, or to be started, at or after
	Until    time.Time   // started, or to be started, before; zero: no bound
	Limit    int         // 0: all

	// asListed takes the statuses of runs as lists have them: one that waits for a worker, or
	// is being canceled, is running.
	asListed bool
}

func (f RunFilter) query() string {
	terms := []string{"WorkflowType = " + quote(contract.RunJobType)}
	equal := func(name, value string) {
		if value != "" {
			terms = append(terms, name+" = "+quote(value))
		}
	}
	equal(contract.AttributeJobID.GetName(), f.JobID)
	equal(contract.AttributeJobType.GetName(), f.Type)
	equal(contract.AttributeOwner.GetName(), f.Owner)
	equal(contract.AttributeJobMode.GetName(), string(f.Mode))
	equal(contract.AttributeQueue.GetName(), f.Queue)
	if names := f.executionStatuses(); len(names) > 0 {
		terms = append(terms, "ExecutionStatus IN ('"+strings.Join(names, "', '")+"')")
	}
	if !f.Since.IsZero() {
		terms = append(terms, "ExecutionTime >= "+quote(f.Since.UTC().Format(time.RFC3339Nano)))
	}
	if !f.Until.IsZero() {
		terms = append(terms, "ExecutionTime < "+quote(f.Until.UTC().Format(time.RFC3339Nano)))
	}
	return strings.Join(terms, " AND ")
}

func (f RunFilter) statuses() []RunStatus {
	if f.Status != "" {
		return []RunStatus{f.Status}
	}
	return f.Statuses
}

// executionStatuses are those that the workflows of matching runs may have.
func (f RunFilter) executionStatuses() []string {
	var names []string
	for _, status := range f.statuses() {
		names = append(names, executionStatuses[status]...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// openStatuses are those of runs that have not ended. Lists do not know which of them a run
// has.
var openStatuses = []RunStatus{RunRunning, RunWaiting, RunCanceling}

// asksHowOpen reports whether the filter asks for some of the runs that have not ended: each has to
// be looked at.
func (f RunFilter) asksHowOpen() bool {
	if f.asListed {
		return false
	}
	asked := 0
	for _, status := range openStatuses {
		if slices.Contains(f.statuses(), status) {
			asked++
		}
	}
	return asked > 0 && asked < len(openStatuses)
}

// impossible reports whether no workflow is such a run.
func (f RunFilter) impossible() bool {
	return len(f.statuses()) > 0 && len(f.executionStatuses()) == 0
}

// needsLook reports whether a query alone does not find which runs match.
func (f RunFilter) needsLook() bool {
	found := f.executionStatuses()
	return len(f.Tags) > 0 || slices.ContainsFunc(RunStatuses(), func(status RunStatus) bool {
		return !slices.Contains(f.statuses(), status) &&
			slices.ContainsFunc(executionStatuses[status], func(name string) bool { return slices.Contains(found, name) })
	})
}

// matches decides what the query does not.
func (f RunFilter) matches(run Run, info *workflowpb.WorkflowExecutionInfo) bool {
	if statuses := f.statuses(); len(statuses) > 0 && !slices.Contains(statuses, run.Status) {
		return false
	}
	if len(f.Tags) == 0 {
		return true
	}
	j, ok := temporalclient.MemoDefinition(info.GetMemo())
	return ok && hasTags(j.Options.Tags, f.Tags)
}

// hasTags reports whether all wanted tags are there.
func hasTags(tags, wanted map[string]string) bool {
	for name, value := range wanted {
		if found, ok := tags[name]; !ok || value != "" && found != value {
			return false
		}
	}
	return true
}

// withTags keeps the jobs that have tags. Those of a recurring job are in its
// definition, which lists do not have: its schedule is described.
func (c *conn) withTags(ctx context.Context, rows []JobRow, wanted map[string]string) ([]JobRow, error) {
	err := temporalclient.Each(len(rows), 0, func(i int) error {
		if rows[i].Mode != job.ModeRecurring {
			return nil
		}
		live, err := c.jobs().LiveSchedule(ctx, rows[i].ID)
		if live != nil {
			rows[i].Tags = live.Job.Options.Tags
		}
		return err
	})
	return slices.DeleteFunc(rows, func(row JobRow) bool { return !hasTags(row.Tags, wanted) }), err
}
