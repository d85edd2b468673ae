package api_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// pagesOfJobs lists many jobs in pages: Temporal is asked for the first alone.
// DENDRA_TEST_JOBS sets how many jobs there are; DENDRA_TEST_JOBS=10000 takes minutes.
func pagesOfJobs(t *testing.T, w *world) {
	many := 60
	if text := os.Getenv("DENDRA_TEST_JOBS"); text != "" {
		var err error
		many, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	size := int32(max(many/20, 7))
	var calls atomic.Int64
	temporal, err := temporalclient.Dial(t.Context(), temporalclient.Settings{
		Address: w.stack.Temporal, Namespace: w.stack.Namespace, Logger: newLogger(w.log),
		Intercept: func(ctx context.Context, method string, in, out any, c *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			calls.Add(1)
			return invoke(ctx, method, in, out, c, options...)
		},
	})
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	c := api.NewInProcess(api.Config{Client: client.New(temporal, w.stack.Namespace), Types: ownTypes(), Logger: newLogger(w.log)})

	declared := make([]job.Job, many)
	for n := range declared {
		declared[n] = job.Job{
			ID: fmt.Sprintf("take_steps.many-%06d", n), Type: "TakeSteps", Worker: "apitest", Provider: "many", Spec: []byte(`{"steps":1}`),
			Trigger: job.Trigger{Recurring: &job.Recurring{Cron: "0 6 1 1 *"}}, Options: job.DefaultOptions(job.ModeRecurring),
		}
	}
	began, syncer := time.Now(), schedules.New(w.client)
	plan, err := syncer.Plan(t.Context(), declared, schedules.PlanOptions{Provider: "many", Parallel: temporalclient.CallLimit})
	require.NoError(t, err)
	require.NoError(t, syncer.Apply(t.Context(), plan, func(schedules.Report) {}))
	t.Logf("%d jobs made in %s", many, time.Since(began))
	const filter = `id = "take_steps.many-*"`
	stacktest.WaitFor(t, "all jobs to be listed", func() (bool, error) {
		rows, _, err := w.client.Jobs.List(t.Context(), client.JobFilter{})
		rows = slices.DeleteFunc(rows, func(row client.JobRow) bool { return row.Provider != "many" })
		return len(rows) == many, err
	})

	var firsts, laters []time.Duration
	rounds := 1
	if many > 1000 {
		rounds = 20
	}
	for range rounds {
		var ids []string
		token := ""
		for n := 0; n == 0 || token != ""; n++ {
			before, asked := time.Now(), calls.Load()
			page, err := c.Jobs.ListJobs(t.Context(), &jobsv1.ListJobsRequest{Filter: filter, PageSize: size, PageToken: token})
			require.NoError(t, err)
			if took := time.Since(before); n == 0 {
				firsts = append(firsts, took)
				t.Logf("%d calls of Temporal for the first page, in %s", calls.Load()-asked, took)
			} else {
				laters = append(laters, took)
				require.Equal(t, asked, calls.Load(), "a later page asks Temporal for nothing")
			}
			for _, j := range page.GetJobs() {
				ids = append(ids, j.GetId())
			}
			token = page.GetNextPageToken()
		}
		require.True(t, slices.IsSorted(ids))
		require.Len(t, slices.Compact(ids), many)
	}
	for name, all := range map[string][]time.Duration{"first": firsts, "later": laters} {
		slices.Sort(all)
		t.Logf("%s pages: p50 %s, p95 %s", name, all[len(all)/2], all[len(all)*95/100])
	}
}
