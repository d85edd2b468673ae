package workers

import (
	"fmt"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/dendrascience/dendra-jobs/contract"
)

// taskQueue is one of the task queues that a process serves.
type taskQueue int

const (
	jobsTaskQueue    taskQueue = iota // of the worker type
	queuesTaskQueue                   // contract.QueuesTaskQueue
	serviceTaskQueue                  // of the process alone
)

// maxActivities is how many of the activities that workflows need a process carries
// out at once.
const maxActivities = 1000

// register registers everything that the process serves on a task queue: workflows,
// handlers, and the activities that workflows need.
func (h *host) register(on taskQueue, r worker.Registry) {
	if on != serviceTaskQueue {
		h.workflows(r)
	}
	activities := map[string]any{}
	if on == queuesTaskQueue {
		activities[contract.WatchRunActivity] = newWatcher(maxWatched).WatchRun
		activities[contract.ReadPageActivity] = ReadPage
		activities[contract.EndPauseActivity] = EndPause
		activities[contract.ChooseServiceActivity] = (&chooser{}).ChooseService
	} else {
		for _, t := range h.Types {
			activities[t.Name] = h.execute(t)
		}
	}
	for name, a := range activities {
		r.RegisterActivityWithOptions(a, activity.RegisterOptions{Name: name})
	}
}

// newWorker gives the worker of a task queue with everything that the process serves
// there. Handlers share the slots of the process. What workflows need costs next to
// nothing, and must not wait for handlers.
func (h *host) newWorker(on taskQueue, name string, options worker.Options) (worker.Worker, error) {
	options.DisableWorkflowWorker = on == serviceTaskQueue
	options.DeploymentOptions = h.versioning(on)
	if on == queuesTaskQueue {
		options.MaxConcurrentActivityExecutionSize = maxActivities
	} else {
		tuner, err := h.slots.tuner()
		if err != nil {
			return nil, fmt.Errorf("slots of task queue %s: %w", name, err)
		}
		options.Tuner = tuner
	}
	w := worker.New(h.client, name, options)
	h.register(on, w)
	return w, nil
}
