// Command backend is the worker for the platform's own work: image variants, the jobs of
// integrations, tables, what follows from changes, and reverse sync.
package main

import (
	"strings"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/activities/images/codecs"
	"github.com/dendrascience/dendra-jobs/activities/images/process"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workers"
)

func main() {
	process.Main(codecs.All())
	workers.Main(workers.Program{
		Worker: job.WorkerBackend,
		// Most wait: each enabled integration config has a continuous job. Image work, which
		// keeps cores busy, bounds itself.
		MaxConcurrentRuns: 500,
		Types: func(env workers.Environment) ([]job.Type, error) {
			store, err := activities.ConnectObjects(env.Getenv)
			if err != nil {
				return nil, err
			}
			pictures, err := activities.Pictures(env.Getenv)
			if err != nil {
				return nil, err
			}
			env.Defer(pictures.Close)
			engine, err := pictures.Engine()
			if err != nil {
				return nil, err
			}
			libraries := strings.Join(append([]string{string(engine)}, codecs.Libraries()...), "+")
			env.Logger.Info("image processes are ready", "libraries", libraries)
			env.Tag(job.TagImages, libraries)
			api, err := activities.ConnectPlatform(env.Getenv)
			if err != nil {
				return nil, err
			}
			at, err := activities.PlacesFromEnv(env.Getenv)
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
			return activities.Backend(store, pictures, api, client, at, env.Getenv), nil
		},
	})
}
