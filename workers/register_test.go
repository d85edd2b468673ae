package workers_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/workers"
)

// registry notes the names that are registered with it.
type registry struct {
	worker.Registry
	workflows, activities []string
}

func (r *registry) RegisterWorkflowWithOptions(_ any, options workflow.RegisterOptions) {
	r.workflows = append(r.workflows, options.Name)
}

func (r *registry) RegisterActivityWithOptions(_ any, options activity.RegisterOptions) {
	r.activities = append(r.activities, options.Name)
}

// Every name of the contract is served on the task queue to which it is sent.
func TestEverythingIsRegistered(t *testing.T) {
	t.Parallel()
	var jobs, queues, service registry
	workers.Register(testTypes(), &jobs, &queues, &service)
	for _, r := range []registry{jobs, queues} {
		require.ElementsMatch(t, []string{
			contract.RunJobType, contract.ContinuousJobType, contract.JobQueueType, contract.JobQueuePageType, contract.AppliedJobsType, contract.EndPauseType,
		}, r.workflows)
	}
	var handlers []string
	for _, typ := range testTypes() {
		handlers = append(handlers, typ.Name)
	}
	require.ElementsMatch(t, handlers, jobs.activities)
	require.ElementsMatch(t, []string{contract.WatchRunActivity, contract.ReadPageActivity, contract.ChooseServiceActivity, contract.EndPauseActivity}, queues.activities)
	require.Empty(t, service.workflows)
	require.ElementsMatch(t, handlers, service.activities)
}
