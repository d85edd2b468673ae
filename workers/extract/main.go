// Command extract is the worker for vendor extracts, LI-COR HOBOlink and Campbell
// Scientific LoggerNet, and for files of data loggers.
package main

import (
	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workers"
)

func main() {
	workers.Main(workers.Program{
		Worker: job.WorkerExtract,
		Types: func(env workers.Environment) ([]job.Type, error) {
			client, err := activities.ConnectPipeline(env.Context, env.Getenv)
			if err != nil {
				return nil, err
			}
			env.Defer(client.Close)
			env.Alive(client.Alive)
			env.Needs("NATS", client.Reach)
			env.KeepLogs(activities.RunLogs(env.Context, client, env.Logger, env.Defer))
			at, err := activities.PlacesFromEnv(env.Getenv)
			if err != nil {
				return nil, err
			}
			store, err := activities.ConnectUploads(env.Getenv)
			if err != nil {
				return nil, err
			}
			return activities.Extract(client, store, at), nil
		},
	})
}
