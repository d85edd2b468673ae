package stacktest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

var jobID = temporal.NewSearchAttributeKeyKeyword("JobId")

func TestBothScheduleEngines(t *testing.T) {
	for _, engine := range []string{"chasm", "workflow"} {
		t.Run(engine, func(t *testing.T) {
			st := stacktest.StartOwn(t, "--schedules", engine)
			require.Equal(t, engine, st.Schedules)
			ctx := testContext(t)
			c := st.Dial(t)
			w := worker.New(c, "ticks", worker.Options{})
			w.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: "Tick"})
			require.NoError(t, w.Start())
			t.Cleanup(w.Stop)

			schedule, err := c.ScheduleClient().Create(ctx, client.ScheduleOptions{
				ID:   "tick",
				Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Second}}},
				Action: &client.ScheduleWorkflowAction{
					ID: "tick", Workflow: "Tick", TaskQueue: "ticks",
					TypedSearchAttributes: temporal.NewSearchAttributes(jobID.ValueSet("demo.tick")),
				},
			})
			require.NoError(t, err)
			stacktest.WaitFor(t, "two runs of the schedule", func() (bool, error) {
				d, err := schedule.Describe(ctx)
				return err == nil && d.Info.NumActions >= 2, err
			})
			// The older engine is a workflow of the server's own; the newer one only
			// keeps the id of that workflow from being used.
			d, err := c.DescribeWorkflowExecution(ctx, "temporal-sys-scheduler:tick", "")
			require.NoError(t, err)
			isWorkflow := d.GetWorkflowExecutionInfo().GetType().GetName() == "temporal-sys-scheduler-workflow"
			require.Equal(t, engine == "workflow", isWorkflow)
			stacktest.WaitFor(t, "the runs under JobId", func() (bool, error) {
				n, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: `JobId = "demo.tick" AND ExecutionStatus = "Completed"`})
				return err == nil && n.GetCount() >= 2, err
			})
		})
	}
}
