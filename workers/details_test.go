package workers_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// currentDetails are what the Web UI shows of the workflow of a job.
func currentDetails(t *testing.T, c *client.Client, jobID string) (string, error) {
	t.Helper()
	answer, err := c.Temporal().QueryWorkflow(t.Context(), contract.JobWorkflowID(jobID), "", "__temporal_workflow_metadata")
	if err != nil {
		return "", err
	}
	var metadata sdkpb.WorkflowMetadata
	err = answer.Get(&metadata)
	return metadata.GetCurrentDetails(), err
}

// TestCurrentDetailsSayWhereARunIs looks at runs and iterations in the Web UI's text.
func TestCurrentDetailsSayWhereARunIs(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	shows := func(j job.Job, want string) {
		t.Helper()
		stacktest.WaitFor(t, want+" in the details of "+j.ID, func() (bool, error) {
			details, err := currentDetails(t, c, j.ID)
			return strings.Contains(strings.ReplaceAll(details, `\`, ""), want), err // As the Web UI shows it.
		})
	}
	gate := workertest.NewGate(t)
	spec := recordSpec{Ledger: string(workertest.NewBook(t)), Steps: 2, Gate: gate}
	once := newJob(t, "RecordSteps", "once", oneShot(), spec)
	startRun(t, c, once)
	shows(once, "running: see its pending activity")

	loop := newJob(t, "RecordSteps", "loop", continuousEvery(1e9), spec)
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), loop))
	shows(loop, "Iteration 1 runs: see its pending activity")

	unserved := newJob(t, "RecordSteps", "unserved", oneShot(), spec)
	unserved.Options.Bind = map[string]string{"zone": "nowhere"}
	startRun(t, c, unserved)
	shows(unserved, "looking for a service")

	workertest.Open(t, gate)
	shows(once, "completed: all steps done")
	shows(loop, "2 iterations, 0 failed")
	for _, j := range []job.Job{loop, unserved} {
		require.NoError(t, c.Jobs.Stop(t.Context(), j.ID, "by test"))
	}
}
