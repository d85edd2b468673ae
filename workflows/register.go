package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
)

// Registry is the part of a worker, a replayer or a test environment that registers
// workflows.
type Registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}

// Register registers all workflows. Each installs the handlers of its queries and
// updates itself, since they belong to one execution.
func Register(r Registry) {
	for name, definition := range map[string]any{
		contract.RunJobType:        RunJob,
		contract.ContinuousJobType: ContinuousJob,
		contract.JobQueueType:      JobQueue,
		contract.JobQueuePageType:  JobQueuePage,
		contract.AppliedJobsType:   AppliedJobs,
		contract.EndPauseType:      EndPause,
	} {
		r.RegisterWorkflowWithOptions(definition, workflow.RegisterOptions{Name: name, VersioningBehavior: behavior(name)})
	}
}

// behavior is how a workflow changes builds, where workers are versioned: runs end on the build
// that began them, and what continues as new changes there. A page of a queue has no code that
// could change, and may wait for weeks.
func behavior(name string) workflow.VersioningBehavior {
	if name == contract.JobQueuePageType {
		return workflow.VersioningBehaviorAutoUpgrade
	}
	return workflow.VersioningBehaviorPinned
}
