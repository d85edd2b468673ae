// Command backend is the worker for the platform's own work: image variants, the jobs of
// integrations, tables, what follows from changes, and reverse sync.
package main

import (
	"runtime"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workers"
)

func main() {
	workers.Main(workers.Program{
		Worker: job.WorkerBackend,
		// Image work keeps a core busy; waiting for the store does not.
		MaxConcurrentRuns: 2 * runtime.NumCPU(),
		Types: func(env workers.Environment) ([]job.Type, error) {
			store, err := activities.ConnectObjects(env.Getenv)
			if err != nil {
				return nil, err
			}
			api, err := activities.ConnectPlatform(env.Getenv)
			if err != nil {
				return nil, err
			}
			client, err := activities.ConnectPipeline(env.Context, env.Getenv)
			if err != nil {
				return nil, err
			}
			env.Defer(client.Close)
			env.Alive(client.Alive)
			env.KeepLogs(activities.RunLogs(env.Context, client, env.Logger, env.Defer))
			return activities.Backend(store, api, client, env.Getenv), nil
		},
	})
}
