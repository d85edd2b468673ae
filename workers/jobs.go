package workers

import (
	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// newJobs is how handlers manage jobs: through the connection of their worker.
func newJobs(temporal sdk.Client, namespace string) job.Jobs {
	return schedules.NewJobs(client.New(temporal, namespace))
}
