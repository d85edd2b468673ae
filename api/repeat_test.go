package api_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// repeatedCreates makes each job several times at once, through two servers.
func repeatedCreates(t *testing.T, w *world) {
	const repeats = 6
	other := api.New(api.Config{Client: w.client, Types: ownTypes(), Logger: newLogger(w.log)})
	servers := []*api.Clients{w.server.InProcess(), other.InProcess()}
	gate := workertest.NewGate(t)
	modes := map[string]func(j *jobsv1.Job){
		"recurring": func(j *jobsv1.Job) {
			j.Mode = &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{Cron: "0 6 * * *"}}
		},
		"continuous": func(j *jobsv1.Job) {
			j.Mode = &jobsv1.Job_Continuous{Continuous: &jobsv1.Continuous{Interval: durationpb.New(time.Hour)}}
		},
		"one-shot": func(j *jobsv1.Job) { j.Mode = &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}} },
		"queued":   func(j *jobsv1.Job) { j.Mode = &jobsv1.Job_Queued{Queued: &jobsv1.Queued{Queue: "repeats"}} },
	}
	for mode, set := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			id := "take_steps.repeat-" + mode
			errs := make([]error, repeats)
			var all sync.WaitGroup
			for i := range repeats {
				all.Go(func() {
					j := steps(t, id, "gate", gate)
					set(j)
					made, err := servers[i%2].Jobs.CreateJob(t.Context(), &jobsv1.CreateJobRequest{Job: j, RequestId: requestID})
					if errs[i] = err; err == nil && made.GetChange().GetAction() != created {
						errs[i] = fmt.Errorf("the answer says %s", made.GetChange().GetAction())
					}
				})
			}
			all.Wait()
			for _, err := range errs {
				require.NoError(t, err)
			}
			if mode == "recurring" || mode == "continuous" {
				return // A second one could not be.
			}
			filter := fmt.Sprintf("job_id = %s", id)
			stacktest.WaitFor(t, "the run to be listed", func() (bool, error) {
				listed, err := servers[0].Runs.ListRuns(t.Context(), &jobsv1.ListRunsRequest{Filter: filter})
				names := []string{}
				for _, run := range listed.GetRuns() {
					names = append(names, run.GetName())
				}
				slices.Sort(names)
				require.LessOrEqual(t, len(slices.Compact(names)), 1)
				return len(names) == 1, err
			})
			if mode == "queued" {
				queue, err := servers[0].Queues.GetQueue(t.Context(), &jobsv1.GetQueueRequest{Name: "repeats"})
				require.NoError(t, err)
				require.EqualValues(t, 1, queue.GetQueue().GetAccepted())
			}
		})
	}
}
