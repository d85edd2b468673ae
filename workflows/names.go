package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
)

// Registry is the part of a Temporal worker that registers workflows.
type Registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}

// RegisterJobs registers the workflows that run on a worker type's task queue.
func RegisterJobs(r Registry) {
	r.RegisterWorkflowWithOptions(RunJob, workflow.RegisterOptions{Name: contract.RunJobType})
	r.RegisterWorkflowWithOptions(ContinuousJob, workflow.RegisterOptions{Name: contract.ContinuousJobType})
}

// RegisterQueues registers the workflows that run on QueuesTaskQueue: those that
// belong to no worker type.
func RegisterQueues(r Registry) {
	r.RegisterWorkflowWithOptions(JobQueue, workflow.RegisterOptions{Name: contract.JobQueueType})
	r.RegisterWorkflowWithOptions(JobQueuePage, workflow.RegisterOptions{Name: contract.JobQueuePageType})
	r.RegisterWorkflowWithOptions(AppliedJobs, workflow.RegisterOptions{Name: contract.AppliedJobsType})
}
