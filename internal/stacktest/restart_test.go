package stacktest_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

var jobID = temporal.NewSearchAttributeKeyKeyword("JobId")

// A stack that was killed comes up again on the same data when many
// schedules became due in its absence, with a worker and callers at it from its
// first moment on.
func TestStackComesBackUnderLoad(t *testing.T) {
	t.Parallel()
	const callers = 10
	schedules := stacktest.Size(30, 100)
	st := stacktest.StartOwn(t)
	c := st.Dial(t)
	w := worker.New(c, "ticks", worker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: "Tick"})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)

	ctx := t.Context()
	done, stopCalls := startCalls(t, c, callers)
	stacktest.WaitFor(t, "calls before the kill", func() (bool, error) { return done.Load() > callers, nil })
	var due time.Time
	var name string
	for wait := 15 * time.Second; !time.Now().Before(due); wait *= 2 { // A busy machine may need more than this.
		due, name = time.Now().Add(wait).Truncate(time.Second), "demo.tick-"+wait.String()
		createSchedules(t, c, schedules, name, due)
	}

	st.Kill()
	before := done.Load()
	stacktest.WaitFor(t, "the schedules to be due", func() (bool, error) { return time.Now().After(due), nil })
	st.Restart(t)
	t.Logf("up after %d ms", st.ReadyMS)
	stacktest.WaitFor(t, "calls after the kill", func() (bool, error) { return done.Load() > before+callers, nil })
	stopCalls() // What is left has the machine to itself.
	stacktest.WaitWithin(t, 3*time.Minute, "every schedule's run", func() (bool, error) {
		n, err := st.Dial(t).CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Query: fmt.Sprintf(`JobId = %q AND ExecutionStatus = "Completed"`, name),
		})
		return err == nil && n.GetCount() == int64(schedules), err
	})
}

// createSchedules creates schedules of one job that are due at a time.
func createSchedules(t *testing.T, c client.Client, count int, name string, due time.Time) {
	t.Helper()
	ctx := t.Context()
	var creates errgroup.Group
	creates.SetLimit(10)
	for i := range count {
		creates.Go(func() error {
			id := fmt.Sprintf("%s-%d", name, i)
			_, err := c.ScheduleClient().Create(ctx, client.ScheduleOptions{
				ID:   id,
				Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Hour, Offset: due.Sub(due.Truncate(time.Hour))}}},
				Action: &client.ScheduleWorkflowAction{
					ID: id, Workflow: "Tick", TaskQueue: "ticks",
					TypedSearchAttributes: temporal.NewSearchAttributes(jobID.ValueSet(name)),
				},
			})
			return err
		})
	}
	require.NoError(t, creates.Wait())
	stacktest.WaitFor(t, "all schedules to know their next time", func() (bool, error) {
		for i := range count {
			described, err := c.ScheduleClient().GetHandle(ctx, fmt.Sprintf("%s-%d", name, i)).Describe(ctx)
			if err != nil || len(described.Info.NextActionTimes) == 0 {
				return false, err
			}
		}
		return true, nil
	})
}

// startCalls has callers run workflows, one after the other each, until they are
// stopped, and returns how many have ended well.
func startCalls(t *testing.T, c client.Client, callers int) (count *atomic.Int64, stop func()) {
	t.Helper()
	var (
		done    atomic.Int64
		running sync.WaitGroup
	)
	ctx, cancel := context.WithCancel(t.Context())
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	for range callers {
		running.Go(func() {
			for ctx.Err() == nil {
				run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
					TaskQueue:             "ticks",
					TypedSearchAttributes: temporal.NewSearchAttributes(jobID.ValueSet("demo.call")),
				}, "Tick")
				if err == nil {
					err = run.Get(ctx, nil)
				}
				if err == nil {
					done.Add(1)
				}
			}
		})
	}
	return &done, stop
}
