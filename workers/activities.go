package workers

import (
	"go.temporal.io/sdk/activity"

	"github.com/dendrascience/dendra-jobs/contract"
)

// ActivityRegistry is the part of a Temporal worker that registers activities.
type ActivityRegistry interface {
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
}

// RegisterActivities registers the activities that workers of every type serve on
// QueuesTaskQueue. They need the client of their worker.
func RegisterActivities(r ActivityRegistry) {
	r.RegisterActivityWithOptions(newWatcher(maxWatched).WatchRun, activity.RegisterOptions{Name: contract.WatchRunActivity})
	r.RegisterActivityWithOptions(ReadPage, activity.RegisterOptions{Name: contract.ReadPageActivity})
	r.RegisterActivityWithOptions((&chooser{}).ChooseService, activity.RegisterOptions{Name: contract.ChooseServiceActivity})
}

// MaxActivities is how many of the activities of [RegisterActivities] a process
// carries out at once.
const MaxActivities = 1000
