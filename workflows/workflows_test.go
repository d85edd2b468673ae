package workflows_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

const testType = "CountThings"

type handler = func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error)

// newEnvironment is a time-skipping environment with one job type.
func newEnvironment(t *testing.T, handle handler) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	return loggingEnvironment(t, io.Discard, handle)
}

// loggingEnvironment is newEnvironment with a log.
func loggingEnvironment(t *testing.T, w io.Writer, handle handler) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(w, nil))))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(20 * time.Second)
	workflows.RegisterJobs(env)
	workflows.RegisterQueues(env)
	env.RegisterActivityWithOptions(handle, activity.RegisterOptions{Name: testType})
	return env
}

func newJob(key string, schedule job.Schedule) job.Job {
	return job.Job{
		ID: job.ID(testType, key), Type: testType, Worker: "counting", Provider: job.ProviderAPI,
		Spec: json.RawMessage(`{}`), Schedule: schedule, Options: job.DefaultOptions(schedule.Mode()),
	}
}

// answer collects what a message came back with.
type answer struct {
	t        *testing.T
	accepted bool
	rejected error
	value    any
	err      error
}

func (a *answer) Accept() { a.accepted = true }

func (a *answer) Reject(err error) { a.rejected = err }

func (a *answer) Complete(value any, err error) { a.value, a.err = value, err }

func (a *answer) requireTaken() {
	a.t.Helper()
	require.NoError(a.t, a.rejected)
	require.NoError(a.t, a.err)
	require.True(a.t, a.accepted)
}

// soon is when a message comes in the middle of an activity, while which the
// environment's clock runs as fast as the real one.
const soon = 50 * time.Millisecond

// untilCanceled is a handler at work until it hears that it should stop.
func untilCanceled(ctx context.Context) {
	for ctx.Err() == nil {
		activity.RecordHeartbeat(ctx)
		runtime.Gosched()
	}
}
