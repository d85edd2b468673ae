// Command load is the worker for loads into time-series databases, InfluxDB 1.x,
// and for the archive.
package main

import (
	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workers"
)

func main() {
	workers.Main(workers.Program{
		Worker: job.WorkerLoad,
		Types: func(env workers.Environment) ([]job.Type, error) {
			store, err := activities.ConnectObjects(env.Getenv)
			if err != nil {
				return nil, err
			}
			client, err := activities.ConnectPipeline(env.Context, env.Getenv)
			if err != nil {
				return nil, err
			}
			env.Defer(client.Close)
			env.Alive(client.Alive)
			env.Needs("NATS", client.Reach)
			env.KeepLogs(activities.RunLogs(env.Context, client, env.Logger, env.Defer))
			return activities.Load(client, store), nil
		},
	})
}
